"""Which span of the application's tracing a run is."""

from __future__ import annotations

import sys
from uuid import UUID

from ctxeval import TraceSpan, current_span

_OPENINFERENCE = "openinference.instrumentation.langchain"


def span_of_query(run_id: int) -> TraceSpan | None:
    """Give the span of a query's run, or the one that it began in."""
    return _by_openinference(run_id) or current_span()


def span_of_retrieval(run_id: int) -> TraceSpan | None:
    """Give the span of a retriever's run, where that has one of its own."""
    return _by_openinference(run_id) or current_span(retrieval=True)


def _by_openinference(run_id: int) -> TraceSpan | None:
    module = sys.modules.get(_OPENINFERENCE)
    if module is None:
        return None
    try:
        instrumentor = module.LangChainInstrumentor()
        if not instrumentor.is_instrumented_by_opentelemetry:
            return None
        return TraceSpan.of(instrumentor.get_span(UUID(int=run_id)))
    except Exception:  # of a version that is yet to come
        return None
