"""Scored records for exporters, made by a real recorder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ctxeval import Chunk, QueryRecord, Recorder, Retrieval, TraceSpan
from ctxeval.testing import ScriptedLLM

BEGUN = datetime(2026, 5, 1, 12, tzinfo=UTC)
QUESTION = "Where do the geese winter?"
ANSWER = "By the Ouse."
RUN = "0198a1b2-0000-7000-8000-00000000000{}"
TRACE = "1f" * 16
LEAKS = (QUESTION, ANSWER, "The geese rest", "by script", "secret-note")
"""Content: what must not be sent unless it is asked for."""


def chunks(ids: Sequence[str]) -> tuple[Chunk, ...]:
    """Make chunks, each a tenth less alike than the one before."""
    return tuple(
        Chunk(
            rank,
            id,
            "document_id",
            f"The geese rest at {id}.",
            (9 - rank) / 10,
            metadata={"note": "secret-note"},
        )
        for rank, id in enumerate(ids)
    )


def a_query(id: str = RUN.format(0), **fields: Any) -> QueryRecord:
    """Make a query of a reranker around a vector store, which lost nothing but the order."""
    reranker = Retrieval(
        QUESTION,
        chunks(["c", "a"]),
        "Reranker",
        "rerank",
        latency=0.5,
        started=BEGUN + timedelta(seconds=0.25),
        run_id=RUN.format(1),
    )
    inner = Retrieval(
        QUESTION,
        chunks(["a", "b", "c"]),
        "VectorStore",
        parent=0,
        order=1,
        latency=0.25,
        started=BEGUN + timedelta(seconds=0.375),
        run_id=RUN.format(2),
    )
    made = QueryRecord(
        id,
        QUESTION,
        ANSWER,
        retrievals=[reranker, inner],
        started=BEGUN,
        ended=BEGUN + timedelta(seconds=1),
    )
    return replace(made, **fields)


def traced(record: QueryRecord, span: int = 0xA) -> QueryRecord:
    """Say that an application's tracing saw the query and its two stages."""
    record.traced = TraceSpan(TRACE, f"{span:016x}")
    for stage in record.retrievals:
        stage.traced = TraceSpan(TRACE, f"{span + 1 + stage.order:016x}")
    return record


def scored(
    record: QueryRecord,
    metrics: Any = ("ndcg@10", "id_based_context_recall", "context_relevance"),
    references: Sequence[Mapping[str, Any]] = (
        {"id": "s-1", "user_input": QUESTION, "reference_context_ids": ["a"]},
    ),
    **options: Any,
) -> QueryRecord:
    """Score a record as a recorder does."""
    llm = ScriptedLLM(relevant={"The geese rest at a."})
    recorder = Recorder(metrics, references, llm, **options)
    recorder.submit(recorder.next_order(), record.id, lambda: record)
    assert recorder.flush(30)
    return record


def without_value(record: QueryRecord) -> QueryRecord:
    """Let one of its scores fail, one be undefined and one be skipped."""
    for name, status in zip(record.scores, ("failed", "undefined", "skipped"), strict=True):
        record.scores[name] = replace(
            record.scores[name], value=None, status=status, reason=f"by script: {status}"
        )
    return record
