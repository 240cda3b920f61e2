"""Locks that a forked child gets anew: whoever held them is not in the child.

They can be taken again by who holds them: the garbage collector may end a stream inside of a
hook, and with it calls another hook.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Locked(Protocol):
    """What guards its state by a lock of this name."""

    _lock: threading.RLock


_locked: weakref.WeakSet[Locked] = weakref.WeakSet()


def lock_for(owner: Locked) -> threading.RLock:
    """Make the lock of an object."""
    _locked.add(owner)
    return threading.RLock()


def _after_fork() -> None:
    for owner in list(_locked):
        owner._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
