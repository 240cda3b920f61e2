"""Statements that both databases take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

AT_ONCE = 500
"""How many rows one statement looks up, reads or removes."""


def insert_new(
    connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> int:
    """Insert the rows that are not there yet.

    Returns:
        How many these were.
    """
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return _many(connection, dialect.insert(table).on_conflict_do_nothing(), columns, rows)


def insert_or_replace(
    connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows; one with an `id` that is there replaces it, under a new number."""
    if connection.dialect.name == "postgresql":
        new = postgresql.insert(table)
        values = {name: new.excluded[name] for name in ("seq", *columns)}
        replacing: Any = new.on_conflict_do_update(index_elements=["id"], set_=values)
    else:
        replacing = table.insert().prefix_with("OR REPLACE")
    _many(connection, replacing, columns, rows)


def insert(
    connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows."""
    _many(connection, table.insert(), columns, rows)


def _many(
    connection: Connection, statement: Any, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> int:
    """Hand rows to the driver as they are.

    SQLAlchemy would go through a dict per row, which costs as much as the insertion.
    """
    compiled = statement.compile(dialect=connection.dialect, column_keys=columns)
    parameters: Any = rows
    if not compiled.positional:
        parameters = [dict(zip(columns, row, strict=True)) for row in rows]
    elif tuple(compiled.positiontup) != tuple(columns):
        order = [columns.index(name) for name in compiled.positiontup]
        parameters = [tuple(row[place] for place in order) for row in rows]
    with connection.exec_driver_sql(str(compiled), parameters) as done:
        return done.rowcount


def parts(items: Sequence[Any], size: int = AT_ONCE) -> Iterator[Sequence[Any]]:
    """Divide items into what one statement takes."""
    return (items[start : start + size] for start in range(0, len(items), size))
