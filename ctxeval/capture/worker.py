"""One thread that does, in order, what must not be done in the application's own."""

from __future__ import annotations

import atexit
import logging
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable

logger = logging.getLogger("ctxeval")

Job = Callable[[], None]

EXIT_SECONDS = 2.0
"""How long the interpreter's exit waits for what is still to be done."""


class Worker:
    """Does jobs one after another on a daemon thread, which starts with the first job.

    Args:
        max_pending: How many jobs wait at most; more are refused.
    """

    def __init__(self, max_pending: int) -> None:
        """See the class."""
        self._max_pending = max_pending
        self._start_over()
        _workers.add(self)

    def _start_over(self) -> None:
        self._jobs: queue.Queue[Job] = queue.Queue(self._max_pending)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._pid = os.getpid()

    def put(self, job: Job) -> bool:
        """Hand a job over, without ever waiting.

        Returns:
            False where the queue is full and the job was refused.
        """
        if self._pid != os.getpid():  # a forked child has its parent's queue, but not its thread
            self._start_over()
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            return False
        if self._thread is None:
            self._start()
        return True

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=_work, args=(self._jobs,), name="ctxeval-worker", daemon=True
                )
                self._thread.start()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all jobs so far are done.

        Returns:
            False where the time was not enough.
        """
        jobs = self._jobs
        deadline = None if timeout is None else time.monotonic() + timeout
        with jobs.all_tasks_done:
            while jobs.unfinished_tasks:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                jobs.all_tasks_done.wait(left)
        return True


def _work(jobs: queue.Queue[Job]) -> None:
    while True:
        job = jobs.get()
        try:
            job()
        except Exception:
            logger.exception("ctxeval: a job failed")
        finally:
            jobs.task_done()
            del job  # what it held may go before the next one comes


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


@atexit.register
def _finish() -> None:
    deadline = time.monotonic() + EXIT_SECONDS
    for worker in list(_workers):
        if worker._thread is not None and worker._pid == os.getpid():
            worker.join(max(0.0, deadline - time.monotonic()))
