"""Scores for Langfuse."""

from __future__ import annotations

from typing import Any

from ctxeval.errors import ExportError, InvalidArgumentError, NotTracedError
from ctxeval.export.refusals import refusal
from ctxeval.export.score import Score, scores_of
from ctxeval.keys import as_cause
from ctxeval.record.query import QueryRecord


class Langfuse:
    """Sends a query's scores to its trace, and those of its stages to their observations.

    A score without a value is sent as a category, its status. What was said of the chunks is in
    the score's metadata.

    Args:
        client: A `langfuse.Langfuse`, of version 5 or later.
        content: Also send explanations, as comments? They may quote texts.
        name: What to call it where deliveries are counted.

    Raises:
        InvalidArgumentError: It is no such client.
    """

    def __init__(self, client: Any, *, content: bool = False, name: str = "langfuse") -> None:
        """See the class."""
        if not callable(getattr(client, "create_score", None)):
            raise InvalidArgumentError(
                f"client: a {type(client).__name__} takes no scores: give a langfuse.Langfuse"
            )
        self.name = name
        self._client = client
        self._content = content

    def __repr__(self) -> str:
        """Show its name."""
        return f"<Langfuse {self.name!r}>"

    def export(self, record: QueryRecord) -> None:
        """Send a query's scores.

        Raises:
            NotTracedError: The query is in no trace.
            ExportError: Langfuse did not take them.
        """
        scores = [
            score
            for score in scores_of(record)
            if score.chunk_index is None and (score.stage is None or score.span_id is not None)
        ]
        if record.traced is None and not any(one.traced for one in record.retrievals):
            raise NotTracedError(
                f"{self.name}: the query {record.id} is in no trace: trace the application with "
                "Langfuse (in asynchronous code set run_inline = True on its handler), or give an "
                "OpenTelemetry exporter too"
            )
        if not scores:
            return
        # Not by create_score: that one queues, and tells nobody of what it could not send.
        try:
            taken = self._client.api.scores.create(
                request=[self._score(one, record) for one in scores]
            )
        except TypeError as error:
            raise ExportError(f"{self.name}: pip install 'langfuse>=5': {error}") from error
        except Exception as error:
            raise refusal(self.name, error) from as_cause(error)
        if getattr(taken, "rejected", 0):
            first = taken.errors[0].message if taken.errors else "it does not say why"
            raise ExportError(f"{self.name}: {taken.rejected} scores were rejected: {first}")

    def _score(self, score: Score, record: QueryRecord) -> dict[str, Any]:
        at = record.ended or record.started
        made = {
            "id": score.id,
            "timestamp": None if at is None else at.isoformat(),  # an update has the same one
            "traceId": score.trace_id,
            "observationId": None if score.stage is None else score.span_id,
            "name": score.name,
            "value": score.status if score.value is None else score.value,
            "dataType": "CATEGORICAL" if score.value is None else "NUMERIC",
            "comment": score.explanation if self._content and score.explanation else None,
            "environment": getattr(self._client, "_environment", None),
            "metadata": {
                "status": score.status,
                "kind": score.kind,
                "judge": score.judge,
                "version": score.version,
                "query_id": score.query_id,
                "sample_id": score.sample_id,
                **score.metadata,
            },
        }
        return {key: value for key, value in made.items() if value is not None}
