"""From the runs of a finished query to its record, on the recorder's thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from ctxeval import Chunk, QueryRecord, QueryStatus, Retrieval
from ctxeval_langchain.documents import IdKey, chunks_of
from ctxeval_langchain.reading import answer_of, by_key, prompt_text, question_of
from ctxeval_langchain.runs import Query, RetrieverRun

Key = str | Callable[[Any], Any] | None

_CONTROL_FLOW = ("GraphBubbleUp", "GraphInterrupt", "NodeInterrupt", "ParentCommand")
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
        prompt = _prompt_stage(query, retrievals)
        first_text = next((run.query for run in query.retrievals.values()), "")
        own = {key: value for key, value in query.metadata.items() if key.startswith("ctxeval")}
        return QueryRecord(
            id=str(UUID(int=query.root_id)),
            question=self._question(query) or str(first_text),
            answer=self._answer(query) if query.chain else None,
            status="abandoned" if abandoned else _status(query),
            retrievals=[*retrievals, prompt] if prompt else retrievals,
            metadata=own,
            started=datetime.fromtimestamp(query.started, UTC),
            ended=datetime.fromtimestamp(query.ended, UTC),
        )

    def _question(self, query: Query) -> str | None:
        if self.question_key is not None:
            return by_key(query.input, self.question_key)
        return question_of(query.input)

    def _answer(self, query: Query) -> str | None:
        if self.answer_key is not None:
            return by_key(query.output, self.answer_key)
        return answer_of(query.output)

    def _retrievals(self, query: Query) -> list[Retrieval]:
        counted = {
            run_id: run
            for run_id, run in query.retrievals.items()
            if run.seconds is not None and not _given_up(query, run_id)
        }
        place = {run_id: order for order, run_id in enumerate(counted)}
        around = {run_id: _around(query, run_id, counted) for run_id in counted}
        made: dict[int, Retrieval] = {}
        for run_id in sorted(counted, key=lambda one: -_depth(one, around)):  # inner ones first
            run = counted[run_id]
            inner = [made[one] for one in counted if around[one] == run_id]
            known = {c.text: (c.id, c.id_source) for one in inner for c in reversed(one.chunks)}
            chunks = chunks_of(run.copies or (), self.id_key, known)
            outer_id = around[run_id]
            made[run_id] = Retrieval(
                query=str(run.query),
                chunks=chunks,
                name=run.name,
                kind=_kind(chunks, inner),
                parent=None if outer_id is None else place[outer_id],
                order=place[run_id],
                latency=run.seconds or 0.0,
                error=_error(run),
            )
        return [made[run_id] for run_id in counted]


def _error(run: RetrieverRun) -> str:
    if run.copies is None:
        return "it returned a generator, which only the chain may read"
    return run.error


def _kind(chunks: tuple[Chunk, ...], inner: list[Retrieval]) -> Literal["retrieve", "rerank"]:
    """Call it reranking where all chunks come from the one retrieval inside, in other order."""
    if len(inner) != 1 or not chunks:
        return "retrieve"
    return "rerank" if {c.id for c in chunks} <= {c.id for c in inner[0].chunks} else "retrieve"


def _prompt_stage(query: Query, retrievals: list[Retrieval]) -> Retrieval | None:
    """Find the chunks whose text really stands in what the model was shown last."""
    outermost = [one for one in retrievals if one.outermost and not one.error]
    pool = {chunk.id: chunk for one in outermost for chunk in one.chunks}
    if not query.prompts or not pool:
        return None
    shown = prompt_text(query.prompts[-1])
    found = [chunk for chunk in pool.values() if chunk.text.strip() and chunk.text in shown]
    found.sort(key=lambda chunk: shown.index(chunk.text))
    return Retrieval(
        query=outermost[0].query,
        chunks=tuple(replace(chunk, rank=rank) for rank, chunk in enumerate(found)),
        name="prompt",
        kind="prompt",
        order=len(retrievals),
    )


def _status(query: Query) -> QueryStatus:
    root_error = query.failed.get(query.root_id)
    if root_error is not None:
        return "cancelled" if type(root_error).__name__ in _CANCELLED else "error"
    if query.open or (query.chain and query.output is None) or interrupted(query):
        return "incomplete"
    return "ok"


def interrupted(query: Query) -> bool:
    """Did a graph stop to ask its user?"""
    if isinstance(query.output, dict) and "__interrupt__" in query.output:
        return True
    return any(_is_control_flow(error) for error in query.failed.values())


def _is_control_flow(error: BaseException) -> bool:
    return any(cls.__name__ in _CONTROL_FLOW for cls in type(error).__mro__)


def _ancestors(query: Query, run_id: int) -> Iterator[int]:
    parent = query.parents.get(run_id)
    while parent is not None:
        yield parent
        parent = query.parents.get(parent)


def _given_up(query: Query, run_id: int) -> bool:
    """Did a run around this one fail, so that something else was tried?"""
    if query.root_id in query.failed:  # nothing else was: what was retrieved is all there is
        return False
    failed = (query.failed[one] for one in _ancestors(query, run_id) if one in query.failed)
    return any(not _is_control_flow(error) for error in failed)


def _around(query: Query, run_id: int, counted: dict[int, RetrieverRun]) -> int | None:
    """Find the retrieval that this one ran inside of."""
    outer = next((one for one in _ancestors(query, run_id) if one in counted), None)
    told = counted[run_id].around
    return outer or (told if told in counted else None)


def _depth(run_id: int, around: dict[int, int | None]) -> int:
    depth = 0
    outer = around[run_id]
    while outer is not None:
        depth += 1
        outer = around[outer]
    return depth
