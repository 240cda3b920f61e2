"""Scores for LangSmith, as feedback."""

from __future__ import annotations

import inspect
import os
import uuid
from typing import Any

from ctxeval.errors import InvalidArgumentError, NotTracedError
from ctxeval.export.refusals import refusal
from ctxeval.export.score import Score, scores_of
from ctxeval.keys import as_cause
from ctxeval.record.query import QueryRecord


class LangSmith:
    """Sends a query's scores as feedback on its run, and those of its stages on theirs.

    A score without a value is sent as feedback with a `value`, its status, and no `score`. What
    was said of the chunks is in the feedback's source.

    Args:
        client: A `langsmith.Client`.
        project: The project that the runs are in; None: that of the environment, as for tracing.
        content: Also send explanations, as comments? They may quote texts.
        name: What to call it where deliveries are counted.

    Raises:
        InvalidArgumentError: It is no such client.
    """

    def __init__(
        self,
        client: Any,
        *,
        project: str | None = None,
        content: bool = False,
        name: str = "langsmith",
    ) -> None:
        """See the class."""
        if not callable(getattr(client, "create_feedback", None)):
            raise InvalidArgumentError(
                f"client: a {type(client).__name__} takes no feedback: give a langsmith.Client"
            )
        if inspect.iscoroutinefunction(client.create_feedback):
            raise InvalidArgumentError(
                f"client: a {type(client).__name__} is asynchronous: give a langsmith.Client"
            )
        self.name = name
        self._client = client
        self._content = content
        self._project = project
        self._session_id: Any = None

    def __repr__(self) -> str:
        """Show its name."""
        return f"<LangSmith {self.name!r}>"

    def export(self, record: QueryRecord) -> None:
        """Send a query's scores.

        Raises:
            NotTracedError: The query is no run of LangSmith's.
            ExportError: LangSmith did not take them.
        """
        if not _is_run(record.id):
            raise NotTracedError(
                f"{self.name}: {record.id!r} is no run of LangSmith's: LangChain's queries are"
            )
        try:
            if self._session_id is None:
                self._session_id = self._client.read_project(project_name=self._project_name()).id
            for score in scores_of(record):
                if score.chunk_index is None and _is_run(score.run_id):
                    self._send(score, record)
        except Exception as error:
            raise refusal(self.name, error) from as_cause(error)

    def _project_name(self) -> str:
        names = ("LANGSMITH_PROJECT", "LANGCHAIN_PROJECT")
        found = (os.environ.get(name) for name in names)
        return self._project or next((one for one in found if one), "default")

    def _send(self, score: Score, record: QueryRecord) -> None:
        # Without trace_id: with one it is queued, and nobody is told of what could not be sent.
        self._client.create_feedback(
            run_id=score.run_id,
            key=score.name,
            score=score.value,
            value=score.status if score.value is None else None,
            comment=score.explanation if self._content and score.explanation else None,
            feedback_id=score.id,
            feedback_source_type="model" if score.kind == "model" else "api",
            source_info={
                "status": score.status,
                "judge": score.judge,
                "version": score.version,
                "sample_id": score.sample_id,
                "exact": score.value,  # LangSmith rounds to four digits
                **score.metadata,
            },
            error=True if score.status == "failed" else None,
            session_id=self._session_id,
            start_time=record.started,
            stop_after_attempt=1,
        )


def _is_run(id: str | None) -> bool:
    try:
        uuid.UUID(id or "")
    except ValueError:
        return False
    return True
