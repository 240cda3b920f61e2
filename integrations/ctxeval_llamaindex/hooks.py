"""The hooks in LlamaIndex's dispatcher: one pair for all handlers and blocks, put there once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
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


class _Events(BaseEventHandler):
    """Sees retrievals that have events, but no span: a retriever's that tells of itself."""

    @classmethod
    def class_name(cls) -> str:
        return "CtxEvalEvents"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        if type(event).__name__ != "RetrievalEndEvent":
            return
        try:
            tracker.see(event)
        except Exception as error:
            _count(error)


_spans, _events, _root = _Spans(), _Events(), get_dispatcher()


def ensure() -> None:
    """Put the hooks in their place, unless they are there: others assign the lists anew."""
    if not any(one is _spans for one in _root.span_handlers):
        _root.add_span_handler(_spans)
    if not any(one is _events for one in _root.event_handlers):
        _root.add_event_handler(_events)


@lru_cache(maxsize=256)
def _is_attachable(cls: type) -> bool:
    return issubclass(cls, Attachable)  # which takes pydantic long


class _Attached:
    """Gives the takers of handlers that were installed, or that stand in the dispatcher's list."""

    def __init__(self) -> None:
        self.installed: tuple[Taker, ...] = ()

    def __call__(self) -> Sequence[Taker]:
        takers = self.installed
        for one in _root.event_handlers:
            if one is not _events and _is_attachable(type(one)):
                taker: Taker = one.taker  # type: ignore[attr-defined]  # it is an Attachable
                if taker not in takers:
                    takers = (*takers, taker)
        return takers


attached = _Attached()
tracker.attached = attached


def _count(error: Exception) -> None:
    takers = tracker.takers()
    for taker in takers:
        taker.count(error)
    if not takers:
        logger.debug("ctxeval: a hook failed", exc_info=error)
