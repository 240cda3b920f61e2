"""From the runs of a finished query to its record, on the recorder's thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from ctxeval import Chunk, QueryRecord, QueryStatus, Retrieval
from ctxeval_langchain.documents import TEXT_HASH, IdKey, chunks_of
from ctxeval_langchain.prompts import prompt_stage
from ctxeval_langchain.queries import Query, RetrieverRun
from ctxeval_langchain.reading import answer_of, by_key, question_of

Key = str | Callable[[Any], Any] | None

_CONTROL_FLOW = "GraphBubbleUp"
_CANCELLED = ("CancelledError", "GeneratorExit", "KeyboardInterrupt")


@dataclass(frozen=True, slots=True)
class Reader:
    """How to read a query.

    Attributes:
        question_key: Where the question stands, where no rule can know.
        answer_key: Where the answer stands.
        id_key: Where a document's id stands.
    """

    question_key: Key = None
    answer_key: Key = None
    id_key: IdKey = None

    def record(self, query: Query, *, abandoned: bool = False) -> QueryRecord:
        """Make the record of a query.

        Args:
            query: The query.
            abandoned: Was it given up, since it never ended?
        """
        retrievals = self._retrievals(query)
        prompt = prompt_stage(query, retrievals)
        first_text = next((run.query for run in query.retrievals.values()), "")
        passed = {} if query.one_of_many else query.metadata
        return QueryRecord(
            id=str(UUID(int=query.root_id)),
            question=self._question(query) or str(first_text),
            answer=self.answer(query),
            status="abandoned" if abandoned else _status(query),
            retrievals=[*retrievals, prompt] if prompt else retrievals,
            metadata={key: value for key, value in passed.items() if key.startswith("ctxeval")},
            started=datetime.fromtimestamp(query.started, UTC),
            ended=datetime.fromtimestamp(query.ended, UTC),
        )

    def _question(self, query: Query) -> str | None:
        if self.question_key is not None:
            return by_key(query.input, self.question_key)
        return question_of(query.input)

    def answer(self, query: Query) -> str | None:
        """Find what a query was answered."""
        if not query.chain:
            return None
        if self.answer_key is not None:
            return by_key(query.output, self.answer_key)
        return answer_of(query.output)

    def _retrievals(self, query: Query) -> list[Retrieval]:
        given_up = {run_id: _given_up(query, run_id) for run_id in query.retrievals}
        counted = {
            run_id: run
            for run_id, run in query.retrievals.items()
            if not given_up[run_id] or all(given_up.values())
        }
        place = {run_id: order for order, run_id in enumerate(counted)}
        around = {run_id: _around(query, run_id, counted) for run_id in counted}
        made: dict[int, Retrieval] = {}
        for run_id in sorted(counted, key=lambda one: -_depth(one, around)):  # inner ones first
            run = counted[run_id]
            inner = [made[one] for one in counted if around[one] == run_id]
            chunks = chunks_of(run.copies, self.id_key, _known(inner))
            outer_id = around[run_id]
            made[run_id] = Retrieval(
                query=str(run.query),
                chunks=chunks,
                name=run.name,
                kind=_kind(str(run.query), chunks, inner),
                parent=None if outer_id is None else place[outer_id],
                order=place[run_id],
                latency=run.seconds or 0.0,
                error=_error(run) or ("" if query.root_id in query.failed else given_up[run_id]),
            )
        return [made[run_id] for run_id in counted]


def _error(run: RetrieverRun) -> str:
    return "it never ended" if run.seconds is None else run.error


def _known(inner: list[Retrieval]) -> Mapping[str, tuple[str, str]]:
    """Give the ids that are known from the retrievals inside, by text."""
    chunks = [chunk for one in inner for chunk in reversed(one.chunks)]
    return {one.text: (one.id, one.id_source) for one in chunks if one.id_source != TEXT_HASH}


def _kind(
    query: str, chunks: tuple[Chunk, ...], inner: list[Retrieval]
) -> Literal["retrieve", "rerank"]:
    """Call it reranking where all chunks come from the one retrieval inside, asked the same."""
    if len(inner) != 1 or not chunks or inner[0].query != query:
        return "retrieve"
    return "rerank" if {c.id for c in chunks} <= {c.id for c in inner[0].chunks} else "retrieve"


def _status(query: Query) -> QueryStatus:
    at_root = query.failed.get(query.root_id)
    if at_root is not None:
        return "cancelled" if at_root.kind.__name__ in _CANCELLED else "error"
    if query.unfinished or (query.chain and query.output is None) or query.interrupted:
        return "incomplete"
    return "ok"


def _given_up(query: Query, run_id: int) -> str:
    """Say why a run around this one failed, so that something else was tried; "" if none did.

    What made the whole query fail ended it: there was nothing else.
    """
    for one in query.ancestors(run_id):
        failure = query.failed.get(one)
        if failure is not None and not failure.fatal and not failure.is_a(_CONTROL_FLOW):
            return f"its attempt was given up: {failure.text}"
    return ""


def _around(query: Query, run_id: int, counted: dict[int, RetrieverRun]) -> int | None:
    """Find the retrieval that this one ran inside of."""
    outer = next((one for one in query.ancestors(run_id) if one in counted), None)
    told = counted[run_id].around
    return outer or (told if told in counted else None)


def _depth(run_id: int, around: dict[int, int | None]) -> int:
    depth = 0
    outer = around[run_id]
    while outer is not None:
        depth += 1
        outer = around[outer]
    return depth
