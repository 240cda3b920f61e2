"""Which span of the application's tracing a LlamaIndex span is."""

from __future__ import annotations

import sys

from ctxeval import TraceSpan, current_span

_OPENINFERENCE = "openinference.instrumentation.llama_index"

_TRACERS = ("opentelemetry.trace", "mlflow", _OPENINFERENCE)


def is_traced() -> bool:
    """Say whether anything is loaded that could be tracing the application.

    To be asked once per query: looking for spans that nobody makes would double what a
    retrieval costs.
    """
    return not sys.modules.keys().isdisjoint(_TRACERS)


def span_of_query() -> TraceSpan | None:
    """Give the span of the query that begins or ends here and now, or the one around it."""
    return _by_openinference() or current_span()


def span_of_stage() -> TraceSpan | None:
    """Give the span of the stage that begins or ends here and now, where it has one of its own."""
    return _by_openinference() or current_span(retrieval=True)


def _by_openinference() -> TraceSpan | None:
    module = sys.modules.get(_OPENINFERENCE)
    if module is None:
        return None
    try:
        if not module.LlamaIndexInstrumentor().is_instrumented_by_opentelemetry:
            return None  # found out at a tenth of what its own search costs
        return TraceSpan.of(module.get_current_span())
    except Exception:  # of a version that is yet to come
        return None
