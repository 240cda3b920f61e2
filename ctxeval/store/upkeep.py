"""What a store holds, and how it is made smaller."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, text

from ctxeval.errors import StoreError, near
from ctxeval.store import runs, schema, unsent
from ctxeval.store.database import Database
from ctxeval.store.sweep import sweep
from ctxeval.store.tables import (
    CELLS,
    RECORDS,
    ROWS,
    RUNS,
    TABLES,
    USAGE,
    content,
)

KINDS = ("records", "runs", "cells", "usage")
"""What can be told apart when old things are removed."""


class Count(NamedTuple):
    """How much a table holds: its rows, and the bytes of their content."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What a store holds.

    Attributes:
        place: The file or the URL, without a password.
        schema: The version of its tables.
        size: The bytes that it takes, indexes and free space included.
        tables: How much each table holds, by its name.
    """

    place: str
    schema: int
    size: int
    tables: dict[str, Count]


def stats(database: Database) -> Stats:
    """Count; see `Store.stats`."""

    def work(connection: Connection) -> Stats:
        tables = {name: _count(connection, table) for name, table in TABLES.items()}
        version = schema.version_of(connection) or 0
        return Stats(database.place.shown, version, _size(connection), tables)

    return database.read(work)


def _count(connection: Connection, table: Table) -> Count:
    lengths: Any = sum(func.coalesce(func.length(column), 0) for column in content(table))
    counted = select(func.count(), func.coalesce(func.sum(lengths), 0)).select_from(table)
    rows, size = connection.execute(counted).one()
    return Count(rows, int(size))


def _size(connection: Connection) -> int:
    if connection.dialect.name == "postgresql":
        names = [table.name for table in TABLES.values()]
        sizes = [
            connection.scalar(text("SELECT pg_total_relation_size(to_regclass(:n))"), {"n": name})
            for name in names
        ]
        return sum(size or 0 for size in sizes)
    pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    return int(pages * connection.exec_driver_sql("PRAGMA page_size").scalar_one())


def prune(database: Database, before: datetime | None, keep: Collection[str]) -> dict[str, int]:
    """Remove what is old and give the space back; see `Store.prune`."""
    if unknown := [kind for kind in keep if kind not in KINDS]:
        raise StoreError(f"keep: {unknown[0]!r} is unknown: {near(unknown[0], KINDS)}")

    def work(connection: Connection) -> dict[str, int]:
        left_over = microseconds(datetime.now(UTC) - timedelta(days=1))
        stale = ~RUNS.c.complete & (RUNS.c.time < left_over)
        runs.remove(connection, list(connection.scalars(select(RUNS.c.seq).where(stale))))
        kinds = [kind for kind in KINDS if kind not in keep]
        removed = {} if before is None else _remove_before(connection, before, kinds)
        unsent.remove_orphans(connection)
        return removed

    removed = database.write(work)
    removed["texts"] = sweep(database)
    with suppress(StoreError):  # it takes space, and a moment in which nobody writes
        if database.place.path is None:
            database.outside(*(f"VACUUM {table.name}" for table in TABLES.values()))
        else:
            database.outside("VACUUM")
            database.empty_log()
    return removed


def _remove_before(
    connection: Connection, before: datetime, kinds: Collection[str]
) -> dict[str, int]:
    removed: dict[str, int] = {}
    moment = microseconds(before)
    for kind in kinds:
        if kind == "runs":
            old = list(connection.scalars(select(RUNS.c.seq).where(RUNS.c.time < moment)))
            runs.remove(connection, old)
            removed[kind] = len(old)
        else:
            day = before.astimezone(UTC).date().toordinal()
            old_rows: dict[str, tuple[Table, ColumnElement[bool]]] = {
                "records": (RECORDS, RECORDS.c.time < moment),
                "cells": (CELLS, CELLS.c.time < moment),
                "usage": (USAGE, USAGE.c.day < day),
            }
            table, where = old_rows[kind]
            removed[kind] = connection.execute(delete(table).where(where)).rowcount
    return removed


def remove(
    database: Database, questions: Collection[bytes] | None, before: datetime | None
) -> dict[str, int]:
    """Remove what is of a question, or old, or both; see `Store.delete`.

    Args:
        database: The database.
        questions: The keys that the question may have; None: whatever the question.
        before: The moment; None: whenever it was.
    """

    def work(connection: Connection) -> dict[str, int]:
        if questions is None:
            assert before is not None
            return _remove_before(connection, before, ("records", "runs", "cells"))
        records: ColumnElement[bool] = RECORDS.c.question.in_(questions)
        cells: ColumnElement[bool] = CELLS.c.question.in_(questions)
        rows: ColumnElement[bool] = ROWS.c.question.in_(questions)
        if before is not None:
            records &= RECORDS.c.time < microseconds(before)
            cells &= CELLS.c.time < microseconds(before)
            rows &= ROWS.c.run.in_(select(RUNS.c.seq).where(RUNS.c.time < microseconds(before)))
        removed = {
            "records": connection.execute(delete(RECORDS).where(records)).rowcount,
            "cells": connection.execute(delete(CELLS).where(cells)).rowcount,
        }
        counts = select(ROWS.c.run, func.count()).where(rows).group_by(ROWS.c.run)
        counted = connection.execute(counts).all()
        for run, number in counted:
            smaller = RUNS.update().where(RUNS.c.seq == run)
            connection.execute(smaller.values(size=RUNS.c.size - number))
        connection.execute(delete(ROWS).where(rows))
        removed["rows"] = sum(number for _, number in counted)
        unsent.remove_orphans(connection)
        return removed

    removed = database.write(work)
    removed["texts"] = sweep(database)
    if database.place.path is not None:
        database.empty_log()  # in the file what was deleted is overwritten
    return removed


def microseconds(moment: datetime | None) -> int:
    """Give a moment as the tables hold it; one without a time zone is local time; None: now."""
    if moment is None:
        return time.time_ns() // 1000
    return round(moment.timestamp() * 1e6)
