"""Scores for Phoenix: annotations of spans, and of the documents that they retrieved."""

from __future__ import annotations

import inspect
from typing import Any

from ctxeval.errors import InvalidArgumentError, NotTracedError
from ctxeval.export.refusals import refusal
from ctxeval.export.score import Score, scores_of
from ctxeval.keys import as_cause
from ctxeval.record.query import QueryRecord


class Phoenix:
    """Sends scores as annotations of the spans that retrieved, and verdicts as their documents'.

    The spans are those of the application, by OpenInference say; where it has none, give an
    `OpenTelemetry` exporter too, which makes them.

    Args:
        client: A `phoenix.client.Client`.
        content: Also send explanations, which may quote texts?
        name: What to call it where deliveries are counted.

    Raises:
        InvalidArgumentError: It is no such client.
    """

    def __init__(self, client: Any, *, content: bool = False, name: str = "phoenix") -> None:
        """See the class."""
        if not callable(getattr(getattr(client, "spans", None), "log_span_annotations", None)):
            raise InvalidArgumentError(
                f"client: a {type(client).__name__} can't annotate: give a phoenix.client.Client"
            )
        if inspect.iscoroutinefunction(client.spans.log_span_annotations):
            raise InvalidArgumentError(
                f"client: a {type(client).__name__} is asynchronous: give a phoenix.client.Client"
            )
        self.name = name
        self._client = client
        self._content = content

    def __repr__(self) -> str:
        """Show its name."""
        return f"<Phoenix {self.name!r}>"

    def export(self, record: QueryRecord) -> None:
        """Send a query's scores.

        Raises:
            NotTracedError: The query is in no trace.
            ExportError: Phoenix did not take them.
        """
        scores = [score for score in scores_of(record) if score.span_id is not None]
        if not scores:
            raise NotTracedError(
                f"{self.name}: the query {record.id} is in no trace: trace the application, or "
                "give an OpenTelemetry exporter too"
            )
        spans = self._client.spans
        of_spans = [self._annotation(one) for one in scores if one.chunk_index is None]
        of_documents = [
            {**self._annotation(one), "document_position": one.chunk_index, "identifier": ""}
            for one in scores
            if one.chunk_index is not None
        ]
        try:
            if of_spans:
                spans.log_span_annotations(span_annotations=of_spans, sync=True)
            if of_documents:
                spans.log_document_annotations(document_annotations=of_documents, sync=True)
        except Exception as error:
            raise refusal(self.name, error) from as_cause(error)

    def _annotation(self, score: Score) -> dict[str, Any]:
        result = {
            "score": score.value,
            "label": score.word,
            "explanation": score.explanation if self._content and score.explanation else None,
        }
        metadata = {
            "status": score.status,
            "judge": score.judge,
            "version": score.version,
            "query_id": score.query_id,
            "sample_id": score.sample_id,
            "chunk_id": score.chunk_id,
        }
        return {
            "name": score.name,
            "annotator_kind": "LLM" if score.kind == "model" else "CODE",
            "span_id": score.span_id,
            # What has the same name, span and identifier takes the earlier one's place. Documents
            # have none: there, it is their position.
            "identifier": score.id,
            "result": {key: value for key, value in result.items() if value is not None},
            "metadata": {key: value for key, value in metadata.items() if value is not None},
        }
