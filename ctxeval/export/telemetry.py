"""A query as OpenTelemetry's SDK has it. Imports the SDK, so it is loaded at its first use.

The attributes' names are those of the GenAI conventions (retrieval spans, evaluation events)
and of OpenInference; what neither has a name for is called `ctxeval.…`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Status, StatusCode

from ctxeval.errors import ExportError
from ctxeval.export.score import Score, scores_of, sendable
from ctxeval.export.spans import made_span
from ctxeval.record.query import Chunk, QueryRecord, Retrieval
from ctxeval.record.tracing import TraceSpan
from ctxeval.store.plain import written

EVENT = "gen_ai.evaluation.result"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCOPE = "ctxeval"


class _Given(IdGenerator):
    """Gives the ids that it was told to, so that a span is the same whenever it is sent."""

    next: TraceSpan

    def generate_trace_id(self) -> int:
        return int(self.next.trace_id, 16)

    def generate_span_id(self) -> int:
        return int(self.next.span_id, 16)


class _Ended(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


class _Emitted(LogRecordProcessor):
    def __init__(self) -> None:
        self.records: list[Any] = []

    def on_emit(self, log_record: Any) -> None:
        self.records.append(log_record)

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True


def send(exporter: Any, made: Sequence[Any], what: str) -> None:
    """Have an exporter send what was made.

    Raises:
        ExportError: It did not.
    """
    if made and (result := exporter.export(made)).name != "SUCCESS":
        kind = type(exporter).__name__
        raise ExportError(
            f"{what} could not be sent: {kind} says {result.name}. Is its endpoint up, and the "
            "key right? Its own log says more"
        )


def spans(record: QueryRecord, resource: Resource, content: bool) -> list[ReadableSpan]:
    """Make the spans of a query's retrievals, and of the query, where nobody else has traced it."""
    ids, ended = _Given(), _Ended()
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=resource,
        shutdown_on_exit=False,
        id_generator=ids,
        # With the usual 128, sixty documents would push out what the span is.
        span_limits=SpanLimits(max_span_attributes=SpanLimits.UNSET),
    )
    provider.add_span_processor(ended)
    tracer = provider.get_tracer(_SCOPE)
    begun = _begun(record)

    def begin(name: str, span: TraceSpan, below: TraceSpan | None, at: datetime) -> trace.Span:
        ids.next = span
        return tracer.start_span(name, _context(below), start_time=_nanoseconds(at))

    whole = made_span(record)
    if record.traced in (None, whole):
        span = begin("query", whole, None, begun)
        span.set_attributes(_of_query(record, content))
        if record.status in ("error", "cancelled"):
            span.set_status(Status(StatusCode.ERROR))
        span.end(_nanoseconds(max(begun, record.ended or begun)))
    for stage in record.retrievals:
        if stage.kind == "prompt":
            continue
        own = made_span(record, stage)
        below = record.traced if stage.traced in (None, own) else stage.traced
        start = stage.started or begun
        span = begin("retrieval", own, below, start)
        span.set_attributes(_of_retrieval(record, stage, content))
        if stage.error:
            span.set_status(Status(StatusCode.ERROR, sendable(stage.error) if content else None))
        span.end(_nanoseconds(start + timedelta(seconds=stage.latency)))
    return ended.spans


def _of_query(record: QueryRecord, content: bool) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "openinference.span.kind": "CHAIN",
        "ctxeval.query.id": sendable(record.id),
        "ctxeval.query.status": record.status,
    }
    if content:
        attributes["input.value"] = sendable(record.question)
        if record.answer is not None:
            attributes["output.value"] = sendable(record.answer)
    return attributes


def _of_retrieval(record: QueryRecord, stage: Retrieval, content: bool) -> dict[str, Any]:
    documents = [{"id": sendable(chunk.id), "score": chunk.score} for chunk in stage.chunks]
    attributes: dict[str, Any] = {
        "openinference.span.kind": "RETRIEVER",
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": json.dumps(documents),
        "ctxeval.query.id": sendable(record.id),
        "ctxeval.retrieval.name": stage.name,
        "ctxeval.retrieval.kind": stage.kind,
        "ctxeval.retrieval.order": stage.order,
    }
    if stage.error:
        attributes["error.type"] = stage.error.partition(":")[0] if ":" in stage.error else "_OTHER"
    if content:
        attributes["input.value"] = sendable(stage.query)
        attributes["gen_ai.retrieval.query.text"] = sendable(stage.query)
    for n, chunk in enumerate(stage.chunks):
        attributes |= _of_document(f"retrieval.documents.{n}.document", chunk, content)
    return attributes


def _of_document(prefix: str, chunk: Chunk, content: bool) -> dict[str, Any]:
    attributes: dict[str, Any] = {f"{prefix}.id": sendable(chunk.id)}
    if chunk.score is not None:
        attributes[f"{prefix}.score"] = chunk.score
    if content:
        attributes[f"{prefix}.content"] = sendable(chunk.text)
        if chunk.metadata:
            attributes[f"{prefix}.metadata"] = written(chunk.metadata)
    return attributes


def events(record: QueryRecord, resource: Resource, content: bool) -> list[Any]:
    """Make an event for each score of a query."""
    emitted = _Emitted()
    provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_log_record_processor(emitted)
    logger = provider.get_logger(_SCOPE)
    at = _nanoseconds(record.ended or _begun(record))
    for score in scores_of(record):
        logger.emit(
            event_name=EVENT,
            timestamp=at,
            observed_timestamp=at,
            context=_context(_evaluated(score, record)),
            attributes=_of_score(score, content),
        )
    return emitted.records


def _evaluated(score: Score, record: QueryRecord) -> TraceSpan | None:
    if score.trace_id is not None and score.span_id is not None:
        return TraceSpan(score.trace_id, score.span_id)
    return record.traced  # a prompt has no span of its own


def _of_score(score: Score, content: bool) -> Mapping[str, Any]:
    attributes = {
        "gen_ai.evaluation.name": score.name,
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": score.word,
        "gen_ai.evaluation.explanation": (score.explanation or None) if content else None,
        "error.type": "not_judged" if score.status == "failed" else None,
        "ctxeval.score.id": score.id,
        "ctxeval.score.status": score.status,
        "ctxeval.score.kind": score.kind,
        "ctxeval.score.version": score.version,
        "ctxeval.judge": score.judge,
        "ctxeval.query.id": score.query_id,
        "ctxeval.sample.id": score.sample_id,
        "ctxeval.retrieval.order": score.stage,
        "ctxeval.chunk.index": score.chunk_index,
        "ctxeval.chunk.id": score.chunk_id,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _begun(record: QueryRecord) -> datetime:
    return record.started or record.ended or _EPOCH


def _context(below: TraceSpan | None) -> Context:
    if below is None:
        return Context()
    context = trace.SpanContext(
        int(below.trace_id, 16),
        int(below.span_id, 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(context), Context())


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
