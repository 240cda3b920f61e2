"""Scores for MLflow, as feedback on traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from ctxeval.errors import InvalidArgumentError, NotTracedError
from ctxeval.export.refusals import refusal
from ctxeval.export.score import Score, scores_of
from ctxeval.keys import as_cause
from ctxeval.record.query import QueryRecord

ID = "ctxeval.score_id"
"""The key of feedback's metadata under which its score's id stands."""

_LONGEST = 250
"""How many characters MLflow keeps of who judged."""


class MLflow:
    """Sends a query's scores as feedback on its trace, and those of its stages on their spans.

    What was said of the chunks is feedback of its own, whose value has a verdict for each
    chunk's id. A score that failed is sent as an error; an undefined or skipped one has that
    word as its value.

    Args:
        client: The module `mlflow` itself, which holds the address of its server.
        content: Also send explanations, as rationales? They may quote texts.
        name: What to call it where deliveries are counted.

    Raises:
        InvalidArgumentError: It is not that module.
    """

    def __init__(self, client: Any, *, content: bool = False, name: str = "mlflow") -> None:
        """See the class."""
        if not callable(getattr(client, "log_feedback", None)):
            raise InvalidArgumentError(
                f"client: a {type(client).__name__} takes no feedback: give the module mlflow"
            )
        self.name = name
        self._client = client
        self._content = content

    def __repr__(self) -> str:
        """Show its name."""
        return f"<MLflow {self.name!r}>"

    def export(self, record: QueryRecord) -> None:
        """Send a query's scores.

        Raises:
            NotTracedError: The query is in no trace.
            ExportError: MLflow did not take them.
        """
        scores = scores_of(record)
        trace_id = next((one.trace_id for one in scores if one.trace_id), None)
        if trace_id is None:
            raise NotTracedError(
                f"{self.name}: the query {record.id} is in no trace: trace the application with "
                "MLflow (in asynchronous code by autolog(run_tracer_inline=True)), or give an "
                "OpenTelemetry exporter too"
            )
        try:
            self._send(f"tr-{trace_id}", scores)
        except Exception as error:
            raise refusal(self.name, error) from as_cause(error)

    def _send(self, trace_id: str, scores: Sequence[Score]) -> None:
        # MLflow would add to what is there: so what is there is looked at, and replaced.
        trace = self._client.get_trace(trace_id, silent=True)
        if trace is None:
            raise LookupError(f"there is no trace {trace_id}, or not yet")
        there = {
            one.metadata[ID]: one
            for one in trace.info.assessments
            if one.metadata and ID in one.metadata
        }
        for made in self._feedback(scores):
            known = there.get(made.metadata[ID])
            if known is None:
                self._client.log_assessment(trace_id, made)
            elif _said(known) != _said(made):
                self._client.update_assessment(trace_id, known.assessment_id, made)

    def _feedback(self, scores: Sequence[Score]) -> Iterator[Any]:
        def verdicts(score: Score) -> tuple[str, str] | None:
            return None if score.chunk_index is None else (score.name, score.judge)

        for key, group in groupby(scores, verdicts):
            several = list(group)
            if key is not None:
                yield from self._made(several[0], _by_chunk(several), _common_stage(several))
                continue
            for score in several:
                value = score.status if score.value is None else score.value
                yield from self._made(score, value, score.stage is not None)

    def _made(self, score: Score, value: Any, of_stage: bool) -> Iterator[Any]:
        if of_stage and score.span_id is None:
            return  # on the trace it would be taken for the query's own
        entities = self._client.entities
        said = score.explanation if self._content and score.explanation else None
        failed = score.chunk_index is None and score.status == "failed"
        yield entities.Feedback(
            name=score.name,
            value=None if failed else value,
            error=entities.AssessmentError(score.status, said) if failed else None,
            source=entities.AssessmentSource(
                "LLM_JUDGE" if score.kind == "model" else "CODE", score.judge[:_LONGEST]
            ),
            rationale=None if failed or score.chunk_index is not None else said,
            metadata={
                ID: score.id,
                "status": score.status,
                "version": score.version,
                "sample_id": score.sample_id,
            },
            span_id=score.span_id if of_stage else None,
        )


def _by_chunk(scores: Sequence[Score]) -> dict[str, bool | str]:
    said: dict[str, bool | str] = {}
    for score in scores:
        name, n = score.chunk_id or "", 1
        while name in said:  # the same chunk again
            n += 1
            name = f"{score.chunk_id} ({n})"
        said[name] = "unread" if score.value is None else bool(score.value)
    return said


def _common_stage(scores: Sequence[Score]) -> bool:
    """Are they all of one stage, rather than of the query?"""
    return scores[0].stage is not None and len({one.stage for one in scores}) == 1


def _said(feedback: Any) -> tuple[Any, ...]:
    error = feedback.error
    return feedback.value, error and (error.error_code, error.error_message), feedback.rationale
