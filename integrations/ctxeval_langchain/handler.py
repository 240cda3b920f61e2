"""The callback handler: it only takes snapshots, a recorder does the rest."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from typing import Any, TypeVar
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from ctxeval import QueryRecord, Recorder, Retrieval
from ctxeval_langchain.reading import answer_of, chunks_of, question_of, snapshot

logger = logging.getLogger("ctxeval")

F = TypeVar("F", bound=Callable[..., Any])

_order = itertools.count()


@dataclass(slots=True)
class _Retrieval:
    """A retriever run as its events tell it."""

    run_id: UUID
    query: Any
    name: str
    started: float
    ended: float = 0.0
    copies: Any = ()
    error: str = ""
    done: bool = False


@dataclass(slots=True)
class _Query:
    """A root run and everything below it that matters."""

    root_id: UUID
    order: int
    input: Any
    metadata: Mapping[str, Any]
    started: datetime
    is_chain: bool
    parents: dict[UUID, UUID | None] = field(default_factory=dict)
    retrievals: dict[UUID, _Retrieval] = field(default_factory=dict)
    failed: set[UUID] = field(default_factory=set)
    open: set[UUID] = field(default_factory=set)
    output: Any = None
    error: BaseException | None = None


def _hook(method: F) -> F:
    """Keep whatever goes wrong in a hook from the chain: count it, and log it at debug level."""

    @wraps(method)
    def guarded(self: CtxEvalCallbackHandler, *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self.errors[type(error).__name__] += 1
            logger.debug("ctxeval: a hook failed", exc_info=True)
            if self.raise_error:
                raise

    return guarded  # type: ignore[return-value]  # the same call


class CtxEvalCallbackHandler(BaseCallbackHandler):
    """Captures what a chain retrieves and scores it, behind the application's back.

    Give it to any runnable: `chain.invoke(question, config={"callbacks": [handler]})`.

    Args:
        recorder: Where the records go; None: one of its own, made of the other arguments.
        **options: Those of `Recorder`: `metrics`, `references`, `llm`, `max_pending`.

    Attributes:
        recorder: Where the records go.
        errors: How many hooks failed, by the error's name.
    """

    run_inline = True

    def __init__(self, recorder: Recorder | None = None, **options: Any) -> None:
        """See the class."""
        if recorder is not None and options:
            raise TypeError(
                f"recorder= and {', '.join(options)} were given: give the options to the Recorder"
            )
        self.recorder = Recorder(**options) if recorder is None else recorder
        self.errors: Counter[str] = Counter()
        self._queries: dict[UUID, _Query] = {}
        self._root_of: dict[UUID, UUID] = {}
        self._lock = threading.Lock()

    @property
    def ignore_llm(self) -> bool:
        """Models' events are not needed."""
        return True

    @property
    def ignore_chat_model(self) -> bool:
        """Chat models' events are not needed."""
        return True

    @property
    def ignore_retry(self) -> bool:
        """Retries show as failed runs."""
        return True

    @property
    def ignore_custom_event(self) -> bool:
        """Custom events are not needed."""
        return True

    @property
    def records(self) -> list[QueryRecord]:
        """The captured queries, in order of asking; see `Recorder.records`."""
        return self.recorder.records

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything captured so far is scored; see `Recorder.flush`."""
        return self.recorder.flush(timeout)

    def __copy__(self) -> CtxEvalCallbackHandler:
        return self

    def __deepcopy__(self, memo: object) -> CtxEvalCallbackHandler:
        return self

    @_hook
    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Note the run; a root's input holds the question."""
        self._start(run_id, parent_run_id, inputs, metadata, is_chain=True)

    @_hook
    def on_chain_end(
        self, outputs: Any, *, run_id: UUID, inputs: Any = None, **kwargs: Any
    ) -> None:
        """Note the end; a root's output holds the answer, and `inputs` what a stream was asked."""
        self._end(run_id, output=outputs, late_input=inputs)

    @_hook
    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, inputs: Any = None, **kwargs: Any
    ) -> None:
        """Note the failure: retrievals below it don't count, unless it is the root."""
        self._end(run_id, error=error, late_input=inputs)

    @_hook
    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Note the run, so that retrievals below it find their root."""
        self._start(run_id, parent_run_id, input_str, metadata, is_chain=True)

    @_hook
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the end."""
        self._end(run_id, output=output)

    @_hook
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the failure."""
        self._end(run_id, error=error)

    @_hook
    def on_retriever_start(
        self,
        serialized: Any,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Note the retrieval's query, which its end does not tell."""
        found = self._start(run_id, parent_run_id, query, metadata, is_chain=False)
        if found is not None:
            found.retrievals[run_id] = _Retrieval(
                run_id, query, name or "retriever", time.perf_counter()
            )

    @_hook
    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Copy the documents."""
        self._finish_retrieval(run_id, snapshot(documents), "")
        self._end(run_id)

    @_hook
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the failure."""
        self._finish_retrieval(run_id, (), f"{type(error).__name__}: {error}")
        self._end(run_id, error=error)

    def _finish_retrieval(self, run_id: UUID, copies: Any, error: str) -> None:
        with self._lock:
            query = self._queries.get(self._root_of.get(run_id, run_id))
        retrieval = None if query is None else query.retrievals.get(run_id)
        if retrieval is not None:
            retrieval.ended = time.perf_counter()
            retrieval.copies, retrieval.error, retrieval.done = copies, error, True

    def _start(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        input: Any,
        metadata: Mapping[str, Any] | None,
        *,
        is_chain: bool,
    ) -> _Query | None:
        with self._lock:
            if run_id in self._root_of:  # the handler was given twice
                return None
            root_id = run_id if parent_run_id is None else self._root_of.get(parent_run_id, run_id)
            self._root_of[run_id] = root_id
            query = self._queries.get(root_id)
            if query is None:
                query = self._queries[root_id] = _Query(
                    root_id, next(_order), input, metadata or {}, datetime.now(UTC), is_chain
                )
            query.parents[run_id] = parent_run_id if run_id != root_id else None
            query.open.add(run_id)
            return query

    def _end(
        self,
        run_id: UUID,
        *,
        output: Any = None,
        error: BaseException | None = None,
        late_input: Any = None,
    ) -> None:
        with self._lock:
            query = self._queries.get(self._root_of.get(run_id, run_id))
            if query is None:
                return
            query.open.discard(run_id)
            if error is not None:
                query.failed.add(run_id)
            if run_id != query.root_id:
                return
            del self._queries[run_id]
            for known in query.parents:
                self._root_of.pop(known, None)
        if not query.retrievals:
            return
        query.output, query.error = output, error
        if late_input is not None:  # a stream's input is known only at its end
            query.input = late_input
        ended = datetime.now(UTC)
        self.recorder.submit(query.order, lambda: _record(query, ended))


def _record(query: _Query, ended: datetime) -> QueryRecord:
    """Translate a finished query, on the recorder's thread."""
    counted = [
        one
        for one in query.retrievals.values()
        if one.done and (query.error is not None or not _given_up(query, one.run_id))
    ]
    place = {one.run_id: place for place, one in enumerate(counted)}
    retrievals = [
        Retrieval(
            query=str(one.query),
            chunks=chunks_of(one.copies),
            name=one.name,
            parent=_enclosing(query, one.run_id, place),
            order=place[one.run_id],
            latency=one.ended - one.started,
            error=one.error,
        )
        for one in counted
    ]
    first_query = next((one.query for one in query.retrievals.values()), "")
    return QueryRecord(
        id=str(query.root_id),
        question=question_of(query.input) or str(first_query),
        answer=answer_of(query.output) if query.is_chain else None,
        status=_status(query),
        retrievals=retrievals,
        metadata={key: value for key, value in query.metadata.items() if key.startswith("ctxeval")},
        started=query.started,
        ended=ended,
    )


def _status(query: _Query) -> Any:
    if query.error is not None:
        cancelled = type(query.error).__name__ in ("CancelledError", "GeneratorExit")
        return "cancelled" if cancelled else "error"
    unfinished = query.open or (query.is_chain and query.output is None)
    return "incomplete" if unfinished else "ok"


def _ancestors(query: _Query, run_id: UUID) -> Any:
    parent = query.parents.get(run_id)
    while parent is not None:
        yield parent
        parent = query.parents.get(parent)


def _given_up(query: _Query, run_id: UUID) -> bool:
    """Did a run between this one and the root fail, so that something else was tried?"""
    return any(one in query.failed for one in _ancestors(query, run_id))


def _enclosing(query: _Query, run_id: UUID, place: Mapping[UUID, int]) -> int | None:
    return next((place[one] for one in _ancestors(query, run_id) if one in place), None)
