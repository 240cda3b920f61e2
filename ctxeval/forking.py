"""Locks that a forked child gets anew: whoever held them is not in the child."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_owners: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def lock_for(owner: Any) -> threading.RLock:
    """Make the lock that guards an object, to be kept as its `_lock`.

    Who holds it can take it again: the garbage collector may call anything at any moment.
    """
    _owners[id(owner)] = owner
    return threading.RLock()


def _after_fork() -> None:
    for owner in list(_owners.values()):
        owner._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
