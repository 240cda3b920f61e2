"""A record as one short row: columns instead of objects, each string once, nothing twice.

What is long or comes again and again (texts, reasons, signatures, metadata of chunks) is
put aside into `Strings`; results and verdicts that several scores share stand there once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from typing import Any

from ctxeval.record.query import Chunk, QueryRecord, Retrieval
from ctxeval.result import MetricResult
from ctxeval.sample import Sample, Span
from ctxeval.store.plain import Strings, decode, encode, to_bytes, to_text
from ctxeval.store.verdicts import VerdictPacker, VerdictUnpacker
from ctxeval.verdicts import Usage

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def pack(record: QueryRecord) -> tuple[Strings, bytes]:
    """Write a record as a row's strings and data."""
    strings = Strings()
    verdicts = VerdictPacker(strings)
    results = _Results(strings, verdicts)
    retrievals = [_retrieval(one, record.question, strings, verdicts) for one in record.retrievals]
    for packed, one in zip(retrievals, record.retrievals, strict=True):
        packed.append(results.pack(one.scores))
    scores = results.pack(record.scores)
    reference = record.reference
    body = [
        record.id,
        record.question,
        record.answer,
        strings[record.status],
        retrievals,
        scores,
        results.packed,
        verdicts.packed,
        [strings[name] for name in sorted(record.pending)],
        record.metadata,
        _moment(record.started),
        _moment(record.ended),
        None if reference is None else strings[_json(reference.model_dump(exclude_none=True))],
        strings[record.unreferenced],
    ]
    return strings, encode(body)


def unpack(strings: Sequence[str], data: bytes) -> QueryRecord:
    """Read what `pack` wrote."""
    id, question, answer, status, stages, scores, results, verdicts, *rest = decode(data)
    pending, metadata, started, ended, reference, unreferenced = rest
    retrievals = [_unpack_retrieval(stage, question, strings) for stage in stages]
    unpacker = VerdictUnpacker(strings, retrievals)
    read = [unpacker.unpack(packed) for packed in verdicts]
    made = [_unpack_result(packed, strings, read) for packed in results]
    for retrieval, stage in zip(retrievals, stages, strict=True):
        retrieval.scores = {strings[name]: made[number] for name, number in stage[-1]}
    return QueryRecord(
        id=id,
        question=question,
        answer=answer,
        status=strings[status],  # type: ignore[arg-type]  # as it was put
        retrievals=retrievals,
        scores={strings[name]: made[number] for name, number in scores},
        pending=frozenset(strings[name] for name in pending),
        metadata=metadata,
        started=_unpack_moment(started),
        ended=_unpack_moment(ended),
        reference=None if reference is None else Sample(**decode(to_bytes(strings[reference]))),
        unreferenced=strings[unreferenced],
    )


class _Results:
    """The results of a record, each once, however many scores refer to it."""

    def __init__(self, strings: Strings, verdicts: VerdictPacker) -> None:
        self._strings = strings
        self._verdicts = verdicts
        self._places: dict[int, int] = {}
        self.packed: list[list[Any]] = []

    def pack(self, scores: Mapping[str, MetricResult]) -> list[tuple[int, int]]:
        return [(self._strings[name], self._place(result)) for name, result in scores.items()]

    def _place(self, result: MetricResult) -> int:
        place = self._places.get(id(result))
        if place is not None:
            return place
        strings = self._strings
        verdicts, usage, value = result.verdicts, result.usage, result.value
        bounds: Any = result.bounds
        self.packed.append(
            [
                strings[result.metric],
                value,
                strings[result.status],
                strings[result.reason],
                True if bounds == (value, value) else bounds,
                strings[result.signature],
                None if verdicts is None else self._verdicts.place(verdicts),
                True
                if verdicts is not None and usage is verdicts.usage
                else usage and astuple(usage),
            ]
        )
        place = self._places[id(result)] = len(self.packed) - 1
        return place


def _unpack_result(packed: list[Any], strings: Sequence[str], read: list[Any]) -> MetricResult:
    metric, value, status, reason, bounds, signature, place, usage = packed
    verdicts = None if place is None else read[place]
    return MetricResult(
        value,
        strings[status],  # type: ignore[arg-type]  # as it was put
        strings[reason],
        verdicts,
        (value, value) if bounds is True else bounds and tuple(bounds),
        strings[metric],
        strings[signature],
        verdicts.usage if usage is True else usage and Usage(*usage),
    )


def _retrieval(
    one: Retrieval, question: str, strings: Strings, verdicts: VerdictPacker
) -> list[Any]:
    chunks = one.chunks
    ids = tuple([chunk.id for chunk in chunks])
    texts = tuple([chunk.text for chunk in chunks])
    verdicts.know(ids, texts)
    sources = [strings[chunk.id_source] for chunk in chunks]
    ranks = [chunk.rank for chunk in chunks]
    scores = [chunk.score for chunk in chunks]
    spans = [chunk.span for chunk in chunks]
    return [
        None if one.query == question else one.query,
        ids,
        sources[:1] if len(set(sources)) == 1 else sources,
        [strings[text] for text in texts],
        None if ranks == list(range(len(ranks))) else ranks,
        scores if any(score is not None for score in scores) else None,
        [span and tuple(dict(span).values()) for span in spans] if any(spans) else None,
        _metadata(chunks, strings),
        strings[one.name],
        strings[one.kind],
        one.parent,
        one.order,
        one.latency,
        strings[one.error],
    ]


def _metadata(chunks: Sequence[Chunk], strings: Strings) -> list[int] | None:
    """A chunk's metadata come again with the chunk: each is put aside as one string."""
    if not any(chunk.metadata for chunk in chunks):
        return None
    return [strings[_json(chunk.metadata)] for chunk in chunks]


def _unpack_retrieval(packed: list[Any], question: str, strings: Sequence[str]) -> Retrieval:
    query, ids, sources, texts, ranks, scores, spans, metadata, *rest = packed
    name, kind, parent, order, latency, error, _ = rest
    chunks = tuple(
        Chunk(
            rank=rank if ranks is None else ranks[rank],
            id=id,
            id_source=strings[sources[rank if len(sources) > 1 else 0]],
            text=strings[texts[rank]],
            score=None if scores is None else scores[rank],
            span=None if spans is None or spans[rank] is None else Span(*spans[rank]),
            metadata={} if metadata is None else decode(to_bytes(strings[metadata[rank]])),
        )
        for rank, id in enumerate(ids)
    )
    return Retrieval(
        query=question if query is None else query,
        chunks=chunks,
        name=strings[name],
        kind=strings[kind],  # type: ignore[arg-type]  # as it was put
        parent=parent,
        order=order,
        latency=latency,
        error=strings[error],
    )


def _json(value: Any) -> str:
    return to_text(encode(value))


def _moment(moment: datetime | None) -> int | str | None:
    if moment is None or moment.tzinfo is not UTC:
        return moment and moment.isoformat()
    return (moment - EPOCH) // MICROSECOND


def _unpack_moment(packed: int | str | None) -> datetime | None:
    if isinstance(packed, int):
        return EPOCH + packed * MICROSECOND
    return packed and datetime.fromisoformat(packed)  # type: ignore[return-value]  # None or text
