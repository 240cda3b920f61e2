"""The queries that are under way: which run belongs to which, and when each is over."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from ctxeval_langchain.forking import lock_for
from ctxeval_langchain.nesting import called_from, enter
from ctxeval_langchain.queries import Part, Query, RetrieverRun
from ctxeval_langchain.reading import question_of
from ctxeval_langchain.tracing import span_of_query, span_of_retrieval

logger = logging.getLogger("ctxeval")

OWN_KEYS = (
    "ctxeval_id",
    "ctxeval_reference",
    "ctxeval_reference_ids",
    "ctxeval_reference_contexts",
)
"""What the metadata of a run may say that makes it a query of its own."""

MAX_NAMES = 12
"""How many names of runs are told where the one that is sought is not among them."""

MAX_LATE = 10_000
"""How many runs are remembered that were still open when their query was over."""


class OpenQueries:
    """The queries under way, by each of their runs. Safe from any thread.

    Args:
        max_open: How many are kept at most; the oldest give way.
        open_seconds: How long one may take.
        unit_name: The name of runs that are a query each, wherever they stand.
        own_key: Does the user say where the question stands?
    """

    def __init__(
        self, max_open: int, open_seconds: float, unit_name: str | None, own_key: bool
    ) -> None:
        """See the class."""
        self._max_open = max_open
        self._open_seconds = open_seconds
        self._unit_name = unit_name
        self._own_key = own_key
        self._names: dict[str, None] = {}
        self._query_of: dict[int | None, Query] = {}
        self._roots: OrderedDict[int, Query] = OrderedDict()
        self._next_expiry = 0.0
        self._told_reuse = False
        self._late: OrderedDict[int, None] = OrderedDict()
        self._lock = lock_for(self)

    def names(self) -> list[str]:
        """Give the names of runs, as long as none was the one that is sought."""
        with self._lock:
            return list(self._names)

    def _note_name(self, name: str | None) -> None:
        if name is not None and name == self._unit_name:
            self._names = {name: None}
        elif name is not None and len(self._names) < MAX_NAMES:
            self._names.setdefault(name)

    def __len__(self) -> int:
        """Count the runs that are known."""
        return len(self._query_of)

    def start(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        input: Any,
        metadata: Mapping[str, Any] | None,
        name: str | None,
        *,
        retrieves: bool = False,
        part: bool = False,
    ) -> Sequence[Query]:
        """Note that a run began.

        Args:
            run_id: The run.
            parent_run_id: The run that it says it is part of.
            input: Its input; a retriever's: what it is asked.
            metadata: Its metadata.
            name: Its name.
            retrieves: Is it a retriever's?
            part: Is it a chain's, which may turn out to be a query of its own?

        Returns:
            The queries that were given up, since they are too old or too many.
        """
        new = run_id.int
        parent = None if parent_run_id is None else parent_run_id.int
        given_up: Sequence[Query] = ()
        root = run = None
        with self._lock:
            known = self._query_of.get(new)
            if known is not None:  # the handler was given twice
                self._check_reuse(known, new, input)
                return given_up
            if parent in self._late:  # its query is over already
                self._note_late((new,))
                return given_up
            if self._unit_name is not None and self._unit_name not in self._names:
                self._note_name(name)
            parent, query = self._owner(parent, metadata, name, retrieves)
            if query is None or parent is None:
                one_of_many = query is not None
                query = Query(new, name, input, metadata or {}, not retrieves, one_of_many)
                root = query
                self._roots[new] = self._query_of[new] = query
                if query.started >= self._next_expiry or len(self._roots) > self._max_open:
                    given_up = self._expired(query.started)
            else:
                query.parents[new] = parent
                query.open.add(new)
                self._query_of[new] = query
                if part and query.parts is not None:
                    query.parts[new] = Part(name, input, metadata or {})
            if retrieves:
                around, place = enter(new, query)
                run = RetrieverRun(input, name or "retriever", around, place)
                query.retrievals[new] = run
        # Not under the lock: what follows may run the application's code.
        if root is not None:
            root.traced = span_of_query(new)
        if run is not None and (root is None or root.traced is not None):
            run.traced = span_of_retrieval(new)  # which is none where the query has none
        if part and root is not None and self._may_be_several(root):
            root.parts = {}
        return given_up

    def _may_be_several(self, query: Query) -> bool:
        """May it turn out that a query has no question of its own?

        What a stream was asked is known at its end, and what the user's own function finds
        as well. Who says what is expected of a run, or names it, has one query in mind.
        """
        if query.spread or any(key in query.metadata for key in OWN_KEYS):
            return False
        return self._own_key or question_of(query.input) is None

    def _check_reuse(self, known: Query, new: int, input: Any) -> None:
        if new == known.root_id and input is not known.input and not self._told_reuse:
            self._told_reuse = True
            logger.warning(
                "ctxeval: two queries at once have the run_id %s, so that they can't be told "
                "apart: leave run_id out, or give each its own",
                UUID(int=new),
            )

    def _owner(
        self,
        parent: int | None,
        metadata: Mapping[str, Any] | None,
        name: str | None,
        retrieves: bool,
    ) -> tuple[int | None, Query | None]:
        """Find the run that a new one is part of, and its query.

        Returns:
            Without a run, the new one is a query of its own: of a `.map()`, where that is
            named, or by itself.
        """
        query = self._query_of.get(parent)
        if query is None:
            parent, query = called_from(self._query_of)
        if query is None or not self._is_unit(query, metadata, name, retrieves):
            return parent, query
        nearest, inner = called_from(self._query_of)
        if inner is not None and not self._is_unit(inner, metadata, name, retrieves):
            return nearest, inner
        query.holds_queries = True
        return None, query if query.spread else None

    def _is_unit(
        self, query: Query, metadata: Mapping[str, Any] | None, name: str | None, retrieves: bool
    ) -> bool:
        """Is a run below this query a query of its own?"""
        if query.spread:
            return True
        if self._unit_name is not None and name == self._unit_name != query.name:
            return True
        if not metadata or retrieves:
            return False
        for key in OWN_KEYS:
            own, known = metadata.get(key), query.metadata.get(key)
            if own is not None and own is not known and str(own) != str(known):
                return True
        return False

    def _expired(self, now: float) -> list[Query]:
        expired = []
        while self._roots:
            oldest = next(iter(self._roots.values()))
            self._next_expiry = oldest.started + self._open_seconds
            if len(self._roots) <= self._max_open and now < self._next_expiry:
                break
            expired.append(self._close(oldest))
        return expired

    def _close(self, query: Query) -> Query:
        del self._roots[query.root_id], self._query_of[query.root_id]
        for run_id in query.parents:
            del self._query_of[run_id]
        if query.root_id in query.errors:  # others of its tasks or threads may still be at work
            self._note_late((query.root_id, *query.parents))
        elif query.open:
            self._note_late(query.open)
        query.close()
        return query

    def _note_late(self, run_ids: Iterable[int]) -> None:
        """Remember runs whose query is over, so that what they still begin is none of its own."""
        self._late.update(dict.fromkeys(run_ids))
        while len(self._late) > MAX_LATE:
            self._late.popitem(last=False)

    def see_prompt(self, run_id: UUID, prompt: Any) -> None:
        """Note what a model was shown."""
        with self._lock:
            query = self._query_of.get(run_id.int)
            if query is not None:
                query.prompts[run_id.int] = prompt

    def end_retrieval(
        self, run_id: UUID, copies: Any, problem: str = "", error: BaseException | None = None
    ) -> Query | None:
        """Note what a retriever returned.

        Args:
            run_id: The run.
            copies: What it returned, copied.
            problem: Why nothing is known of it.
            error: Why the run failed.

        Returns:
            The query, where this run is its root.
        """
        with self._lock:
            query = self._query_of.get(run_id.int)
            run = None if query is None else query.retrievals.get(run_id.int)
            if run is not None and run.seconds is None:
                run.copies = copies
                run.error = f"{type(error).__name__}: {error}" if error else problem
                run.seconds = time.perf_counter() - run.started
            ended = self._end(run_id.int, True, error, None)
        _trace(ended)
        untold = run is not None and run.traced is None  # our handler may be before the tracing's
        if run is not None and untold and (ended is None or ended.traced is not None):
            run.traced = span_of_retrieval(run_id.int)
        return ended

    def end(
        self,
        run_id: UUID,
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
            ended = self._end(run_id.int, output, error, late_input)
        _trace(ended)
        return ended

    def _end(
        self, run_id: int, output: Any, error: BaseException | None, late_input: Any
    ) -> Query | None:
        query = self._query_of.get(run_id)
        if query is None:
            self._late.pop(run_id, None)
            return None
        query.open.discard(run_id)
        if error is not None:
            query.errors[run_id] = error
        if run_id != query.root_id:
            if query.parts is not None and (part := query.parts.get(run_id)) is not None:
                part.end(output, late_input)
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


def _trace(ended: Query | None) -> None:
    if ended is not None and ended.traced is None:
        ended.traced = span_of_query(ended.root_id)
