"""From the stages of a finished query to its record, on the recorder's thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from ctxeval import Chunk, QueryRecord, Retrieval
from ctxeval_llamaindex.queries import Outcome, Query, Stage
from ctxeval_llamaindex.reading import by_key
from ctxeval_llamaindex.snapshots import IdKey, chunks_of
from ctxeval_llamaindex.spans import PROMPT, RETRIEVE, RUN

Key = str | Callable[[Any], Any] | None

_CONTROL_FLOW = ("WaitingForEvent", "WorkflowDone")


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

    def record(self, query: Query, stages: Sequence[Stage]) -> QueryRecord:
        """Make the record of a query.

        Args:
            query: The query.
            stages: Those of its stages that count.
        """
        outcome = query.outcome or Outcome("abandoned")
        return QueryRecord(
            id=query.id_,
            question=self._question(query) or stages[0].query,
            answer=self._answer(outcome),
            status=outcome.status,
            retrievals=self._retrievals(query, stages),
            metadata=query.metadata,
            started=datetime.fromtimestamp(query.started, UTC),
            ended=datetime.fromtimestamp(outcome.ended or query.started, UTC),
        )

    def _question(self, query: Query) -> str | None:
        if self.question_key is not None:
            return by_key(query.input, self.question_key)
        return query.question

    def _answer(self, outcome: Outcome) -> str | None:
        if self.answer_key is not None and outcome.result is not None:
            return by_key(outcome.result, self.answer_key)
        return outcome.answer

    def _retrievals(self, query: Query, stages: Sequence[Stage]) -> list[Retrieval]:
        given_up = {id(stage): _given_up(query, stage) for stage in stages}
        counted = [one for one in stages if not given_up[id(one)] or all(given_up.values())]
        seen = {fields[0] for one in counted if one.kind != PROMPT for fields in one.copies}
        seen.update(*(one.given for one in counted))
        counted = [one for one in counted if one.kind != PROMPT or _is_of_documents(one, seen)]
        place = {id(stage): order for order, stage in enumerate(counted)}
        made = [
            Retrieval(
                query=stage.query,
                chunks=self._chunks(stage, seen),
                name="synthesizer" if stage.kind == PROMPT else type(stage.owner).__name__,
                kind=stage.kind,
                parent=_parent(stage, place),
                order=order,
                latency=stage.seconds or 0.0,
                error=stage.error or ("it never ended" if stage.seconds is None else ""),
            )
            for order, stage in enumerate(counted)
        ]
        return made
