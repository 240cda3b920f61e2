"""Scores on their way to where people look: tried again, counted, never in the way."""

from __future__ import annotations

import atexit
import heapq
import inspect
import itertools
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from ctxeval.errors import ExportError, InvalidArgumentError, NotTracedError, describe, short
from ctxeval.export.score import Score, scores_of
from ctxeval.export.spans import locate
from ctxeval.keys import without_secrets
from ctxeval.record.query import QueryRecord

if TYPE_CHECKING:
    from ctxeval.store import Store

logger = logging.getLogger("ctxeval")

DELAYS = (1.0, 4.0, 16.0)
"""Seconds until a record that could not be sent is tried again: spans may arrive after scores."""

LINGER_SECONDS = 1.0
"""How long a thread without work waits for some before it ends."""


@runtime_checkable
class Exporter(Protocol):
    """What sends a query's scores to a product; those of `ctxeval.export` are some."""

    @property
    def name(self) -> str:
        """What to call it where deliveries are counted."""
        ...

    def export(self, record: QueryRecord, /) -> object:
        """Send a query's scores; raise where that fails. Sending twice changes nothing."""
        ...


Sink = Exporter | Callable[[Sequence[Score]], object]
"""Where scores go: an exporter, or any function of a query's scores."""


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


class _Function:
    """Any function of scores, as an exporter."""

    def __init__(self, function: Callable[[Sequence[Score]], object]) -> None:
        self.name = getattr(function, "__qualname__", type(function).__name__)
        self._function = function

    def export(self, record: QueryRecord) -> None:
        given = self._function(scores_of(record))
        if inspect.iscoroutine(given):
            given.close()
            raise ExportError(f"{self.name} is asynchronous: give a function that sends")


def exporters_of(sinks: Iterable[Sink]) -> list[Exporter]:
    """Take sinks as exporters.

    Raises:
        InvalidArgumentError: One is no sink, or two have one name.
    """
    if isinstance(sinks, Exporter) or callable(sinks) or not isinstance(sinks, Iterable):
        raise InvalidArgumentError(f"sinks: {short(sinks)} is no list of sinks: give [sink]")
    made: list[Exporter] = []
    for sink in sinks:
        if isinstance(sink, type) or inspect.iscoroutinefunction(getattr(sink, "export", sink)):
            what = "a class" if isinstance(sink, type) else "asynchronous"
            raise InvalidArgumentError(f"sinks: {short(sink)} is {what}: give what sends by itself")
        if isinstance(sink, Exporter):
            made.append(sink)
        elif callable(sink):
            made.append(_Function(sink))
        else:
            raise InvalidArgumentError(
                f"sinks: a {type(sink).__name__} takes no scores: give a function of them, or an "
                "exporter of ctxeval.export"
            )
    names = [one.name for one in made]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidArgumentError(
            f"sinks: two are called {twice[0]!r}, so that what one did not take can't be told from "
            "the other's: give each a name of its own"
        )
    return made


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
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()
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
        said = "" if failed is None else without_secrets(describe(failed))
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
