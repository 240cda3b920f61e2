"""Everything that a store holds, as lines of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Any, TextIO

from sqlalchemy import Connection, select

from ctxeval.errors import StoreError
from ctxeval.store.faults import undamaged
from ctxeval.store.plain import decode
from ctxeval.store.tables import CELLS, USAGE

if TYPE_CHECKING:
    from ctxeval.store.database import Database
    from ctxeval.store.store import Store


def write(store: Store, database: Database, to: str | os.PathLike[str] | TextIO) -> int:
    """Write a store to a file; see `Store.export`."""
    if not isinstance(to, (str, os.PathLike)):
        return _write(store, database, to)
    try:
        opened = os.open(to, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        if hasattr(os, "fchmod"):
            os.fchmod(opened, 0o600)  # whatever the umask, and what was there before
        with open(opened, "w", encoding="utf-8") as file:
            return _write(store, database, file)
    except OSError as error:
        raise StoreError(
            f"export to {os.fspath(to)!r}: {error.strerror}: give a path that can be written"
        ) from error


def _write(store: Store, database: Database, file: TextIO) -> int:
    count = 0
    for line in _lines(store, database):
        file.write(line)
        count += 1
    return count


def _lines(store: Store, database: Database) -> Iterator[str]:
    """Write a store as lines of JSON, in constant memory.

    Yields:
        Records first, then what sinks did not take of them, then each run followed by its
        rows, then cells, then usage. What a line holds, its `kind` says.
    """
    for record in store.records():
        yield _line("record", record.to_dict())
    for sink in store.count_unsent():
        for record in store.unsent(sink):
            yield _line("unsent", {"sink": sink, "record": record.id})
    for run in store.runs():
        stored = run.stored.isoformat()
        yield _line("run", {"id": run.id, "stored": stored, "size": run.size, "meta": run.meta})
        for row in run.rows():
            yield _line("row", {"run": run.id, "row": row})
    for key, finding in _cells(database):
        yield _line("cell", {"key": key.hex(), "finding": finding})
    for day, tokens in database.read(lambda c: c.execute(select(USAGE).order_by("day")).all()):
        yield _line("usage", {"day": date.fromordinal(day).isoformat(), "tokens": tokens})


def _cells(database: Database) -> Iterator[tuple[bytes, Any]]:
    last = 0
    while True:
        wanted = select(CELLS.c.seq, CELLS.c.key, CELLS.c.data).where(CELLS.c.seq > last)

        def read(connection: Connection, wanted: Any = wanted) -> Any:
            return connection.execute(wanted.order_by(CELLS.c.seq).limit(1000)).all()

        page = database.read(read)
        if not page:
            return
        for _, key, data in page:
            with undamaged(database.place):
                finding = decode(data)
            yield key, finding
        last = page[-1].seq


def _line(kind: str, data: dict[str, Any]) -> str:
    text = json.dumps({"kind": kind, **data}, ensure_ascii=False, default=str)
    # A lone surrogate has no UTF-8; escaped, it is what JSON writes for it.
    return text.encode("utf-8", "backslashreplace").decode() + "\n"
