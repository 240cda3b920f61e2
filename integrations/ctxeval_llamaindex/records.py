"""From the stages of a finished query to its record, on the recorder's thread."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from ctxeval import QueryRecord, Recorder, Retrieval
from ctxeval_llamaindex.funnel import Place, funnel
from ctxeval_llamaindex.queries import Outcome, Query
from ctxeval_llamaindex.reading import by_key, fields_of, question_of, text_of, unwrapped
from ctxeval_llamaindex.snapshots import chunks_of
from ctxeval_llamaindex.spans import PROMPT, RETRIEVE
from ctxeval_llamaindex.stages import Stage


class Reader:
    """How to read a query.

    Args:
        recorder: Which knows where question, answer and ids stand, and what is told of it.
    """

    def __init__(self, recorder: Recorder) -> None:
        """See the class."""
        self._recorder = recorder

    def record(self, query: Query, stages: Sequence[Stage], abandoned: bool) -> QueryRecord:
        """Make the record of a query.

        Args:
            query: The query.
            stages: Those of its stages that count.
            abandoned: Was it given up, since it did not end?
        """
        outcome = (None if abandoned else query.outcome) or Outcome("abandoned")
        return QueryRecord(
            id=query.id_,
            question=self._question(query) or stages[0].query,
            answer=self._answer(outcome),
            status=outcome.status,
            retrievals=self._retrievals(query, stages),
            metadata=query.metadata,
            started=datetime.fromtimestamp(query.started, UTC),
            ended=datetime.fromtimestamp(query.ended, UTC),
            traced=query.traced,
        )

    def _question(self, query: Query) -> str | None:
        found = None
        if self._recorder.question_key is not None:
            found = self._by_key("question_key", query.input)
        return found or question_of(query.input)

    def _answer(self, outcome: Outcome) -> str | None:
        if self._recorder.answer_key is not None and outcome.result is not None:
            return self._by_key("answer_key", unwrapped(outcome.result))
        return outcome.answer

    def _by_key(self, option: str, value: Any) -> str | None:
        """Take question or answer from where the user says it stands."""
        try:
            found = by_key(value, getattr(self._recorder, option))
        except Exception as error:  # the user's code: its fault must not cost the record
            self._recorder.failed(option, error)
            return None
        if found is not None or text_of(value) is None:  # a text alone has no keys
            self._recorder.seek(option, found is not None, fields_of(value))
        return found

    def _retrievals(self, query: Query, stages: Sequence[Stage]) -> list[Retrieval]:
        places = funnel(query, stages)
        recorder = self._recorder
        chunks = [chunks_of(one.copies, recorder.id_key, recorder.failed) for one in places]
        return [
            Retrieval(
                query=one.stage.query,
                chunks=chunks[order],
                name=one.stage.name,
                kind=_kind(order, places),
                parent=one.parent,
                order=order,
                latency=0.0 if one.stage.kind == PROMPT else one.stage.seconds or 0.0,
                error=one.error,
                inputs=one.inputs,
                started=_moment_of(one.stage.started),
                traced=None if one.stage.kind == PROMPT else one.stage.traced,
            )
            for order, one in enumerate(places)
        ]


def _moment_of(reading: float) -> datetime:
    """Say when the performance clock read so."""
    return datetime.fromtimestamp(time.time() - time.perf_counter() + reading, UTC)


def _kind(order: int, places: Sequence[Place]) -> Literal["retrieve", "rerank", "prompt"]:
    """Call a retriever's run reranking, too, where another one inside found all that it gives."""
    stage = places[order].stage
    if stage.kind != RETRIEVE:
        return "prompt" if stage.kind == PROMPT else "rerank"
    inner = [one for one in places if one.parent == order and one.stage.kind == RETRIEVE]
    ids = places[order].ids
    if len(inner) != 1 or not ids or inner[0].stage.query != stage.query:
        return "retrieve"
    return "rerank" if ids <= inner[0].ids else "retrieve"
