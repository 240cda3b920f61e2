"""A record as one short row: columns instead of objects, each string once, nothing twice.

What is long or comes again and again (texts, metadata of chunks, what a result or a stage
has in common with others) is put aside into `Strings`; results and verdicts that several
scores share stand there once.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

from ctxeval.record.query import Chunk, QueryRecord, Retrieval
from ctxeval.record.tracing import TraceSpan
from ctxeval.result import MetricResult
from ctxeval.sample import Sample, Span
from ctxeval.store.plain import Strings, decode, encode, written
from ctxeval.store.texts import Tags
from ctxeval.store.verdicts import VerdictPacker, VerdictUnpacker
from ctxeval.verdicts import Usage, Verdicts

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

_COLUMNS = attrgetter("id", "text", "rank", "score")
_TAG = attrgetter("id", "id_source", "metadata", "span")


def pack(record: QueryRecord, tags: Tags) -> tuple[Strings, bytes]:
    """Write a record as a row's strings and data."""
    strings = Strings()
    verdicts = VerdictPacker(strings)
    results = _Results(verdicts)
    reference = record.reference
    # The verdicts refer to the stages, so these come first.
    stages = [
        _pack_stage(one, record.question, strings, tags, verdicts) for one in record.retrievals
    ]
    of_stages = [results.pack(one.scores) for one in record.retrievals]
    scores = results.pack(record.scores)
    body = [
        record.id,
        record.question,
        record.answer,
        stages,
        of_stages,
        scores,
        strings[written(results.common)],
        results.packed,
        verdicts.packed,
        record.metadata,
        _moment(record.started),
        _moment(record.ended),
        reference and strings[written(reference.model_dump(exclude_none=True))],
        strings[written([record.status, record.unreferenced, sorted(record.pending)])],
        *_pack_places(record),
    ]
    return strings, encode(body)


def unpack(texts: Sequence[tuple[str, str]], data: bytes) -> QueryRecord:
    """Read what `pack` wrote, given the texts with their tags."""
    strings = [text for text, _ in texts]
    id, question, answer, stages, of_stages, scores, common, results, verdicts, *rest = decode(data)
    metadata, started, ended, reference, state, *places = rest
    retrievals = [_unpack_stage(stage, question, texts) for stage in stages]
    unpacker = VerdictUnpacker(strings, retrievals)
    read = [unpacker.unpack(packed) for packed in verdicts]
    both = zip(decode(strings[common]), results, strict=True)
    made = [_unpack_result(shared, packed, read) for shared, packed in both]
    for retrieval, packed in zip(retrievals, of_stages, strict=True):
        retrieval.scores = _unpack_scores(packed, made)
    status, unreferenced, pending = decode(strings[state])
    traced = _unpack_places(places, retrievals)
    return QueryRecord(
        id=id,
        question=question,
        answer=answer,
        status=status,
        retrievals=retrievals,
        scores=_unpack_scores(scores, made),
        pending=frozenset(pending),
        metadata=metadata,
        started=_unpack_moment(started),
        ended=_unpack_moment(ended),
        reference=None if reference is None else Sample(**decode(strings[reference])),
        unreferenced=unreferenced,
        traced=traced,
    )


def _pack_places(record: QueryRecord) -> list[Any]:
    """Say where a record and its stages stand in traces; nothing where nobody traced them."""
    of_stages = [(_moment(one.started), one.run_id, one.traced) for one in record.retrievals]
    nothing = record.traced is None and all(place == (None, "", None) for place in of_stages)
    return [] if nothing else [[record.traced, of_stages]]


def _unpack_places(places: list[Any], retrievals: Sequence[Retrieval]) -> TraceSpan | None:
    if not places:
        return None
    ((traced, of_stages),) = places
    for stage, (started, run_id, of_stage) in zip(retrievals, of_stages, strict=True):
        stage.started = _unpack_moment(started)
        stage.run_id = run_id
        stage.traced = of_stage and TraceSpan(*of_stage)
    return traced and TraceSpan(*traced)


class _Results:
    """The results of a record, each once, however many scores refer to it.

    What they have in common with those of other records is gathered, to be put aside.
    """

    def __init__(self, verdicts: VerdictPacker) -> None:
        self._verdicts = verdicts
        self._places: dict[int, int] = {}
        self.common: list[tuple[str, ...]] = []
        self.packed: list[tuple[Any, ...]] = []

    def pack(self, scores: Mapping[str, MetricResult]) -> list[Any]:
        """Give the places of results, each with its name where that is not its metric's."""
        places: list[Any] = []
        for name, result in scores.items():
            place = self._places.get(id(result))
            if place is None:
                place = self._places[id(result)] = len(self.packed)
                self._add(result)
            places.append(place if name == result.metric else [name, place])
        return places

    def _add(self, result: MetricResult) -> None:
        value, verdicts, usage = result.value, result.verdicts, result.usage
        shared = verdicts is not None and usage is verdicts.usage
        self.common.append((result.metric, result.status, result.reason, result.signature))
        packed = (
            value,
            1 if result.bounds == (value, value) else result.bounds,
            None if verdicts is None else self._verdicts.place(verdicts),
            1 if shared else usage and astuple(usage),
        )
        self.packed.append(packed if result.expected is None else (*packed, result.expected))


def _unpack_scores(packed: list[Any], made: list[MetricResult]) -> dict[str, MetricResult]:
    scores: dict[str, MetricResult] = {}
    for one in packed:
        name, place = one if isinstance(one, list) else (made[one].metric, one)
        scores[name] = made[place]
    return scores


def _unpack_result(common: list[Any], packed: list[Any], read: list[Verdicts]) -> MetricResult:
    metric, status, reason, signature = common
    value, bounds, place, usage, *expected = packed
    verdicts = None if place is None else read[place]
    if verdicts is not None and usage == 1:
        usage = verdicts.usage
    elif usage is not None:
        usage = Usage(*usage)
    bounds = (value, value) if bounds == 1 else bounds and tuple(bounds)
    return MetricResult(
        value, status, reason, verdicts, bounds, metric, signature, usage, *expected
    )


def _pack_stage(
    one: Retrieval, question: str, strings: Strings, tags: Tags, verdicts: VerdictPacker
) -> tuple[Any, ...]:
    chunks = one.chunks
    columns: Any = list(zip(*map(_COLUMNS, chunks), strict=True)) or [()] * 4
    ids, texts, ranks, scores = columns
    verdicts.know(ids, texts)
    places = [strings[text] for text in texts]
    first, count = (places[0] if places else 0), len(places)
    return (
        strings[written([one.name, one.kind, one.parent, one.order, one.error, one.inputs])],
        None if one.query == question else one.query,
        one.latency,
        # What counts up by one is told by its first and its length.
        [first, count] if places == list(range(first, first + count)) else [places],
        _own_tags(texts, chunks, tags),
        None if ranks == tuple(range(count)) else ranks,
        None if scores.count(None) == count else _pack_numbers(scores),
    )


def _own_tags(texts: Sequence[str], chunks: Sequence[Chunk], tags: Tags) -> list[Any] | None:
    """Give the tags that differ from those beside the texts; None where none does."""
    own = [*map(_TAG, chunks)]
    standing = tags.standing(texts)
    if standing is not None and written(own) == standing:
        return None
    brought = [*map(written, own)]
    if tags.settle(texts, brought):
        return None
    pairs = zip(texts, brought, strict=True)
    differing = [tag if tags.differs(text, tag) else 0 for text, tag in pairs]
    return differing if any(differing) else None


def _unpack_stage(packed: list[Any], question: str, texts: Sequence[tuple[str, str]]) -> Retrieval:
    common, query, latency, places, own_tags, ranks, scores = packed
    *shared, inputs = decode(texts[common][0])
    listed = places[0] if len(places) == 1 else range(places[0], sum(places))
    numbers = _unpack_numbers(scores, len(listed))
    chunks = []
    for n, place in enumerate(listed):
        text, tag = texts[place]
        id, id_source, metadata, span = decode((own_tags and own_tags[n]) or tag)
        rank = n if ranks is None else ranks[n]
        where = span and Span(**span)
        chunks.append(Chunk(rank, id, id_source, text, numbers[n], where, metadata))
    query = question if query is None else query
    name, kind, parent, order, error = shared
    return Retrieval(
        query, tuple(chunks), name, kind, parent, order, latency, error, inputs=tuple(inputs)
    )


def _pack_numbers(numbers: Sequence[float | None]) -> str | Sequence[float | None]:
    """Write floats in half the space of their digits."""
    if {*map(type, numbers)} != {float}:
        return numbers
    return b64encode(struct.pack(f"<{len(numbers)}d", *numbers)).decode()


def _unpack_numbers(packed: Any, count: int) -> Sequence[float | None]:
    if packed is None:
        return [None] * count
    return struct.unpack(f"<{count}d", b64decode(packed)) if isinstance(packed, str) else packed


def _moment(moment: datetime | None) -> int | str | None:
    if moment is None:
        return None
    return (moment - EPOCH) // MICROSECOND if moment.tzinfo is UTC else moment.isoformat()


def _unpack_moment(packed: int | str | None) -> datetime | None:
    if isinstance(packed, int):
        return EPOCH + packed * MICROSECOND
    return None if packed is None else datetime.fromisoformat(packed)
