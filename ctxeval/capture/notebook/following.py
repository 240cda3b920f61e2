"""Keep outputs up to date whose scores are still to come."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ctxeval.capture.notebook.display import Output

logger = logging.getLogger("ctxeval")

EVERY = 0.25
"""Seconds between two updates of an output at least."""

BYTES_A_SECOND = 400_000
"""How much all updates together may send: Jupyter drops outputs beyond a million."""


class Follower:
    """Updates outputs as their scores come in, on one thread, which ends when none is left."""

    def __init__(self) -> None:
        """Start with none."""
        self._lock = threading.Lock()
        self._outputs: list[Output] = []
        self._late: list[Output] = []  # updated while no cell ran
        self._thread: threading.Thread | None = None
        self._shell: Any = None
        self._in_cell = True

    def attach(self, shell: Any) -> None:
        """Learn from an IPython when cells begin and end. Idempotent."""
        if self._shell is not shell:
            self._shell = shell
            shell.events.register("pre_run_cell", self._before_cell)
            shell.events.register("post_run_cell", self._after_cell)

    def follow(self, output: Output, shell: Any) -> None:
        """Keep an output of an IPython up to date until all of its scores are there."""
        self.attach(shell)
        with self._lock:
            self._outputs.append(output)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="ctxeval-display", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        pause = EVERY
        while True:
            time.sleep(pause)
            with self._lock:
                begun = time.monotonic()
                due = [one for one in self._outputs if not one.wait and one.changed]
                sent = self._send(due)
                if not self._in_cell:
                    self._late += due
                self._outputs = [one for one in self._outputs if one.unfinished]
                if not self._outputs:
                    self._thread = None
                    return
                pause = max(EVERY, sent / BYTES_A_SECOND, 3 * (time.monotonic() - begun))

    def _send(self, outputs: Iterable[Output]) -> int:
        """Send outputs, none sooner than it may be.

        Returns:
            How many bytes that took, about.
        """
        sent = 0
        try:
            for output in outputs:
                time.sleep(output.wait)
                sent += output.send()
        except (Exception, KeyboardInterrupt):  # the kernel is going down, say
            logger.debug("ctxeval: an output could not be updated", exc_info=True)
        return sent

    def _before_cell(self, *_: object) -> None:
        self._in_cell = True

    def _after_cell(self, *_: object) -> None:
        """Send what is new, and again what nbclient may have missed, in the name of this cell."""
        with self._lock:
            due = [one for one in self._outputs if one.changed]
            self._send([*due, *(one for one in self._late if one not in due)])
            self._late.clear()
            self._in_cell = False


follower = Follower()
"""The one of this process."""
