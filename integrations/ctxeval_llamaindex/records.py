"""From the stages of a finished query to its record, on the recorder's thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from ctxeval import QueryRecord, Retrieval
from ctxeval_llamaindex.funnel import Place, funnel
from ctxeval_llamaindex.queries import Outcome, Query
from ctxeval_llamaindex.reading import by_key, question_of
from ctxeval_llamaindex.snapshots import IdKey, chunks_of
from ctxeval_llamaindex.spans import PROMPT, RETRIEVE
from ctxeval_llamaindex.stages import Stage

Key = str | Callable[[Any], Any] | None


@dataclass(frozen=True, slots=True)
class Reader:
    """How to read a query.

    Attributes:
        question_key: Where the question stands, where no rule can know.
        answer_key: Where the answer stands.
        id_key: Where a node's id stands.
    """

    question_key: Key = None
    answer_key: Key = None
    id_key: IdKey = None

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
        )

    def _question(self, query: Query) -> str | None:
        found = None
        if self.question_key is not None:
            found = by_key(query.input, self.question_key)
        return found or question_of(query.input)

    def _answer(self, outcome: Outcome) -> str | None:
        if self.answer_key is not None and outcome.result is not None:
            return by_key(outcome.result, self.answer_key)
        return outcome.answer

    def _retrievals(self, query: Query, stages: Sequence[Stage]) -> list[Retrieval]:
        places = funnel(query, stages)
        chunks = [chunks_of(one.copies, self.id_key) for one in places]
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
            )
            for order, one in enumerate(places)
        ]


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
