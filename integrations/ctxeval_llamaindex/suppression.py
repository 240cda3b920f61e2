"""Whether what is going on is ctxeval's own doing, which no capture should record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

suppressed: ContextVar[bool] = ContextVar("ctxeval_llamaindex_suppressed", default=False)
"""Is ctxeval itself at work here, judging? Then events are none of the application's."""


@contextmanager
def suppress() -> Iterator[None]:
    """Mark what runs in the block as ctxeval's own."""
    token = suppressed.set(True)
    try:
        yield
    finally:
        suppressed.reset(token)
