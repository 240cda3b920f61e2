"""Scores on their way to where people look: tried again, counted, never in the way."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ctxeval.capture.outlet import Delivery, Outlet
from ctxeval.capture.sinks import Sink, exporters_of
from ctxeval.export.spans import locate
from ctxeval.record.query import QueryRecord

if TYPE_CHECKING:
    from ctxeval.store import Store

logger = logging.getLogger("ctxeval")


class Sending:
    """Sends records to sinks, each with a queue and a thread of its own.

    Args:
        sinks: The sinks.
        max_pending: How many records wait for each at most.
        store: Where what could not be sent is kept, if anywhere.
        lost: Is called with a reason for each record that is not sent, and that nobody keeps.

    Raises:
        InvalidArgumentError: One is no sink, or two have one name.
    """

    def __init__(
        self,
        sinks: Iterable[Sink],
        max_pending: int,
        store: Store | None,
        lost: Callable[[str], object],
    ) -> None:
        """See the class."""
        exporters = exporters_of(sinks)
        as_sent = None if store is None else store.as_kept
        self._outlets = [
            Outlet(one, max_pending, self._undelivered, self.save, as_sent) for one in exporters
        ]
        self._makes_spans = any(getattr(one, "makes_spans", False) for one in exporters)
        self._store = store
        self._lost = lost
        self._forget()
        _sendings.add(self)

    def _forget(self) -> None:
        self._unkept: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    def start_over(self) -> None:
        """Forget what waits: in a forked child it is the parent's."""
        self._forget()
        for outlet in self._outlets:
            outlet.start_over()

    def locate(self, record: QueryRecord) -> None:
        """Put a record into the trace that a sink will make, if nobody else traced it."""
        if self._makes_spans:
            locate(record)

    def put(self, record: QueryRecord) -> None:
        """Hand a record with its scores over. Never waits."""
        for outlet in self._outlets:
            outlet.put(record)

    def _undelivered(self, name: str, record: QueryRecord, why: str, for_ever: bool) -> bool:
        if for_ever:
            self._lost(f"{name}: in no trace of it")
            return False
        if self._store is None:
            self._lost(f"{name}: not sent")
            return False
        with self._lock:
            self._unkept.append((name, record.id))
        return True

    def save(self) -> None:
        """Note in the store what was not sent."""
        with self._lock:
            unkept, self._unkept = self._unkept, []
        if self._store is None or not unkept:
            return
        try:
            self._store.put_unsent(unkept)
        except Exception:
            logger.debug("ctxeval: what was not sent could not be kept", exc_info=True)
            outlets = {outlet.exporter.name: outlet for outlet in self._outlets}
            for name, _ in unkept:
                outlets[name].note_lost()
                self._lost(f"{name}: not sent")

    @property
    def deliveries(self) -> dict[str, Delivery]:
        """How each sink fares, by its name."""
        return {outlet.exporter.name: outlet.delivery for outlet in self._outlets}

    def wait(self, timeout: float | None) -> bool:
        """Wait until everything is sent, or given up.

        Returns:
            False where the time was not enough.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        done = True
        for outlet in self._outlets:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            done = outlet.wait(left) and done
        return done

    def give_up(self, why: str, records: Iterable[QueryRecord] = ()) -> None:
        """Give up what still waits, and records that were about to come."""
        for outlet in self._outlets:
            outlet.give_up_all(why)
            for record in records:
                outlet.give_up(record, why)
        self.save()


# A recorder may be gone while what it recorded is still on its way: so not its own.
_sendings: weakref.WeakSet[Sending] = weakref.WeakSet()


@atexit.register
def _finish() -> None:
    for one in list(_sendings):
        one.give_up("the process ended")


def _after_fork() -> None:
    for one in list(_sendings):
        one.start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
