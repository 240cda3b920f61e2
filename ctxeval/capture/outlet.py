"""One sink's queue, and what it has delivered."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from ctxeval.capture.sinks import Exporter
from ctxeval.errors import NotTracedError, describe
from ctxeval.keys import said_by_others
from ctxeval.record.query import QueryRecord

DELAYS = (1.0, 4.0, 16.0)
"""Seconds until a record that could not be sent is tried again: spans may arrive after scores."""

LINGER_SECONDS = 1.0
"""How long a thread without work waits for some before it ends."""


class Delivery(NamedTuple):
    """How a sink fares.

    Attributes:
        sent: How many records it took.
        retried: How often one was tried again.
        waiting: How many are to be sent.
        kept: How many it did not take, and the store keeps to be sent later.
        lost: How many it did not take, and nobody keeps.
        error: What went wrong last; "" where nothing did.
    """

    sent: int = 0
    retried: int = 0
    waiting: int = 0
    kept: int = 0
    lost: int = 0
    error: str = ""


class _Parcel(NamedTuple):
    """A record for one sink, in order of when to send it."""

    due: float
    number: int
    attempt: int
    record: QueryRecord


_numbers = itertools.count()


class Outlet:
    """One sink's queue, and the thread that empties it as long as there is something in it.

    Args:
        exporter: The sink.
        max_pending: How many records wait at most; more are given up at once.
        undelivered: Is called with the sink's name, a record that it did not take, why, and
            whether it never will; says whether the record is kept to be sent later.
        after_giving_up: Is called on the sink's own thread, which may wait.
        as_sent: Makes of a record what may be sent of it, if not all of it.
    """

    def __init__(
        self,
        exporter: Exporter,
        max_pending: int,
        undelivered: Callable[[str, QueryRecord, str, bool], bool],
        after_giving_up: Callable[[], object],
        as_sent: Callable[[QueryRecord], QueryRecord] | None = None,
    ) -> None:
        """See the class."""
        self.exporter = exporter
        self._as_sent = as_sent
        self._max_pending = max_pending
        self._undelivered = undelivered
        self._after_giving_up = after_giving_up
        self._counts = Delivery()
        self.start_over()

    def start_over(self) -> None:
        """Forget what waits: in a forked child it is the parent's."""
        self._parcels: list[_Parcel] = []  # a heap, some of which others took the place of
        self._waiting: dict[str, _Parcel] = {}  # by their records' ids
        self._under_way: _Parcel | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @property
    def delivery(self) -> Delivery:
        """How it fares."""
        with self._changed:
            return self._counts._replace(waiting=len(self._waiting) + (self._under_way is not None))

    def put(self, record: QueryRecord) -> None:
        """Hand a record over. It takes the place of one with its id that waits."""
        with self._changed:
            full = len(self._waiting) >= self._max_pending and record.id not in self._waiting
            if not full:
                self._add(_Parcel(time.monotonic(), next(_numbers), 0, record))
                self._wake()
        if full:
            self.give_up(record, "too many were waiting")

    def _add(self, parcel: _Parcel) -> None:
        self._waiting[parcel.record.id] = parcel
        heapq.heappush(self._parcels, parcel)

    def _wake(self) -> None:
        if self._thread is None:
            name = f"ctxeval-{self.exporter.name}"
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # there are too many, or the process ends: the next one tries
                return
            self._thread = thread
        self._changed.notify_all()

    def _run(self) -> None:
        while (parcel := self._next()) is not None:
            self._send(parcel)

    def _next(self) -> _Parcel | None:
        """Wait for a parcel that is due; None where there is none any more."""
        with self._changed:
            idle = time.monotonic() + LINGER_SECONDS
            while True:
                now = time.monotonic()
                first = self._parcels[0] if self._parcels else None
                if first is None:
                    if now >= idle:
                        self._thread = None
                        return None
                elif self._waiting.get(first.record.id) is not first:
                    heapq.heappop(self._parcels)
                    continue
                elif first.due <= now:
                    heapq.heappop(self._parcels)
                    del self._waiting[first.record.id]
                    self._under_way = first
                    return first
                self._changed.wait((idle if first is None else first.due) - now)

    def _send(self, parcel: _Parcel) -> None:
        failed: BaseException | None = None
        try:
            record = parcel.record if self._as_sent is None else self._as_sent(parcel.record)
            self.exporter.export(record)
        except BaseException as error:  # one that ends threads would leave the others waiting
            failed = error
        again = failed is not None and self._is_worth_it(parcel, failed)
        said = "" if failed is None else said_by_others(describe(failed))
        if failed is not None and not again:
            self.give_up(parcel.record, said, for_ever=isinstance(failed, NotTracedError))
            self._after_giving_up()
        with self._changed:
            self._under_way = None
            counts = self._counts
            if failed is None:
                self._counts = counts._replace(sent=counts.sent + 1)
            elif again:
                self._counts = counts._replace(retried=counts.retried + 1, error=said)
                due = time.monotonic() + DELAYS[parcel.attempt]
                if parcel.record.id not in self._waiting:
                    self._add(parcel._replace(due=due, attempt=parcel.attempt + 1))
            self._changed.notify_all()

    def _is_worth_it(self, parcel: _Parcel, error: BaseException) -> bool:
        return not isinstance(error, NotTracedError) and parcel.attempt < len(DELAYS)

    def give_up(self, record: QueryRecord, why: str, *, for_ever: bool = False) -> None:
        """Count a record that this sink does not get now, or ever."""
        kept = self._undelivered(self.exporter.name, record, why, for_ever)
        with self._changed:
            counts = self._counts
            self._counts = counts._replace(
                kept=counts.kept + kept, lost=counts.lost + (not kept), error=why
            )

    def note_lost(self) -> None:
        """Note that a record could not be kept after all."""
        with self._changed:
            counts = self._counts
            self._counts = counts._replace(kept=counts.kept - 1, lost=counts.lost + 1)

    def wait(self, timeout: float | None) -> bool:
        """Wait until nothing is left to send.

        Returns:
            False where the time was not enough.
        """
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._waiting and self._under_way is None, timeout
            )

    def give_up_all(self, why: str) -> None:
        """Give up whatever still waits, and what is under way: that may be sent twice."""
        with self._changed:
            under_way = [] if self._under_way is None else [self._under_way]
            parcels = [*under_way, *self._waiting.values()]
            self._parcels, self._waiting = [], {}
            self._changed.notify_all()
        for parcel in parcels:
            self.give_up(parcel.record, why)
