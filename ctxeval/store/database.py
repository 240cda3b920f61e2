"""One database: transactions that are tried again, threads that take turns, forks that are safe."""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, text

from ctxeval.errors import StoreError
from ctxeval.store import schema
from ctxeval.store.faults import explained, passes, undamaged
from ctxeval.store.place import Place

T = TypeVar("T")

PATIENCE = 30.0
"""For how many seconds work is tried again while other processes are in the way."""


class Database:
    """A database, opened at its first use.

    Args:
        place: Where it is.
    """

    def __init__(self, place: Place) -> None:
        """See the class."""
        self.place = place
        self._engine: Engine | None = None
        self._ready = False
        self._reset()
        _databases.add(self)

    def _reset(self) -> None:
        self.writing = threading.RLock()
        self._gate = threading.Condition()
        self._active = 0
        self._held = False

    def read(self, work: Callable[[Connection], T]) -> T:
        """Do work that sees one state of the database, and reads what it holds."""

        def reading(connection: Connection) -> T:
            with undamaged(self.place):
                return work(connection)

        return self._transact(reading, write=False)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do work that is kept as a whole or not at all. It may be done more than once.

        Threads take turns, so that they don't wait for each other's file locks. Whoever
        must note something together with what is written holds `writing` around both.
        """
        with self.writing:
            return self._transact(work, write=True)

    def outside(self, *statements: str) -> None:
        """Execute statements outside of any transaction."""
        with explained(self.place):
            self._outside(*statements)

    def _outside(self, *statements: str) -> None:
        options: dict[str, Any] = {"ctxeval_begin": None}
        if self.place.path is None:
            options["isolation_level"] = "AUTOCOMMIT"
        with self._using() as engine, engine.connect() as connection:
            plain = connection.execution_options(**options)
            for statement in statements:
                plain.execute(text(statement)).close()

    def empty_log(self) -> None:
        """Take what SQLite's log still holds of earlier states out of it.

        Raises:
            StoreError: Somebody reads an earlier state, and goes on doing so.
        """
        with explained(self.place), self._using() as engine, engine.connect() as connection:
            plain = connection.execution_options(ctxeval_begin=None)
            busy, *_ = plain.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
        if busy:
            raise StoreError(
                f"{self.place.shown}: what was removed still stands in its log, the file -wal, "
                "since others read from it all the time: do it again when they don't"
            )

    def close(self) -> None:
        """Give the connections back. A later use opens new ones."""
        with self._gate:
            self._ready = False
            if self._engine is not None:
                self._engine.dispose()

    def _transact(self, work: Callable[[Connection], T], *, write: bool) -> T:
        with explained(self.place):
            if not self._ready:
                _patiently(self._prepare)
                self._ready = True
            return _patiently(lambda: self._once(work, write=write))

    def _once(self, work: Callable[[Connection], T], *, write: bool) -> T:
        options: dict[str, Any] = {"ctxeval_begin": "BEGIN IMMEDIATE" if write else "BEGIN"}
        if not write and self.place.path is None:
            options["isolation_level"] = "REPEATABLE READ"
        with (
            self._using() as engine,
            engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            return work(connection)

    def _prepare(self) -> None:
        """Make what is not there yet, and bring it up to date."""
        if self.place.path is not None:
            _make_file(self.place.path)
            # Larger pages take a third fewer of them to write; only a new file takes this up.
            self._outside("PRAGMA page_size=8192", "PRAGMA journal_mode=WAL")
        version = self._once(schema.version_of, write=False)
        if not schema.check(version, self.place.shown):
            self._once(lambda c: schema.bring_up_to_date(c, self.place.shown), write=True)

    @contextmanager
    def _using(self) -> Iterator[Engine]:
        with self._gate:
            self._gate.wait_for(lambda: not self._held)
            self._active += 1
            if self._engine is None:
                self._engine = _engine(self.place)
                weakref.finalize(self, self._engine.dispose)
            engine = self._engine
        try:
            yield engine
        finally:
            with self._gate:
                self._active -= 1
                self._gate.notify_all()

    def hold(self) -> None:
        """Wait until no connection is in use, close all, and let no one open another.

        SQLite must not be carried over a fork, not even unused: the child would take its
        parent's file locks for its own.
        """
        with self._gate:
            self._held = True
            self._gate.wait_for(lambda: not self._active)
            self.close()

    def release(self, *, child: bool = False) -> None:
        """Go on after `hold`. In a child, the locks are those of threads that it has not."""
        if child:
            self._reset()
        with self._gate:
            self._held = False
            self._gate.notify_all()


def _make_file(path: Path) -> None:
    """Make the file if it is not there: others may not read it, and the owner may write it.

    SQLite gives its further files the same mode.
    """
    with suppress(FileExistsError):
        opened = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            if hasattr(os, "fchmod"):
                os.fchmod(opened, 0o600)  # whatever the umask
        finally:
            os.close(opened)


def _patiently(attempt: Callable[[], T]) -> T:
    deadline = time.monotonic() + PATIENCE
    wait = 0.01
    while True:
        try:
            return attempt()
        except Exception as error:
            if not passes(error) or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(wait / 2, wait))
        wait = min(2 * wait, 0.5)


def _engine(place: Place) -> Engine:
    if place.path is None:
        given = place.url.query
        arguments: dict[str, Any] = {"connect_timeout": 10, "application_name": "ctxeval"}
        arguments = {name: value for name, value in arguments.items() if name not in given}
        # Statements prepared on the server don't get through PgBouncer.
        arguments["prepare_threshold"] = None
        return create_engine(
            place.url, connect_args=arguments, pool_pre_ping=True, hide_parameters=True
        )
    engine = create_engine(
        place.url,
        connect_args={"timeout": PATIENCE, "isolation_level": None, "check_same_thread": False},
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: Any) -> None:
        with closing(connection.cursor()) as cursor:
            # Enough for a killed process; a power cut may cost the last commits, never the file.
            cursor.execute("PRAGMA synchronous=NORMAL")
            cursor.execute("PRAGMA secure_delete=ON")
            cursor.execute("PRAGMA cache_size=-16000")
            cursor.execute("PRAGMA wal_autocheckpoint=2000")
            cursor.execute("PRAGMA journal_size_limit=67108864")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # The driver's own BEGIN would come after the first reading, so that of two writers
        # that have read one must fail.
        if statement := connection.get_execution_options()["ctxeval_begin"]:
            connection.exec_driver_sql(statement)

    return engine


_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_held: list[Database] = []


def _before_fork() -> None:
    _held[:] = list(_databases)
    for database in _held:
        database.hold()


def _after_fork(*, child: bool) -> None:
    for database in _held:
        database.release(child=child)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(child=False),
        after_in_child=lambda: _after_fork(child=True),
    )
