"""How texts that nothing refers to any more are removed while others go on writing."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, update

from ctxeval.store.database import Database
from ctxeval.store.statements import AT_ONCE, parts
from ctxeval.store.tables import RECORDS, ROWS, STATE, TEXTS, read_refs


def sweep(database: Database) -> int:
    """Remove the texts that nothing refers to any more.

    Most rows are looked at while others go on writing; only those written meanwhile are
    looked at, and the texts removed, while they wait.

    Returns:
        How many were removed.
    """

    def last(connection: Connection) -> dict[Table, int]:
        _lock_writers_out(connection)  # so that no row with a smaller number is still to come
        return {t: connection.scalar(select(func.max(t.c.seq))) or 0 for t in (RECORDS, ROWS)}

    used: set[int] = set()

    def look(connection: Connection, table: Table, where: ColumnElement[bool]) -> int | None:
        columns = select(table.c.seq, table.c.refs).where(where).order_by(table.c.seq)
        page = connection.execute(columns.limit(10 * AT_ONCE)).all()
        for _, refs in page:
            used.update(read_refs(refs))
        return page[-1][0] if page else None

    def look_through(read: Any, table: Table, since: int, until: int | None) -> None:
        at: int | None = since
        while at is not None:
            where = table.c.seq > at
            if until is not None:
                where &= table.c.seq <= until
            at = read(lambda c, where=where: look(c, table, where))

    until = database.write(last)
    for table, number in until.items():
        look_through(database.read, table, 0, number)

    def remove(connection: Connection) -> int:
        _lock_writers_out(connection)
        for table, number in until.items():
            look_through(lambda work: work(connection), table, number, None)
        unused = [n for n in connection.scalars(select(TEXTS.c.id)) if n not in used]
        for part in parts(unused):
            connection.execute(delete(TEXTS).where(TEXTS.c.id.in_(part)))
        return len(unused)

    return database.write(remove)


def _lock_writers_out(connection: Connection) -> None:
    generation = STATE.c.name == "generation"
    connection.execute(update(STATE).where(generation).values(value=STATE.c.value + 1))
