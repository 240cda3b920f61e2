"""One query captured from an application, with every retrieval inside it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ctxeval.record.tracing import TraceSpan
from ctxeval.result import MetricResult, results_from_dict, results_to_dict
from ctxeval.sample import Sample, Span

QueryStatus = Literal["ok", "incomplete", "error", "cancelled", "abandoned"]

TEXT_HASH = "text_hash"
"""The `id_source` of an id that is only a hash of the chunk's text."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One retrieved piece of text.

    Attributes:
        rank: Its place, 0 for the best.
        id: Its id.
        id_source: Where the id came from: `document_id`, `node_id`, `metadata:<key>`,
            `text_hash`, …
        text: Its text.
        score: What the retriever gave it, where known.
        span: Where in its document it stands, where known.
        metadata: What the application keeps with it.
    """

    rank: int
    id: str
    id_source: str
    text: str
    score: float | None = None
    span: Span | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, for JSON."""
        return {**_fields(self), "span": self.span and self.span.model_dump()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Chunk:
        """Read what `to_dict` wrote, also after a way through JSON."""
        return cls(**{**data, "span": data["span"] and Span(**data["span"])})


def text_id(text: str) -> str:
    """Name a chunk by its text, where it has no id of its own."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(slots=True)
class Retrieval:
    """One retriever run inside a query.

    Attributes:
        query: What the retriever was asked, which may differ from the question.
        chunks: What it gave, best first.
        name: The retriever's name.
        kind: "retrieve", "rerank" or "prompt" (what reached the model's prompt).
        parent: The order of the retrieval that it ran inside of, None for an outermost one.
        order: Its place among the query's retrievals, in order of starting.
        latency: How many seconds it took.
        error: What went wrong; "" where nothing did.
        scores: Its own results by id and by text, by the metric's name.
        inputs: The orders of the retrievals whose chunks it was given, as far as is known, if
            it is no "retrieve".
        started: When it began, where known.
        run_id: Its own run's id, as its framework knows it; "" where that has none.
        traced: Its own span in the application's trace, where it has one.
    """

    query: str
    chunks: tuple[Chunk, ...] = ()
    name: str = ""
    kind: Literal["retrieve", "rerank", "prompt"] = "retrieve"
    parent: int | None = None
    order: int = 0
    latency: float = 0.0
    error: str = ""
    scores: dict[str, MetricResult] = field(default_factory=dict)
    inputs: tuple[int, ...] = ()
    started: datetime | None = None
    run_id: str = ""
    traced: TraceSpan | None = None

    @property
    def outermost(self) -> bool:
        """Did it run inside of no other retrieval?"""
        return self.parent is None

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, for JSON."""
        return {
            **_fields(self),
            "chunks": [chunk.to_dict() for chunk in self.chunks],
            "scores": results_to_dict(self.scores),
            "started": self.started and self.started.isoformat(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Retrieval:
        """Read what `to_dict` wrote, also after a way through JSON."""
        read = {
            "chunks": tuple(Chunk.from_dict(chunk) for chunk in data["chunks"]),
            "scores": results_from_dict(data["scores"]),
            "inputs": tuple(data["inputs"]),
            "started": _moment(data.get("started")),
            "traced": _traced(data.get("traced")),
        }
        return cls(**{**data, **read})


@dataclass(slots=True)
class QueryRecord:
    """One query captured from an application.

    Attributes:
        id: The query's id, as its framework knows it.
        question: What was asked.
        answer: What the application answered; None where it gave none or is a retriever.
        status: "ok"; "incomplete" (the answer was cut short), "error", "cancelled",
            "abandoned" (it never ended).
        retrievals: Every retriever run, in order of starting.
        scores: The results so far, by the metric's name.
        pending: The names of the metrics that are still being judged.
        metadata: What the application passed along.
        started: When it began.
        ended: When it ended.
        reference: What was expected, where it was found.
        unreferenced: Why no expectation was found; "" where one was.
        traced: The span of the application's trace that it ran in, where there was one.
    """

    id: str
    question: str
    answer: str | None = None
    status: QueryStatus = "ok"
    retrievals: list[Retrieval] = field(default_factory=list)
    scores: dict[str, MetricResult] = field(default_factory=dict)
    pending: frozenset[str] = frozenset()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    started: datetime | None = None
    ended: datetime | None = None
    reference: Sample | None = None
    unreferenced: str = ""
    traced: TraceSpan | None = None

    def stages(self) -> list[Retrieval]:
        """Give the retrievals as a funnel: inner ones before those that they ran inside of."""
        depth = {retrieval.order: self._depth(retrieval) for retrieval in self.retrievals}
        return sorted(self.retrievals, key=lambda one: (-depth[one.order], one.order))

    def _depth(self, retrieval: Retrieval) -> int:
        by_order = {one.order: one for one in self.retrievals}
        depth = 0
        while retrieval.parent is not None and retrieval.parent in by_order:
            retrieval = by_order[retrieval.parent]
            depth += 1
        return depth

    @property
    def final(self) -> Retrieval | None:
        """The one stage that gave `chunks()`; None where there is none, or they were pooled."""
        last = self._last()
        return last[0] if len(last) == 1 else None

    def chunks(self) -> tuple[Chunk, ...]:
        """Give what the query retrieved: what reached the prompt, or the outermost's chunks.

        With several outermost retrievals: their chunks in order of starting, without
        those whose id has been there.
        """
        if self.final is not None:
            return self.final.chunks
        pool: dict[str, Chunk] = {}
        for chunk in (chunk for one in self._last() for chunk in one.chunks):
            pool.setdefault(chunk.id, chunk)
        return tuple(pool.values())

    def _last(self) -> list[Retrieval]:
        """Give the stages behind which there is none."""
        outermost = [one for one in self.retrievals if one.outermost and not one.error]
        taken = {order for one in outermost for order in one.inputs}
        last = [one for one in outermost if one.order not in taken]
        # A prompt that does not know its inputs holds whatever was retrieved.
        return [one for one in last if one.kind == "prompt" and not one.inputs] or last

    @property
    def condensed(self) -> str | None:
        """The question as its retrievers were asked it, by a chat engine, say: if all agree."""
        asked = {one.query for one in self.retrievals if one.outermost and one.kind == "retrieve"}
        return asked.pop() if len(asked) == 1 else None

    @property
    def pooled(self) -> bool:
        """Do the chunks come from several retrievals, so that their ranks mean little?"""
        return len(self._last()) > 1

    @property
    def retrieval_error(self) -> str:
        """Why nothing is known of what was retrieved; "" where something is."""
        if self._last() or not self.retrievals:
            return ""
        return next((one.error for one in self.retrievals if one.outermost), "")

    def sample(self, stage: Retrieval | None = None) -> Sample:
        """Make a sample of what was retrieved and what was expected.

        Args:
            stage: The retrieval in question; None: what the query as a whole retrieved.

        Returns:
            A sample. It has no ids where all of them are hashes of the texts and none of
            these is expected, and no response where the query did not end well.
        """
        chunks = self.chunks() if stage is None else stage.chunks
        expected = self.reference or Sample()
        ids: Sequence[str] | None = [chunk.id for chunk in chunks]
        if chunks and all(chunk.id_source == TEXT_HASH for chunk in chunks):
            known = expected.reference_context_ids or ()
            if not any(chunk.id in known for chunk in chunks):
                ids = None
        spans = [chunk.span for chunk in chunks]
        return expected.model_copy(
            update={
                "id": expected.id or self.id,
                "user_input": self.question,
                "retrieved_contexts": [chunk.text for chunk in chunks],
                "retrieved_context_ids": ids,
                "retrieved_spans": spans if chunks and all(spans) else None,
                "response": self.answer if self.status == "ok" else None,
                "metadata": {**expected.metadata, **self.metadata},
            }
        )

    def as_reference(self, relevant_ids: Sequence[object]) -> Sample:
        """Turn the record into ground truth.

        Args:
            relevant_ids: The ids of the chunks that should be retrieved.

        Returns:
            A sample to put among the references.
        """
        return Sample(user_input=self.question, reference_context_ids=relevant_ids)

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, for JSON."""
        return {
            **_fields(self),
            "retrievals": [one.to_dict() for one in self.retrievals],
            "scores": results_to_dict(self.scores),
            "pending": sorted(self.pending),
            "started": self.started and self.started.isoformat(),
            "ended": self.ended and self.ended.isoformat(),
            "reference": self.reference and self.reference.model_dump(exclude_none=True),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> QueryRecord:
        """Read what `to_dict` wrote, also after a way through JSON."""
        read = {
            "retrievals": [Retrieval.from_dict(one) for one in data["retrievals"]],
            "scores": results_from_dict(data["scores"]),
            "pending": frozenset(data["pending"]),
            "started": _moment(data["started"]),
            "ended": _moment(data["ended"]),
            "reference": data["reference"] and Sample(**data["reference"]),
            "traced": _traced(data.get("traced")),
        }
        return cls(**{**data, **read})


def _fields(one: Chunk | Retrieval | QueryRecord) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__slots__}


def _moment(written: str | None) -> datetime | None:
    return None if written is None else datetime.fromisoformat(written)


def _traced(written: Sequence[str] | None) -> TraceSpan | None:
    return None if written is None else TraceSpan(*written)


def question_ids(records: Iterable[QueryRecord]) -> list[str]:
    """Name records so that the same question has the same name whenever it is asked again.

    A framework's ids differ from run to run: by these names two runs are compared.

    Args:
        records: The records, in order of asking.

    Returns:
        Of each the id of its reference, or else a hash of its question; "#2", "#3", … follow
        where it was asked before.
    """
    asked: Counter[str] = Counter()
    names = []
    for record in records:
        expected = record.reference or Sample()
        name = expected.id or Sample(user_input=record.question).key
        asked[name] += 1
        names.append(name if asked[name] == 1 else f"{name}#{asked[name]}")
    return names
