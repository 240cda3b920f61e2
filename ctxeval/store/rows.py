"""Rows that refer to texts: how they are written in batches and read page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection

from ctxeval.store.database import Database
from ctxeval.store.faults import undamaged
from ctxeval.store.plain import Strings
from ctxeval.store.tables import read_refs, write_refs
from ctxeval.store.texts import New, Tags, Texts, load

T = TypeVar("T")

BATCH = 500
"""How many rows are written in one transaction at most."""

PAGE = 200
"""How many rows are read at once."""

Packed = tuple[Strings, tuple[Any, ...]]
"""A row's strings, and its columns but for the last, `refs`."""


def write(
    database: Database,
    texts: Texts,
    items: Sequence[T],
    pack: Callable[[T, Tags], Packed],
    insert: Callable[[Connection, list[tuple[Any, ...]]], None],
) -> None:
    """Write rows, and those of their texts that are not there yet, as a whole or not at all.

    Args:
        database: Where to.
        texts: The texts that this process remembers.
        items: What is to be written.
        pack: Makes a row of one of them.
        insert: Inserts the rows' columns.
    """

    def work(connection: Connection) -> New:
        new = texts.give(connection, [row[0] for row in packed], tags)
        if any(tags.get(text, tag) != tag for text, tag in new.there.items()):
            # Others had other chunks with these texts.
            tags.correct(new.tags)
            packed[:] = [pack(item, tags) for item in items]
        rows = [(*columns, write_refs(texts.refs(row, new))) for row, columns in packed]
        insert(connection, rows)
        return new

    with database.writing:
        tags = texts.tags()
        packed = [pack(item, tags) for item in items]
        new = database.write(work)
        texts.keep(new, [row[0] for row in packed])


def pages(
    database: Database, page: Callable[[Any], Any], size: int = PAGE
) -> Iterator[tuple[Any, list[tuple[str, str]]]]:
    """Read rows page by page, so that neither memory nor a transaction grows with them.

    Args:
        database: Where from.
        page: Selects what comes after a row, or first of all after None, with a column `refs`.
        size: How many rows are read at once.

    Yields:
        A row, and its texts with their tags.
    """
    last: Any = None
    while True:
        statement = page(last).limit(size)

        def read(connection: Connection, statement: Any = statement) -> Any:
            rows = connection.execute(statement).all()
            return rows, load(connection, (row.refs for row in rows))

        rows, texts = database.read(read)
        for row in rows:
            with undamaged(database.place):
                of_row = [texts[number] for number in read_refs(row.refs)]
            yield row, of_row
        if len(rows) < size:
            return
        last = rows[-1]


def batches(items: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """Gather items, so that many share a transaction."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
