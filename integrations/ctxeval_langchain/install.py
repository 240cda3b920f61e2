"""Let `ctxeval.trace()` reach LangChain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, proxy

from langchain_core.tracers.context import register_configure_hook

from ctxeval import Recorder
from ctxeval_langchain.handler import CtxEvalCallbackHandler


class _Handlers:
    """Stands where LangChain expects a context variable that holds a handler, or None."""

    name = "ctxeval_handler"

    def __init__(self, current: Callable[[], Recorder | None]) -> None:
        self._current = current
        self._of: WeakKeyDictionary[Recorder, CtxEvalCallbackHandler] = WeakKeyDictionary()

    def get(self) -> CtxEvalCallbackHandler | None:
        recorder = self._current()
        if recorder is None:
            return None
        handler = self._of.get(recorder)
        if handler is None:
            # Held here as long as the recorder is, which it therefore must not hold itself.
            handler = self._of.setdefault(recorder, CtxEvalCallbackHandler(proxy(recorder)))
        return handler


_installed: list[Any] = []


def install(current: Callable[[], Recorder | None]) -> None:
    """Have every runnable ask for the recorder of the block that it runs in. Idempotent.

    Args:
        current: Gives that recorder, or None.
    """
    if not _installed:
        _installed.append(_Handlers(current))
        register_configure_hook(_installed[0], inheritable=True)
