"""Capture whatever any installed framework retrieves inside of a block."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import entry_points
from typing import Any

from ctxeval.capture.recorder import Recorder

logger = logging.getLogger("ctxeval")

GROUP = "ctxeval.capture"
"""The entry points of adapters: each is `install(current)`, to be called any number of times."""


class _Block:
    """A block that captures, inside of another one perhaps."""

    def __init__(self, recorder: Recorder, around: _Block | None) -> None:
        self.recorder = recorder
        self.around = around
        self.open = True


_block: ContextVar[_Block | None] = ContextVar("ctxeval_trace", default=None)
_adapters: dict[str, Callable[[Callable[[], Recorder | None]], None]] = {}


_everywhere: Recorder | None = None


def current() -> Recorder | None:
    """Give the recorder of the innermost block that is running, for adapters to ask."""
    block = _block.get()
    while block is not None and not block.open:
        block = block.around
    return _everywhere if block is None else block.recorder


def capture_everywhere(recorder: Recorder | None) -> None:
    """Capture what runs in no block, whatever its thread.

    Args:
        recorder: Where the records go; None: nowhere any more.
    """
    global _everywhere
    _everywhere = recorder


@contextmanager
def trace(*, recorder: Recorder | None = None, **options: Any) -> Iterator[Recorder]:
    """Capture whatever is retrieved inside of a block, by any installed framework.

    It follows tasks, `asyncio.gather` and `asyncio.to_thread`, and tasks that were begun in
    the block and end later; threads of your own only with `contextvars.copy_context().run`.
    Of nested blocks the innermost captures.

    Args:
        recorder: Where the records go; None: one made of the other arguments.
        **options: Those of `Recorder`: `metrics`, `references`, `llm`, …

    Yields:
        The recorder.

    Examples:
        >>> with trace(metrics="auto") as t:
        ...     pass  # call your chain here
        >>> t.records
        []
    """
    install_adapters()
    block = _Block(Recorder.of(recorder, options), _block.get())
    token = _block.set(block)
    try:
        yield block.recorder
    finally:
        try:
            _block.reset(token)
        except ValueError:  # closed from another context, as generators may be
            block.open = False


def install_adapters() -> list[str]:
    """Connect the adapters whose frameworks are installed. A broken one costs one warning.

    Returns:
        The names of those that are connected.
    """
    connected = []
    for entry_point in entry_points(group=GROUP):
        install = _adapters.get(entry_point.value)
        try:
            if install is None:
                install = _adapters[entry_point.value] = entry_point.load()
            install(current)  # each time: others may have taken out what it put in
            if install is not _no_adapter:
                connected.append(entry_point.name)
        except ModuleNotFoundError as error:
            logger.debug("ctxeval: %s is left out: %s", entry_point.name, error)
            # its framework may be installed later on
        except Exception:
            logger.warning("ctxeval: the adapter %s is broken", entry_point.name, exc_info=True)
            _adapters[entry_point.value] = _no_adapter
    return connected


def _no_adapter(current: Callable[[], Recorder | None]) -> None:
    """Stand for an adapter that is broken."""
