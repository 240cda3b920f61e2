"""One thread that does, in order, what must not be done in the application's own."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

logger = logging.getLogger("ctxeval")

LINGER_SECONDS = 0.02
"""How long the thread lets jobs gather: waking it for each would cost the application more
than handing the job over."""


class Worker:
    """Does jobs one after another on a daemon thread, which starts with the first job.

    Args:
        max_pending: How many jobs wait at most; more are refused.
        when_idle: Is called whenever no job is left.
    """

    def __init__(self, max_pending: int, when_idle: Callable[[], None] | None = None) -> None:
        """See the class."""
        self._max_pending = max_pending
        self._when_idle = when_idle
        self._start_over()
        _workers.add(self)

    def _start_over(self) -> None:
        self._jobs: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._awake = False
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._idle = threading.Condition()
        self._busy = False
        self._thread: threading.Thread | None = None

    def put(self, do: Callable[..., None], *arguments: Any) -> bool:
        """Hand a job over, without ever waiting.

        Args:
            do: What does it.
            *arguments: What that is given: the caller waits less than for a function that
                holds them.

        Returns:
            False where too many are waiting and the job was refused.
        """
        if len(self._jobs) >= self._max_pending:
            return False
        self._jobs.append((do, arguments))
        if not self._awake:
            self._awake = True
            if self._thread is None:
                self._start()
            self._wake.set()
        return True

    def _start(self) -> None:
        with self._idle:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=_work, args=(weakref.ref(self),), name="ctxeval-worker", daemon=True
                )
                self._thread.start()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all jobs so far are done.

        Returns:
            False where the time was not enough.
        """
        if threading.current_thread() is self._thread:  # a job that asks would wait for itself
            return False
        if self._jobs:  # or the next ones would not be let gather
            self._hurry.set()
        with self._idle:
            return self._idle.wait_for(lambda: not self._jobs and not self._busy, timeout)

    def _drain(self) -> None:
        with self._idle:
            self._busy = True
        while self._jobs:
            do, arguments = self._jobs.popleft()
            self._do(do, *arguments)
            time.sleep(0)  # let the application go first
        if self._when_idle is not None:
            self._do(self._when_idle)
        with self._idle:
            self._busy = False
            self._idle.notify_all()

    def _do(self, do: Callable[..., None], *arguments: Any) -> None:
        try:
            do(*arguments)
        except Exception:
            logger.exception("ctxeval: a job failed")


def _work(reference: weakref.ref[Worker]) -> None:
    """Work until nobody needs the worker any more."""
    while (worker := reference()) is not None:
        wake, hurry = worker._wake, worker._hurry
        worker._awake = False
        if worker._jobs:
            worker._awake = True
            hurry.wait(LINGER_SECONDS)
            hurry.clear()
            worker._drain()
            continue  # what came since would wait for the next wake-up
        del worker
        wake.wait(1.0)
        wake.clear()


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


def _after_fork() -> None:
    # A forked child has its parent's jobs, but not the thread that does them.
    for worker in list(_workers):
        worker._start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
