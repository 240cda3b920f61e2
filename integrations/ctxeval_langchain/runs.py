"""The queries that are under way: which run belongs to which, and when each is over.

Runs go by their ids as integers: a UUID is hashed by Python code at every look-up.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

_order = itertools.count()

# What the code that is running now was called from: the open root, and the open retrievals,
# outermost first. Ids only, so that a context which lives on keeps nothing alive.
_root: ContextVar[int | None] = ContextVar("ctxeval_root", default=None)
_retrievals: ContextVar[tuple[int, ...]] = ContextVar("ctxeval_retrievals", default=())


class RetrieverRun:
    """A retriever's run as its events tell it.

    Attributes:
        query: What it was asked.
        name: Its name.
        around: The retrieval that it ran inside of without being told so, if any.
        started: When it began, on the performance clock.
        seconds: How long it took; None while it is open.
        copies: What it returned, copied.
        error: What went wrong; "" where nothing did.
    """

    __slots__ = ("around", "copies", "error", "name", "query", "seconds", "started")

    def __init__(self, query: Any, name: str, around: int | None) -> None:
        """Begin."""
        self.query = query
        self.name = name
        self.around = around
        self.started = time.perf_counter()
        self.seconds: float | None = None
        self.copies: Any = ()
        self.error = ""


class Query:
    """A root run and everything below it that matters.

    Attributes:
        root_id: The root's run id.
        order: Its place in the order of asking.
        input: The root's input.
        metadata: The root's metadata.
        chain: Is the root a chain, so that its output may be an answer?
        spread: Is the root a `.map()`, so that each run below it is a query of its own?
        started: When it began.
        ended: When it ended.
        parents: The parent of each run.
        open: The runs that have not ended.
        retrievals: The retriever runs, in order of starting.
        failed: The runs that failed, with their errors.
        prompts: What the models were shown, where that is captured.
        output: The root's output.
    """

    __slots__ = (
        "chain",
        "ended",
        "failed",
        "input",
        "metadata",
        "open",
        "order",
        "output",
        "parents",
        "prompts",
        "retrievals",
        "root_id",
        "spread",
        "started",
    )

    def __init__(
        self, root_id: int, input: Any, metadata: Mapping[str, Any], chain: bool, spread: bool
    ) -> None:
        """Begin."""
        self.root_id = root_id
        self.order = next(_order)
        self.input = input
        self.metadata = metadata
        self.chain = chain
        self.spread = spread
        self.started = self.ended = time.time()
        self.parents: dict[int, int | None] = {}
        self.open: set[int] = set()
        self.retrievals: dict[int, RetrieverRun] = {}
        self.failed: dict[int, BaseException] = {}
        self.prompts: list[Any] = []
        self.output: Any = None


class OpenQueries:
    """The queries under way, by each of their runs. Safe from any thread.

    Args:
        max_open: How many are kept at most; the oldest give way.
        open_seconds: How long one may take.
        unit_name: The name of runs that are a query each, wherever they stand.
    """

    def __init__(self, max_open: int, open_seconds: float, unit_name: str | None) -> None:
        """See the class."""
        self._max_open = max_open
        self._open_seconds = open_seconds
        self._unit_name = unit_name
        self._query_of: dict[int, Query] = {}
        self._roots: OrderedDict[int, Query] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Count the runs that are known."""
        return len(self._query_of)

    def start(
        self,
        run_id: int,
        parent_id: int | None,
        input: Any,
        metadata: Mapping[str, Any] | None,
        name: str | None,
        *,
        chain: bool = True,
    ) -> list[Query]:
        """Note that a run began.

        Returns:
            The queries that were given up, since they are too old or too many.
        """
        with self._lock:
            if run_id in self._query_of:  # the handler was given twice
                return []
            query = self._query_of.get(parent_id) if parent_id is not None else None
            metadata = metadata or {}
            if query is not None and self._is_unit(query, metadata, name, chain):
                if query.spread:  # the one id of a .map() says nothing of its many questions
                    metadata = {k: v for k, v in metadata.items() if k != "ctxeval_id"}
                query = None
            elif query is None and parent_id is None:
                query = self._called_from(input)
                parent_id = None if query is None else query.root_id
            given_up: list[Query] = []
            if query is None:
                spread = parent_id is None and (name or "").startswith("RunnableEach")
                query = self._roots[run_id] = Query(run_id, input, metadata, chain, spread)
                parent_id = None
                given_up = self._expired(query.started)
                _root.set(run_id)
            query.parents[run_id] = parent_id
            query.open.add(run_id)
            self._query_of[run_id] = query
            return given_up

    def _is_unit(
        self, query: Query, metadata: Mapping[str, Any], name: str | None, chain: bool
    ) -> bool:
        """Is a run below this query a query of its own?"""
        if not chain:
            return False
        if query.spread or (self._unit_name is not None and name == self._unit_name):
            return True
        own_id = metadata.get("ctxeval_id")
        return own_id is not None and own_id != query.metadata.get("ctxeval_id")

    def _called_from(self, input: Any) -> Query | None:
        """Find the query that a run without parent was called from, where there is one.

        Fallbacks hand the caller's configuration down, so that what they try looks like
        a query of its own; but it has the input of the one that is open around it. And
        a retriever may call another without passing its run manager.
        """
        for one in reversed(_retrievals.get()):
            query = self._query_of.get(one)
            if query is not None and self._is_open(one, query):
                return query
        around = self._query_of.get(_root.get() or 0)
        if around is not None and around.root_id in around.open and _same(around.input, input):
            return around
        return None

    def _expired(self, now: float) -> list[Query]:
        expired = []
        while self._roots:
            oldest = next(iter(self._roots.values()))
            too_many = len(self._roots) > self._max_open
            if not too_many and now - oldest.started <= self._open_seconds:
                break
            expired.append(self._close(oldest))
        return expired

    def _close(self, query: Query) -> Query:
        self._roots.pop(query.root_id, None)
        for run_id in query.parents:
            self._query_of.pop(run_id, None)
        return query

    def start_retrieval(self, run_id: int, text: Any, name: str) -> None:
        """Note what a retriever was asked, after `start`."""
        query = self._query_of.get(run_id)
        if query is None or run_id in query.retrievals:
            return
        inside = tuple(one for one in _retrievals.get() if self._is_open(one, query))
        _retrievals.set((*inside, run_id))
        query.retrievals[run_id] = RetrieverRun(text, name, inside[-1] if inside else None)

    def _is_open(self, run_id: int, query: Query) -> bool:
        run = query.retrievals.get(run_id)
        return run is not None and run.seconds is None

    def end_retrieval(self, run_id: int, copies: Any, error: str = "") -> None:
        """Note what a retriever returned, before `end`."""
        query = self._query_of.get(run_id)
        run = None if query is None else query.retrievals.get(run_id)
        if run is not None and run.seconds is None:
            run.seconds = time.perf_counter() - run.started
            run.copies = copies
            run.error = error

    def see_prompt(self, run_id: int, prompt: Any) -> None:
        """Note what a model was shown."""
        query = self._query_of.get(run_id)
        if query is not None:
            query.prompts.append(prompt)

    def end(
        self,
        run_id: int,
        *,
        output: Any = None,
        error: BaseException | None = None,
        late_input: Any = None,
    ) -> Query | None:
        """Note that a run ended.

        Args:
            run_id: The run.
            output: What it gave.
            error: Why it failed.
            late_input: A stream's input, which is known only at its end.

        Returns:
            The query, where this run is its root.
        """
        with self._lock:
            query = self._query_of.get(run_id)
            if query is None:
                return None
            query.open.discard(run_id)
            if error is not None:
                query.failed[run_id] = error
            if run_id != query.root_id:
                return None
            query.output = output
            query.ended = time.time()
            if late_input is not None:
                query.input = late_input
            return self._close(query)

    def close_all(self) -> list[Query]:
        """Give every open query up."""
        with self._lock:
            return [self._close(query) for query in list(self._roots.values())]


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # arrays and the like don't compare as a whole
        return False
