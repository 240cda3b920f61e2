"""Scores for OpenTelemetry: retrieval spans, and an event for each score of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxeval.errors import InvalidArgumentError
from ctxeval.export.spans import locate
from ctxeval.extras import load
from ctxeval.record.query import QueryRecord

if TYPE_CHECKING:
    from opentelemetry.sdk._logs.export import LogRecordExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import SpanExporter


class OpenTelemetry:
    """Sends retrieval spans and `gen_ai.evaluation.result` events by the GenAI conventions.

    A span is made for each retrieval, below the span that the application retrieved in, with
    the documents' ids and scores; OpenInference's attributes are there too. Events belong to
    the span that retrieved. Both have the same ids and times however often they are sent.

    Args:
        spans: An exporter of spans, `OTLPSpanExporter()` say. None: no spans.
        logs: An exporter of log records, `OTLPLogExporter()` say. None: no events.
        content: Also send questions, answers, chunks' texts and metadata, and explanations?
        resource: What they come from; None: what the environment says.
        name: What to call it where deliveries are counted.

    Raises:
        InvalidArgumentError: There is no exporter, or it is none.
        MissingExtraError: opentelemetry-sdk is not installed.
    """

    def __init__(
        self,
        spans: SpanExporter | None = None,
        logs: LogRecordExporter | None = None,
        *,
        content: bool = False,
        resource: Resource | None = None,
        name: str = "opentelemetry",
    ) -> None:
        """See the class."""
        for what, exporter in (("spans", spans), ("logs", logs)):
            if exporter is not None and not callable(getattr(exporter, "export", None)):
                raise InvalidArgumentError(
                    f"{what}: a {type(exporter).__name__} exports nothing: give an exporter of "
                    f"OpenTelemetry's SDK, OTLPSpanExporter() or OTLPLogExporter() say"
                )
        if spans is None and logs is None:
            raise InvalidArgumentError(
                "OpenTelemetry() was given no exporter: give spans= or logs="
            )
        sdk = load("opentelemetry.sdk.resources", "ctxeval.export.OpenTelemetry", "otel")
        self.name = name
        self.makes_spans = spans is not None
        self._spans = spans
        self._logs = logs
        self._content = content
        self._resource = resource or sdk.Resource.create()

    def __repr__(self) -> str:
        """Show its name."""
        return f"<OpenTelemetry {self.name!r}>"

    def export(self, record: QueryRecord) -> None:
        """Send a query's retrievals and scores.

        Raises:
            ExportError: An exporter did not take them.
        """
        from ctxeval.export import telemetry

        if self._spans is not None:
            locate(record)
            made: Any = telemetry.spans(record, self._resource, self._content)
            telemetry.send(self._spans, made, f"{self.name}: spans")
        if self._logs is not None:
            made = telemetry.events(record, self._resource, self._content)
            telemetry.send(self._logs, made, f"{self.name}: events")
