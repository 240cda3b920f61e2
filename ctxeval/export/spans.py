"""Spans of a query that nobody else has traced: their ids are made of the query's own."""

from __future__ import annotations

import hashlib

from ctxeval.record.query import QueryRecord, Retrieval
from ctxeval.record.tracing import TraceSpan


def made_span(record: QueryRecord, stage: Retrieval | None = None) -> TraceSpan:
    """Give the span that stands for a query, or for a stage of it, the same one every time."""
    trace_id = _hash(record.id, 32) if record.traced is None else record.traced.trace_id
    if stage is None:
        return TraceSpan(trace_id, _hash(f"{record.id}\nquery", 16))
    if stage.traced is not None:
        trace_id = stage.traced.trace_id
    return TraceSpan(trace_id, _hash(f"{record.id}\nstage {stage.order}", 16))


def locate(record: QueryRecord) -> None:
    """Put a query that nobody else has traced, and such stages, where their spans will be."""
    if record.traced is None:
        first = next((one.traced for one in record.retrievals if one.traced is not None), None)
        record.traced = first or made_span(record)
    for stage in record.retrievals:
        if stage.traced is None and stage.kind != "prompt":
            stage.traced = made_span(record, stage)


def _hash(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
