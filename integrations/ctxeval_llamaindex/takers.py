"""Who gets the queries: a recorder, and what its user wants of it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ctxeval import Recorder
from ctxeval_llamaindex.queries import Query
from ctxeval_llamaindex.records import Reader
from ctxeval_llamaindex.spans import PROMPT, QUERY, RETRIEVE
from ctxeval_llamaindex.stages import Stage

logger = logging.getLogger("ctxeval")

MAX_OPEN = 10_000
OPEN_SECONDS = 900.0

Include = Callable[[Any], bool] | None


class Taker:
    """Takes queries for a recorder, and remembers those that are under way.

    Args:
        recorder: Where the records go.
        include: Which retrievals count, by their retriever.
        query_name: The class whose queries, chats or runs are a query each.
        max_open: How many queries may be under way; the oldest are given up.
        open_seconds: How long one may take.

    Attributes:
        errors: How many hooks failed, by the error's name.
        sees_nodes: Does the user's function need the nodes themselves?
    """

    def __init__(
        self,
        recorder: Recorder,
        include: Include = None,
        query_name: str | None = None,
        max_open: int = MAX_OPEN,
        open_seconds: float = OPEN_SECONDS,
    ) -> None:
        """See the class."""
        self.recorder = recorder
        self.query_name = query_name
        self.errors: Counter[str] = Counter()
        self.sees_nodes = callable(recorder.id_key)
        self._include = include
        self._reader = Reader(recorder)
        self._max_open = max_open
        self._open_seconds = open_seconds
        self._next_expiry = 0.0
        self._open: dict[int, Query] = {}
        self._told: set[str] = set()

    def __len__(self) -> int:
        """Count the queries that are under way."""
        return len(self._open)

    def begin(self, query: Query) -> Sequence[Query]:
        """Note a query.

        Returns:
            The queries that were given up for it, since they are too old or too many.
        """
        self._open[query.order] = query
        if query.started < self._next_expiry and len(self._open) <= self._max_open:
            return ()
        return self._expired(query.started)

    def _expired(self, now: float) -> list[Query]:
        expired = []
        while (oldest := self._oldest()) is not None:
            self._next_expiry = oldest.started + self._open_seconds
            if len(self._open) <= self._max_open and now < self._next_expiry:
                break
            if self._open.pop(oldest.order, None) is not None:
                expired.append(oldest)
        return expired

    def _oldest(self) -> Query | None:
        try:  # no lock: a forked child could find it locked for ever
            return next(iter(self._open.values()), None)
        except RuntimeError:  # another thread was quicker: it is for the next query to do
            return None

    def end(self, query: Query) -> bool:
        """Note that a query is over.

        Returns:
            False where it was given up before.
        """
        return self._open.pop(query.order, None) is not None

    def under_way(self) -> list[Query]:
        """Give the queries that are under way."""
        return list(self._open.values())

    def take(self, query: Query, *, ends: bool = False, abandoned: bool = False) -> None:
        """Hand a query over to the recorder, unless nothing was retrieved in it. Never raises.

        Args:
            query: The query.
            ends: Is it over just now? Then nothing is done where it was given up before.
            abandoned: Is it given up?
        """
        try:
            if ends and self._open.pop(query.order, None) is None:
                return
            stages: Sequence[Stage] = query.stages
            for stage in stages:
                if self._include is not None or not stage.documents:
                    stages = [one for one in stages if self._wants(one)]
                    break
            for stage in stages:
                if stage.kind != PROMPT:
                    make = partial(self._reader.record, query, stages, abandoned)
                    self.recorder.submit(query.order, query.id_, make, traced=True)
                    return
            if query.kind != RETRIEVE and (ends or abandoned):
                self.recorder.count_without_retrieval()
            if not query.stages:
                self._tell(query)
        except Exception as error:
            self.count(error)

    def _wants(self, stage: Stage) -> bool:
        """Does a stage count? What happens inside of a retrieval that doesn't, doesn't either."""
        if stage.parent is not None and not self._wants(stage.parent):
            return False
        if stage.kind != RETRIEVE:
            return True
        if self._include is None:
            return stage.documents
        try:
            return bool(self._include(stage.owner))
        except Exception as error:
            self.count(error)
            return True

    def _tell(self, query: Query) -> None:
        """Say once that an engine does not let us see what it retrieves."""
        if query.kind == QUERY and query.name not in self._told:
            self._told.add(query.name)
            logger.warning(
                "ctxeval: %s answered without any retrieval that LlamaIndex tells of, so there "
                "is no record of it: let it call retriever.retrieve(…)",
                query.name,
            )

    def count(self, error: Exception) -> None:
        """Count what went wrong in a hook, and log it: LlamaIndex would hide it."""
        name = type(error).__name__
        self.errors[name] += 1
        level = logging.WARNING if self.errors[name] == 1 else logging.DEBUG
        logger.log(level, "ctxeval: a hook failed", exc_info=error)
