"""The version of the tables, and how older ones are brought up to it.

No Alembic: there is one line of versions and no branch of them, both databases undo a
half-done migration by themselves, and a store must migrate when it is opened, in any
program, without a configuration file. That is the loop below; Alembic would add a
dependency, a folder of scripts and a second table of versions to it.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, insert, inspect, select, text, update

from ctxeval.errors import StoreError
from ctxeval.store.tables import METADATA, STATE

VERSION = 2
"""The version that this code reads and writes."""


def _to_2(connection: Connection) -> None:
    """Make the table of what sinks did not take; let cells say which question they are of."""
    postgresql = connection.dialect.name == "postgresql"
    number = "BIGSERIAL PRIMARY KEY" if postgresql else "INTEGER PRIMARY KEY AUTOINCREMENT"
    data = "BYTEA" if postgresql else "BLOB"
    connection.execute(
        text(
            f"CREATE TABLE ctxeval_unsent (seq {number}, sink {data} NOT NULL, "
            f"record {data} NOT NULL, time BIGINT NOT NULL, UNIQUE (sink, record))"
        )
    )
    connection.execute(text(f"ALTER TABLE ctxeval_cells ADD COLUMN question {data}"))


MIGRATIONS: dict[int, Callable[[Connection], None]] = {1: _to_2}
"""How tables of a version become those of the next. Each stays as it is for ever, so it
says what it does in SQL or in tables of its own, not in those of `ctxeval.store.tables`."""

_LOCK = 0x63747865
"""The name of PostgreSQL's lock on making and migrating the tables."""


def version_of(connection: Connection) -> int | None:
    """Give the version of the tables; None where there are none."""
    if not inspect(connection).has_table(STATE.name):
        return None
    return connection.scalar(select(STATE.c.value).where(STATE.c.name == "version"))


def check(version: int | None, shown: str) -> bool:
    """Say whether the tables are up to date.

    Raises:
        StoreError: They are newer than this code.
    """
    if version is not None and version > VERSION:
        raise StoreError(
            f"{shown} was written by a newer ctxeval: its schema is of version {version}, and this "
            f"one knows up to {VERSION}: pip install --upgrade ctxeval, or give another store"
        )
    return version == VERSION


def bring_up_to_date(connection: Connection, shown: str) -> None:
    """Make the tables or migrate them, in one transaction that locks others out.

    Raises:
        StoreError: They are newer than this code, or too old for it.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    version = version_of(connection)
    if version is None:
        METADATA.create_all(connection)
        state = {"version": VERSION, "texts": 0, "generation": 0}
        connection.execute(insert(STATE), [{"name": n, "value": v} for n, v in state.items()])
        return
    while not check(version, shown):
        if version not in MIGRATIONS:
            raise StoreError(
                f"{shown}: its schema is of version {version}, from which no way leads to "
                f"{VERSION}: open it once with an older ctxeval, or give another store"
            )
        MIGRATIONS[version](connection)
        version += 1
        connection.execute(update(STATE).where(STATE.c.name == "version").values(value=version))
