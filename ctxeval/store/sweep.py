"""How texts that nothing refers to any more are removed while others go on writing.

Most rows are looked at while others go on writing; only those written meanwhile are looked
at, and the texts removed, while they wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Table, delete, func, select, update

from ctxeval.store.database import Database
from ctxeval.store.faults import undamaged
from ctxeval.store.statements import AT_ONCE, parts
from ctxeval.store.tables import RECORDS, ROWS, STATE, TEXTS, read_refs

_Read = Callable[[Any], Sequence[Any]]


def sweep(database: Database) -> int:
    """Remove the texts that nothing refers to.

    Returns:
        How many were removed.
    """

    def read(statement: Any) -> Sequence[Any]:
        return database.read(lambda connection: connection.execute(statement).all())

    last_text, last_rows = database.write(_begin)
    used = bytearray(last_text + 1)  # by number; a text that is newer has a row that uses it
    for table, last in last_rows.items():
        _mark(read, table, 0, last, used)
    with undamaged(database.place):
        return database.write(lambda connection: _remove(connection, last_rows, used))


def _begin(connection: Connection) -> tuple[int, dict[Table, int]]:
    _lock_writers_out(connection)  # so that no row with a smaller number is still to come
    last_text = connection.scalar(select(STATE.c.value).where(STATE.c.name == "texts")) or 0
    return last_text, {
        table: connection.scalar(select(func.max(table.c.seq))) or 0 for table in (RECORDS, ROWS)
    }


def _remove(connection: Connection, last_rows: dict[Table, int], used: bytearray) -> int:
    _lock_writers_out(connection)
    for table, last in last_rows.items():
        _mark(lambda s: connection.execute(s).all(), table, last, None, used)
    removed = last = 0
    while page := connection.scalars(_page(TEXTS.c.id, last, len(used) - 1)).all():
        last = page[-1]
        unused = [number for number in page if not used[number]]
        removed += len(unused)
        for part in parts(unused):
            connection.execute(delete(TEXTS).where(TEXTS.c.id.in_(part)))
    return removed


def _mark(read: _Read, table: Table, last: int, until: int | None, used: bytearray) -> None:
    """Mark the texts that the rows of a table use, after one row and up to another."""
    while page := read(_page(table.c.seq, last, until, table.c.refs)):
        last = page[-1][0]
        for row in page:
            for number in read_refs(row.refs):
                if number < len(used):
                    used[number] = 1


def _page(number: Any, last: int, until: int | None, *columns: Any) -> Any:
    wanted = select(number, *columns).where(number > last).order_by(number).limit(10 * AT_ONCE)
    return wanted if until is None else wanted.where(number <= until)


def _lock_writers_out(connection: Connection) -> None:
    generation = STATE.c.name == "generation"
    connection.execute(update(STATE).where(generation).values(value=STATE.c.value + 1))
