"""Where in a trace something happened, as the application's own tracing knows it."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple


class TraceSpan(NamedTuple):
    """A span of a trace, by OpenTelemetry's ids.

    Attributes:
        trace_id: The trace's id: 32 hexadecimal digits.
        span_id: The span's id: 16 hexadecimal digits.
    """

    trace_id: str
    span_id: str

    @classmethod
    def of(cls, span: Any) -> TraceSpan | None:
        """Take an OpenTelemetry span's ids; None where it is none, or belongs to no trace."""
        context = getattr(span, "get_span_context", lambda: None)()
        if context is None or not context.is_valid or not context.trace_flags.sampled:
            return None  # what is not sampled is nowhere to be found
        return cls(f"{context.trace_id:032x}", f"{context.span_id:016x}")


_RETRIEVERS = {
    "gen_ai.operation.name": "retrieval",
    "openinference.span.kind": "RETRIEVER",
    "langfuse.observation.type": "retriever",
}
"""What tells a retriever's span, by the conventions that are about."""


def current_span(*, retrieval: bool = False) -> TraceSpan | None:
    """Give the span that the code is running in: OpenTelemetry's, else MLflow's own.

    Asks only what the application has loaded, and never raises.

    Args:
        retrieval: Only give a span that says that it is a retriever's?
    """
    if "opentelemetry.trace" not in sys.modules and "mlflow" not in sys.modules:
        return None  # applications wait for this
    try:
        return _of_opentelemetry(retrieval) or _of_mlflow(retrieval)
    except Exception:
        return None


def _of_opentelemetry(retrieval: bool) -> TraceSpan | None:
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    span = trace.get_current_span()
    if span is trace.INVALID_SPAN:
        return None
    if retrieval:
        said = getattr(span, "attributes", None) or {}
        if not any(said.get(name) == value for name, value in _RETRIEVERS.items()):
            return None
    return TraceSpan.of(span)


def _of_mlflow(retrieval: bool) -> TraceSpan | None:
    mlflow = sys.modules.get("mlflow")
    span = None if mlflow is None else mlflow.get_current_active_span()
    if span is None or (retrieval and span.span_type != "RETRIEVER"):
        return None
    return TraceSpan(span.trace_id.removeprefix("tr-"), span.span_id)
