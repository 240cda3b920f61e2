"""A progress bar where somebody looks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

from ctxeval.errors import MissingExtraError
from ctxeval.extras import load

T = TypeVar("T")

SECONDS = 0.5
"""How often the bar changes at most."""


def progress_bar(wanted: bool | None, total: int | None) -> Callable[[Iterator[T]], Iterator[T]]:
    """Make what shows the progress of an iterator.

    Args:
        wanted: Show it? None: on a terminal and in a notebook, if tqdm is installed.
        total: How many items there are, where that is known.

    Raises:
        MissingExtraError: It is wanted, and tqdm is not installed.
    """
    if wanted is False or (wanted is None and not _somebody_looks()):
        return lambda items: items
    try:
        tqdm = load("tqdm.auto", "a progress bar", "cli").tqdm
    except MissingExtraError:
        if wanted is None:
            return lambda items: items
        raise
    return lambda items: iter(
        tqdm(items, total=total, mininterval=SECONDS, leave=False, unit=" samples")
    )


def _somebody_looks() -> bool:
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    ipython = sys.modules.get("IPython")  # loaded where a notebook runs, never by us
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"
