"""Which span belongs to which query, and when each query is over.

Queries are told apart by a context variable of our own, never by the root of their spans:
LlamaIndex's variable may outlive a workflow's run in its caller's context.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary, proxy

from ctxeval import Recorder
from ctxeval_llamaindex.endings import Endings
from ctxeval_llamaindex.failures import Failure
from ctxeval_llamaindex.queries import Query
from ctxeval_llamaindex.reading import input_of
from ctxeval_llamaindex.spans import (
    ASKED,
    DOCUMENTS,
    IGNORED,
    JUDGING,
    RERANK,
    RETRIEVE,
    ROOTS,
    RUN,
    SCOPES,
    STAGES,
    STEP,
    WRITE,
    asker,
    purpose_of,
)
from ctxeval_llamaindex.stages import Frame, around_of, begin_stage, end_stage, still_open
from ctxeval_llamaindex.suppression import suppressed
from ctxeval_llamaindex.takers import Taker
from ctxeval_llamaindex.tracing import span_of_query

Named = Mapping[str, Any]

MAX_LATE = 1000
"""How many spans of queries that were given up are remembered until they end."""

_BY_EVENTS = "reranking-"
"""How the ids begin of frames that stand for no span."""

_NO_TAGS: Named = MappingProxyType({})

_here: ContextVar[Frame | None] = ContextVar("ctxeval_llamaindex_frame", default=None)
"""The innermost frame around the code that is running now; it may be over already."""


class Tracker:
    """Follows spans, and hands finished queries to their takers. Safe from any thread.

    Attributes:
        current: Gives the recorder of the block that is running, or None.
        attached: Gives the takers of all queries.
        endings: Sees to how queries end.
        frames: The open frames, by their spans' ids.
    """

    def __init__(self) -> None:
        """See the class."""
        self.current: Callable[[], Recorder | None] = lambda: None
        self.attached: Callable[[], Sequence[Taker]] = tuple
        self.endings = Endings()
        self._of_blocks: WeakKeyDictionary[Recorder, Taker] = WeakKeyDictionary()
        self.frames: dict[str, Frame] = {}
        self._late: deque[Frame] = deque()

    def __len__(self) -> int:
        """Count the spans that are remembered."""
        return len(self.frames) + len(self.endings)

    def takers(self) -> Sequence[Taker]:
        """Give those who take a query that begins here and now."""
        takers = self.attached()
        recorder = self.current()
        if recorder is None or any(taker.recorder is recorder for taker in takers):
            return takers
        taker = self._of_blocks.get(recorder)
        if taker is None:
            # Held here as long as the recorder is, which it therefore must not hold itself.
            taker = self._of_blocks.setdefault(recorder, Taker(proxy(recorder)))
        return [*takers, taker]

    def pass_by(self, kind: str, id_: str, instance: Any, parent_id: str | None) -> None:
        """Note that a span began which only tells where others belong: a step's, a writer's."""
        if kind == WRITE:
            if len(self):
                self.endings.of_writing(instance)
            return
        run = still_open(_here.get())
        if run is not None and run.query is not None and run.leaks and run.id_ == parent_id:
            self.frames[id_] = frame = Frame(id_, kind, run.query, run)
            run.query.frames.append(frame)
            _here.set(frame)

    def begin(self, kind: str, id_: str, arguments: Named, instance: Any, tags: Named) -> None:
        """Note that something began which matters. The hooks call this: see `asker`."""
        if suppressed.get():
            return
        here = _here.get()
        around = None if here is None else around_of(here)
        if around is not None and around.kind == IGNORED:
            return
        query = None if around is None else around.query
        takers: Sequence[Taker] = ()
        if query is None or _is_apart(query, kind, instance, tags):
            query = around = None
            takers = self.takers() if kind in ROOTS else ()
            if not takers:
                return
        purpose = purpose_of(asker(), instance) if kind in ASKED else DOCUMENTS
        if purpose == JUDGING:
            self.frames[id_] = frame = Frame(id_, IGNORED, None, around)
            _here.set(frame)
            return
        if query is None:
            own = _own(tags) if tags else _NO_TAGS
            cls = type(instance)
            query = Query(id_, kind, cls.__name__, input_of(kind, arguments), own, takers)
            for taker in takers:
                for old in taker.begin(query):
                    self._give_up(old, taker)
        elif kind in STAGES and _calls_what_it_overrides(kind, instance, around):
            return
        frame = Frame(id_, kind, query, around, instance)
        if kind == RUN:
            frame.leaks = "init_state" not in arguments  # before workflows 2.14
        query.frames.append(frame)
        self.frames[id_] = frame
        _here.set(frame)
        if kind in STAGES:
            frame.stage = begin_stage(frame, arguments, purpose == DOCUMENTS)
            query.stages.append(frame.stage)

    def see_retrieved(self, event: Any) -> None:
        """Note a retrieval that was told by its end's event; most are by their spans."""
        around = still_open(_here.get())
        if around is None or around.kind != RETRIEVE:
            id_ = f"retrieval-{event.id_}"
            self.begin(RETRIEVE, id_, {"query": event.str_or_query_bundle}, None, event.tags)
            if (frame := self.frames.pop(id_, None)) is not None:
                self.exit(frame, event.nodes)

    def see_reranking(self, event: Any) -> None:
        """Note that a reranker begins which has no span: an asynchronous one, perhaps."""
        around = still_open(_here.get())
        if around is not None and around.kind != RERANK:
            given = {"nodes": event.nodes, "query": event.query}
            self.begin(RERANK, f"{_BY_EVENTS}{event.id_}", given, None, event.tags)

    def see_reranked(self, event: Any) -> None:
        """Note that it ended."""
        frame = still_open(_here.get())
        if frame is None or frame.kind != RERANK or not frame.id_.startswith(_BY_EVENTS):
            return
        if self.frames.pop(frame.id_, None) is not None:
            self.exit(frame, event.nodes)

    def exit(self, frame: Frame, result: Any, error: BaseException | None = None) -> None:
        """Note that a span ended, whose frame was taken out.

        Args:
            frame: The frame.
            result: What it returned.
            error: Why it failed, if it did.
        """
        frame.open = False
        query, stage = frame.query, frame.stage
        if query is None:
            return
        if error is not None:
            frame.failed = failure = Failure.of(error)
            if frame.kind == STEP and not failure.is_control_flow:
                query.step_failed = failure
        is_root = frame is query.frames[0]
        if is_root and query.is_traced and query.traced is None:
            query.traced = span_of_query()  # our handler may be before the tracing's own
        try:
            if stage is not None:
                end_stage(stage, result, query.whole)
        finally:
            if is_root:
                query.failed = frame.failed
                self._forget(query)
                self.endings.of_root(query, result)

    def _forget(self, query: Query) -> None:
        for frame in query.frames:
            if frame.open:
                self.frames.pop(frame.id_, None)
                frame.open = False
            frame.query = frame.stage = frame.instance = None

    def _close(self, frame: Frame) -> None:
        self.frames.pop(frame.id_, None)
        frame.open = False
        frame.query = frame.stage = frame.instance = None

    def give_up_all(self, taker: Taker) -> None:
        """Hand over what is under way for a taker that takes no more."""
        for query in taker.under_way():
            if taker.end(query):
                self._give_up(query, taker)

    def _give_up(self, query: Query, taker: Taker) -> None:
        query.takers = [one for one in query.takers if one is not taker]
        taker.take(query, abandoned=True)
        if query.takers:
            return
        for frame in query.frames:
            if frame.open:  # what it still retrieves is no query of its own
                frame.kind = IGNORED
                frame.query = frame.stage = frame.instance = None
                if len(self._late) == MAX_LATE:
                    self._close(self._late.popleft())
                self._late.append(frame)


def _own(tags: Named) -> Named:
    return {key: value for key, value in tags.items() if key.startswith("ctxeval")}


def _is_apart(query: Query, kind: str, instance: Any, tags: Named) -> bool:
    """Is what begins inside of this query a query of its own?"""
    if not query.is_ours:
        return True
    if kind not in SCOPES:
        return False
    own = tags.get("ctxeval_id")
    if own is not None and own != query.metadata.get("ctxeval_id"):
        return True
    return any(taker.query_name == type(instance).__name__ for taker in query.takers)


def _calls_what_it_overrides(kind: str, instance: Any, around: Frame | None) -> bool:
    return around is not None and around.kind == kind and around.instance is instance
