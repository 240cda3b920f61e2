"""Which span belongs to which query, and when each query is over.

Queries are told apart by a context variable of our own, never by the root of their spans:
LlamaIndex's own variable outlives an agent's run in its caller's context.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any
from weakref import ref

from ctxeval import Recorder
from ctxeval_llamaindex.queries import Failure, Frame, Outcome, Query, Stage
from ctxeval_llamaindex.reading import answer_of, input_of, question_of, text_of
from ctxeval_llamaindex.snapshots import ids_of, snapshot
from ctxeval_llamaindex.spans import (
    IGNORED,
    PROMPT,
    QUERY,
    RERANK,
    RETRIEVE,
    ROOTS,
    RUN,
    SCOPES,
    STAGES,
    STEP,
    asker,
    is_evaluator,
    kind_of,
    wants_no_documents,
)
from ctxeval_llamaindex.streams import watch
from ctxeval_llamaindex.suppression import suppressed
from ctxeval_llamaindex.takers import Taker

_here: ContextVar[Frame | None] = ContextVar("ctxeval_llamaindex_frame", default=None)
"""The innermost frame around the code that is running now; it may be over already."""


class Tracker:
    """Follows spans, and hands finished queries to their takers. Safe from any thread.

    Attributes:
        current: Gives the recorder of the block that is running, or None.
        attached: Gives the takers that take all queries.
    """

    def __init__(self) -> None:
        """See the class."""
        self.current: Callable[[], Recorder | None] = lambda: None
        self.attached: Callable[[], list[Taker]] = list
        self._of_blocks: dict[int, Taker] = {}
        self._frames: dict[str, Frame] = {}
        self._chats: dict[int, tuple[ref[Any], Query]] = {}

    def enter(
        self,
        id_: str,
        arguments: Mapping[str, Any],
        instance: Any,
        parent_id: str | None,
        tags: Mapping[str, Any],
    ) -> None:
        """Note that a span began."""
        kind = kind_of(id_, instance)
        if kind is None or suppressed.get():
            return
        here = _here.get()
        around = _open(here)
        if kind == STEP:
            if around is not None and around.leaks and around.id_ == parent_id:
                self._push(Frame(id_, kind, around.query, around, here))
            return
        while around is not None and around.leaks:  # only its steps are inside of it
            around = _open(around.outer)
        if around is not None and around.kind == IGNORED:
            return
        ...
