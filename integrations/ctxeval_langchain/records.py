"""From the runs of a finished query to its record, on the recorder's thread."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from langchain_core.messages import BaseMessage

from ctxeval import Chunk, QueryRecord, QueryStatus, Recorder, Retrieval
from ctxeval_langchain.documents import TEXT_HASH, chunks_of
from ctxeval_langchain.prompts import prompt_stage
from ctxeval_langchain.queries import CONTROL_FLOW, Query, RetrieverRun
from ctxeval_langchain.questions import queries_in
from ctxeval_langchain.reading import answer_of, by_key, fields_of, question_of

_CANCELLED = ("CancelledError", "KeyboardInterrupt")
_LEFT = "GeneratorExit"  # whoever read the stream has closed it


class Reader:
    """How to read a query.

    Args:
        recorder: Which knows where question, answer and ids stand, and what is told of it.
    """

    def __init__(self, recorder: Recorder) -> None:
        """See the class."""
        self._recorder = recorder

    def records(self, query: Query, *, abandoned: bool = False) -> list[QueryRecord]:
        """Make the record of a query, or the records where it turns out to be several.

        Args:
            query: The query.
            abandoned: Was it given up, since it never ended?
        """
        queries = queries_in(query, self._asked, self.answer)
        return [self._record(one, abandoned and one.root_id in one.open) for one in queries]

    def _record(self, query: Query, abandoned: bool) -> QueryRecord:
        retrievals = self._retrievals(query)
        prompt = prompt_stage(query, retrievals)
        first_text = next((run.query for run in query.retrievals.values()), "")
        passed = {} if query.one_of_many else query.metadata
        status = "abandoned" if abandoned else _status(query)
        answer = self.answer(query)
        if self._recorder.question_key is not None and query.chain:
            self._seek("question_key", self._by_question_key(query.input), query.input)
        if self._recorder.answer_key is not None and query.chain and status == "ok":
            self._seek("answer_key", answer, query.output)
        return QueryRecord(
            id=str(UUID(int=query.root_id)),
            question=self._asked(query.input) or str(first_text),
            answer=answer,
            status=status,
            retrievals=[*retrievals, prompt] if prompt else retrievals,
            metadata={key: value for key, value in passed.items() if key.startswith("ctxeval")},
            started=datetime.fromtimestamp(query.started, UTC),
            ended=datetime.fromtimestamp(query.ended, UTC),
            traced=query.traced,
        )

    def _seek(self, option: str, found: str | None, value: Any) -> None:
        if found is not None or not isinstance(value, (str, BaseMessage)):
            self._recorder.seek(option, found is not None, fields_of(value))

    def _by_question_key(self, value: Any) -> str | None:
        key = self._recorder.question_key
        return None if key is None else by_key("question_key", value, key, question_of)

    def _asked(self, value: Any) -> str | None:
        """Find the question in an input."""
        return self._by_question_key(value) or question_of(value)

    def answer(self, query: Query) -> str | None:
        """Find what a query was answered."""
        if not query.chain:
            return None
        key = self._recorder.answer_key
        if key is None or (isinstance(key, str) and isinstance(query.output, (str, BaseMessage))):
            return answer_of(query.output)
        return by_key("answer_key", query.output, key, answer_of)

    def _retrievals(self, query: Query) -> list[Retrieval]:
        given_up = {one: query.given_up(*query.ancestors(one)) for one in query.retrievals}
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
            chunks = chunks_of(run.copies, self._recorder.id_key, _known(inner))
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
                started=_moment_of(run.started),
                run_id=str(UUID(int=run_id)),
                traced=run.traced,
            )
        return [made[run_id] for run_id in counted]


def _moment_of(reading: float) -> datetime:
    """Say when the performance clock read so."""
    return datetime.fromtimestamp(time.time() - time.perf_counter() + reading, UTC)


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
    if at_root is not None and at_root.is_a(_LEFT, CONTROL_FLOW):
        return "incomplete"
    if at_root is not None:
        return "cancelled" if at_root.kind.__name__ in _CANCELLED else "error"
    if query.unfinished or (query.chain and query.output is None) or query.interrupted:
        return "incomplete"
    return "ok"


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
