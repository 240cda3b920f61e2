"""The hooks in LlamaIndex's dispatcher: one pair for all handlers and blocks, put there once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from inspect import BoundArguments
from typing import Any

from ctxeval_llamaindex.instrumentation import (
    BaseEvent,
    BaseEventHandler,
    BaseSpanHandler,
    active_instrument_tags,
    get_dispatcher,
)
from ctxeval_llamaindex.spans import PASSED_BY, UUID_LENGTH, kind_of
from ctxeval_llamaindex.takers import Taker
from ctxeval_llamaindex.tracking import Tracker

logger = logging.getLogger("ctxeval")

tracker = Tracker()


class Attachable(BaseEventHandler):
    """An event handler which, where a dispatcher has it, stands for a taker of all queries."""

    @property
    def taker(self) -> Taker:
        """Who takes the queries."""
        raise NotImplementedError


class _Spans(BaseSpanHandler[Any]):
    """Follows spans. It keeps none, other than those that the framework comes with."""

    def span_enter(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: Any | None = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        try:
            kind = kind_of(type(instance), id_[:-UUID_LENGTH])  # type: ignore[arg-type]
            if kind is None:
                return
            if tags is None:
                tags = active_instrument_tags.get()
            if kind in PASSED_BY:
                tracker.pass_by(kind, id_, instance, parent_id)
            else:
                tracker.begin(kind, id_, bound_args.arguments, instance, tags)
        except Exception as error:
            _count(error)

    def span_exit(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: Any | None = None,
        result: Any | None = None,
        **kwargs: Any,
    ) -> None:
        try:
            frame = tracker.frames.pop(id_, None)
            if frame is not None:
                tracker.exit(frame, result)
        except Exception as error:
            _count(error)

    def span_drop(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: Any | None = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        try:
            frame = tracker.frames.pop(id_, None)
            if frame is not None:
                tracker.exit(frame, None, err or RuntimeError("dropped"))
        except Exception as error:
            _count(error)

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        return None

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        return None

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        return None


_TOLD = {
    "RetrievalEndEvent": tracker.see_retrieved,
    "ReRankStartEvent": tracker.see_reranking,
    "ReRankEndEvent": tracker.see_reranked,
}


class _Events(BaseEventHandler):
    """Sees what has events, but no span: a retriever that tells of itself, say."""

    @classmethod
    def class_name(cls) -> str:
        return "CtxEvalEvents"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        see = _TOLD.get(type(event).__name__)
        if see is None:
            return
        try:
            see(event)
        except Exception as error:
            _count(error)


_spans, _events, _root = _Spans(), _Events(), get_dispatcher()


def ensure() -> None:
    """Put the hooks in their place, unless they are there: others assign the lists anew."""
    if not any(one is _spans for one in _root.span_handlers):
        _root.add_span_handler(_spans)
    if not any(one is _events for one in _root.event_handlers):
        _root.add_event_handler(_events)


class _Attached:
    """Gives the takers of handlers that were installed, or that stand in the dispatcher's list."""

    def __init__(self) -> None:
        self._installed: tuple[Taker, ...] = ()
        self._takers: tuple[Taker, ...] = ()
        self._seen: tuple[list[BaseEventHandler], int] | None = None

    def __call__(self) -> Sequence[Taker]:
        handlers = _root.event_handlers
        seen = self._seen
        if seen is None or seen[0] is not handlers or seen[1] != len(handlers):
            self._look(handlers)
        return self._takers

    def _look(self, handlers: list[BaseEventHandler]) -> None:
        self._seen = handlers, len(handlers)
        in_list = [one.taker for one in handlers if isinstance(one, Attachable)]
        self._takers = tuple(dict.fromkeys((*self._installed, *in_list)))

    def add(self, taker: Taker) -> None:
        """Have a taker take all queries."""
        self._installed = tuple(dict.fromkeys((*self._installed, taker)))
        self._seen = None

    def remove(self, taker: Taker) -> None:
        """Take it out again, and its handler out of the dispatcher's list."""
        self._installed = tuple(one for one in self._installed if one is not taker)
        _root.event_handlers[:] = [
            one
            for one in _root.event_handlers
            if not isinstance(one, Attachable) or one.taker is not taker
        ]
        self._seen = None


attached = _Attached()
tracker.attached = attached


def _count(error: Exception) -> None:
    takers = tracker.takers()
    for taker in takers:
        taker.count(error)
    if not takers:
        logger.debug("ctxeval: a hook failed", exc_info=error)
