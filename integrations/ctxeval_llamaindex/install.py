"""Let `ctxeval.trace()` reach LlamaIndex."""

from __future__ import annotations

from collections.abc import Callable

from ctxeval import Recorder
from ctxeval_llamaindex.hooks import ensure, tracker


def install(current: Callable[[], Recorder | None]) -> None:
    """Have every query ask for the recorder of the block that it runs in. Idempotent.

    Args:
        current: Gives that recorder, or None.
    """
    tracker.current = current
    ensure()
