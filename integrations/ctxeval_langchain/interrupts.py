"""Graphs that stop to ask their user: question and answer come in two runs, and are one query."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary

from ctxeval import Recorder
from ctxeval_langchain.forking import lock_for
from ctxeval_langchain.queries import Query

MAX_INTERRUPTED = 1000
"""How many interrupted graphs are remembered until they are resumed."""


class Interrupted:
    """The queries whose graph may be resumed, by thread."""

    def __init__(self) -> None:
        """Begin with none."""
        self._queries: OrderedDict[Any, Query] = OrderedDict()
        self._lock = lock_for(self)

    @classmethod
    def of(cls, recorder: Recorder) -> Interrupted:
        """Give those of a recorder: the handler that sees a graph go on may be another one."""
        method: Any = recorder.submit
        return _of.setdefault(method.__self__, cls())  # the recorder, also where this is a proxy

    def join(self, query: Query, thread: str) -> None:
        """Let a query that resumes an earlier one take its place.

        Args:
            query: What has just ended.
            thread: The graph's thread.
        """
        with self._lock:
            before = self._queries.pop(thread, None)
        if before is None or not _resumes(query):
            return
        stopped = _stopped(before)
        again = bool(query.retrievals)  # a node that stopped begins from its start when resumed
        kept = {
            run_id: run
            for run_id, run in before.retrievals.items()
            if not again or stopped.isdisjoint(before.ancestors(run_id))
        }
        failed = {run_id: one for run_id, one in before.failed.items() if run_id not in stopped}
        if (failure := query.failed.get(query.root_id)) is not None:
            failed[before.root_id] = failure
        query.retrievals = {**kept, **query.retrievals}
        query.parents = {**before.parents, **query.parents}
        query.failed = {**failed, **query.failed}
        query.prompts = {**before.prompts, **query.prompts}
        if query.parts is not None:
            query.parts = {**(before.parts or {}), **query.parts}
        query.metadata = {**before.metadata, **query.metadata}
        query.root_id, query.order, query.started = before.root_id, before.order, before.started
        query.input = before.input

    def remember(self, query: Query, thread: str) -> None:
        """Keep a query that may be resumed."""
        with self._lock:
            self._queries[thread] = query
            while len(self._queries) > MAX_INTERRUPTED:
                self._queries.popitem(last=False)


def _stopped(query: Query) -> set[int]:
    """Find the runs that asked the user, or that failed and took the whole graph along."""
    failed = query.failed.items()
    return {run_id for run_id, one in failed if one.fatal or one.is_a("GraphInterrupt")}


def _resumes(query: Query) -> bool:
    """Is its input no question, but the sign to go on?"""
    return query.input is None or type(query.input).__name__ == "Command"


_of: WeakKeyDictionary[Any, Interrupted] = WeakKeyDictionary()
