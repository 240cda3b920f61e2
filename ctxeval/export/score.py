"""One neutral record per score, which every product gets in its own form."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ctxeval.metrics import ContextRelevance, ContextUtilization
from ctxeval.record.query import Chunk, QueryRecord, Retrieval
from ctxeval.result import MetricResult, Status
from ctxeval.verdicts import Verdict, Verdicts

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:ctxeval:score")

LABELS = {True: "relevant", False: "irrelevant", None: "unread"}
"""What a verdict on a chunk is called."""

_PURPOSES = {metric.name: metric.purpose for metric in (ContextRelevance, ContextUtilization)}
"""What a model judges chunks for, where it is not their use for the reference."""


@dataclass(frozen=True, slots=True)
class Score:
    """What one metric says of a query or of a stage of it, or a judge of a chunk.

    Attributes:
        id: Its own id, the same whenever the query is scored by the same metric and judge: who
            gets it twice may put one in the other's place.
        name: The metric's name; of a chunk's, `relevant[JUDGE]`, with more of the judge where two
            are of one kind.
        value: The number, in [0, 1]; None unless `status` is "scored".
        label: A chunk's verdict in a word; None for a metric's.
        explanation: Why, in the judge's words, or why there is no value. It may quote texts.
        status: "scored", "undefined", "failed" or "skipped"; see `MetricResult`.
        kind: Who judged: a "model", or "code".
        query_id: The query's id.
        run_id: The run's id that the score is of, as the framework knows it: the query's own, or
            a stage's; None where the stage has none.
        trace_id: The trace's id; None where the application was not traced.
        span_id: The span's id that the score is of: that of the retrieval, else, where there
            were several, the query's.
        stage: Which of the query's retrievals it is of, by its order; None: the query itself.
        sample_id: The id of what was expected; the query's where nothing was.
        chunk_index: Which of the stage's chunks it is of, 0 for the best; None for a metric's.
        chunk_id: That chunk's id.
        judge: Who judged, and how.
        version: The formula and its version.
        metadata: More, as plain data: `bounds` of a metric's; its chunks' verdicts by their ids;
            the `grade` and `similarity` of a chunk's.
    """

    id: str
    name: str
    value: float | None
    label: str | None
    explanation: str
    status: Status
    kind: Literal["model", "code"]
    query_id: str
    run_id: str | None
    trace_id: str | None
    span_id: str | None
    stage: int | None
    sample_id: str
    chunk_index: int | None
    chunk_id: str | None
    judge: str
    version: str
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def word(self) -> str | None:
        """Its label; where there is neither that nor a value, its status."""
        return self.status if self.label is None and self.value is None else self.label

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, for JSON."""
        return asdict(self)


def sendable(text: str) -> str:
    """Give a text as it can be sent anywhere: half a surrogate pair is written out."""
    return text.encode("utf-8", "backslashreplace").decode()


def scores_of(record: QueryRecord) -> list[Score]:
    """Give a query's scores: by each metric, and by each judge of each chunk.

    The stages' own scores follow those of the query, which are of the last stage.

    Args:
        record: The query. What is `pending` is left out.
    """
    final = record.final
    found = list(_Of(record, None).scores(record.scores, record.chunks()))
    for stage in record.retrievals:
        if stage is not final:
            found += _Of(record, stage).scores(stage.scores, stage.chunks)
    return found


class _Of:
    """What a query or a stage of it has in common for all its scores."""

    def __init__(self, record: QueryRecord, stage: Retrieval | None) -> None:
        self.record = record
        self.stage = stage

    def scores(
        self, results: Mapping[str, MetricResult], chunks: Sequence[Chunk]
    ) -> Iterator[Score]:
        judged: dict[tuple[str, str], Verdicts] = {}
        for name, result in results.items():
            verdicts, said = result.verdicts, {}
            if verdicts is not None and chunks and len(verdicts.chunks) == len(chunks):
                said = _by_id(chunks, verdicts)
                judged.setdefault((_chunk_name(result), verdicts.judge), verdicts)
            yield self._of_metric(name, result, said)
        names = [name for name, _ in judged]
        for (name, judge), verdicts in judged.items():
            own = name if names.count(name) == 1 else f"{name} {judge}"
            for index, verdict in enumerate(verdicts.chunks):
                yield self._of_chunk(own, judge, index, chunks[index], verdict)

    def _of_metric(self, name: str, result: MetricResult, said: dict[str, str]) -> Score:
        version, _, judge = result.signature.partition(" ")
        metadata: dict[str, Any] = {"bounds": result.bounds and list(result.bounds)}
        if said:
            metadata["chunks"] = said
        return self._score(
            name,
            result.signature,
            value=result.value,
            label=None,
            explanation=result.reason,
            status=result.status,
            stage=self.stage,
            judge=judge,
            version=version,
            metadata=metadata,
        )

    def _of_chunk(self, name: str, judge: str, index: int, chunk: Chunk, verdict: Verdict) -> Score:
        stage, place = self._whereabouts(index, chunk)
        return self._score(
            name,
            f"{judge} {index}",
            value=None if verdict.value is None else float(verdict.value),
            label=LABELS[verdict.value],
            explanation=verdict.reason,
            status="failed" if verdict.value is None else "scored",
            stage=stage,
            chunk_index=place,
            chunk_id=chunk.id,
            judge=judge,
            version="verdict/1",
            metadata={
                "grade": verdict.grade,
                **({} if verdict.similarity is None else {"similarity": verdict.similarity}),
            },
        )

    def _whereabouts(self, index: int, chunk: Chunk) -> tuple[Retrieval | None, int]:
        """Find the retrieval that a chunk is of, and its place there."""
        if self.stage is not None and self.stage.kind != "prompt":
            return self.stage, index
        final = self.record.final if self.stage is None else None
        if final is not None and final.kind != "prompt":
            return None, index
        for stage in reversed(self.record.stages()):  # of a prompt or a pool: the last that had it
            places = [n for n, one in enumerate(stage.chunks) if one.id == chunk.id]
            if stage.kind != "prompt" and places:
                return stage, places[0]
        return self.stage, index

    def _score(
        self,
        name: str,
        what: str,
        *,
        stage: Retrieval | None,
        judge: str,
        chunk_index: int | None = None,
        chunk_id: str | None = None,
        explanation: str,
        **said: Any,
    ) -> Score:
        record = self.record
        of = "" if self.stage is None else str(self.stage.order)
        where = stage or _retrieved(record)
        span = (where and where.traced) or (None if stage else record.traced)
        return Score(
            id=str(uuid.uuid5(_NAMESPACE, "\n".join([sendable(record.id), of, name, what]))),
            name=name,
            kind="model" if judge.startswith("llm") else "code",
            query_id=sendable(record.id),
            run_id=sendable(record.id) if stage is None else stage.run_id or None,
            trace_id=next((one.trace_id for one in (span, record.traced) if one), None),
            span_id=None if span is None else span.span_id,
            stage=None if stage is None else stage.order,
            sample_id=sendable((record.reference and record.reference.id) or record.id),
            chunk_index=chunk_index,
            chunk_id=None if chunk_id is None else sendable(chunk_id),
            judge=judge,
            explanation=sendable(explanation),
            **said,
        )


def _retrieved(record: QueryRecord) -> Retrieval | None:
    """Give the one stage that retrieved what the query's scores are of: no prompt retrieves."""
    stage = record.final
    if stage is None or stage.kind != "prompt":
        return stage
    others = [one for one in record.retrievals if one.outermost and one.kind != "prompt"]
    given = [one for one in others if one.order in stage.inputs] if stage.inputs else others
    return given[0] if len(given) == 1 else None


def _chunk_name(result: MetricResult) -> str:
    """Name what a judge says of chunks: by the judge and, of a model, what it judged them for."""
    judge = "" if result.verdicts is None else result.verdicts.judge.partition("(")[0]
    purpose = _PURPOSES.get(result.metric) if judge == "llm" else None
    return f"relevant[{judge}]" if purpose is None else f"relevant_to_{purpose}[{judge}]"


def _by_id(chunks: Sequence[Chunk], verdicts: Verdicts) -> dict[str, str]:
    said: dict[str, str] = {}
    for chunk, verdict in zip(chunks, verdicts.chunks, strict=True):
        id = sendable(chunk.id)
        name, n = id, 1
        while name in said:  # the same chunk again
            n += 1
            name = f"{id} ({n})"
        said[name] = LABELS[verdict.value]
    return said
