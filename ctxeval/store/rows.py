"""Rows that refer to texts: how they are written in batches and read page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Select

from ctxeval.store.database import Database
from ctxeval.store.plain import Strings
from ctxeval.store.tables import read_refs, write_refs
from ctxeval.store.texts import Numbers, load

T = TypeVar("T")

BATCH = 500
"""How many rows are written in one transaction at most."""

PAGE = 200
"""How many rows are read at once."""

Packed = tuple[Strings, dict[str, Any]]
"""A row's strings, and its columns but for `refs`."""


def write(
    database: Database,
    numbers: Numbers,
    rows: Sequence[Packed],
    insert: Callable[[Connection, list[dict[str, Any]]], None],
) -> None:
    """Write rows, and those of their strings that are not there yet, as a whole or not at all.

    Args:
        database: Where to.
        numbers: The numbers that this process remembers.
        rows: The rows.
        insert: Inserts their columns.
    """

    def work(connection: Connection) -> dict[str, int]:
        new = numbers.give(connection, [strings for strings, _ in rows])
        insert(
            connection,
            [
                {**columns, "refs": write_refs(numbers.refs(strings, new))}
                for strings, columns in rows
            ],
        )
        return new

    with database.writing:
        numbers.keep(database.write(work))


def pages(
    database: Database, page: Callable[[Any], Select[Any]], size: int = PAGE
) -> Iterator[tuple[Any, list[str]]]:
    """Read rows page by page, so that neither memory nor a transaction grows with them.

    Args:
        database: Where from.
        page: Selects what comes after a row, or first of all after None, with a column `refs`.
        size: How many rows are read at once.

    Yields:
        A row and its strings.
    """
    last: Any = None
    while True:
        statement = page(last).limit(size)

        def read(connection: Connection, statement: Select[Any] = statement) -> Any:
            rows = connection.execute(statement).all()
            return rows, load(connection, (row.refs for row in rows))

        rows, texts = database.read(read)
        for row in rows:
            yield row, [texts[number] for number in read_refs(row.refs)]
        if len(rows) < size:
            return
        last = rows[-1]


def batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """Gather items, so that many share a transaction."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
