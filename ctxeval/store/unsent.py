"""Which records sinks did not take, so that they can be sent later."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from sqlalchemy import Connection, delete, func, select

from ctxeval.record.query import QueryRecord
from ctxeval.store import rows as kept
from ctxeval.store.database import Database
from ctxeval.store.faults import undamaged
from ctxeval.store.packing import unpack
from ctxeval.store.plain import to_bytes, to_text
from ctxeval.store.statements import insert_new
from ctxeval.store.tables import RECORDS, UNSENT, fingerprint


def put(database: Database, unsent: Iterable[tuple[str, str]]) -> None:
    """Note records; see `Store.put_unsent`."""
    now = time.time_ns() // 1000
    rows = [(to_bytes(sink), fingerprint(id), now) for sink, id in sorted(unsent)]
    database.write(lambda c: insert_new(c, UNSENT, ("sink", "record", "time"), rows))


def read(database: Database, sink: str) -> Iterator[QueryRecord]:
    """Go through a sink's records, oldest first; see `Store.unsent`."""
    wanted = (
        select(UNSENT.c.seq, RECORDS.c.refs, RECORDS.c.data)
        .join(RECORDS, RECORDS.c.id == UNSENT.c.record)
        .where(UNSENT.c.sink == to_bytes(sink))
        .order_by(UNSENT.c.seq)
    )

    def page(last: object) -> object:
        return wanted if last is None else wanted.where(UNSENT.c.seq > last.seq)  # type: ignore[attr-defined]  # a row

    for row, texts in kept.pages(database, page, kept.PAGE):
        with undamaged(database.place):
            record = unpack(texts, row.data)
        yield record


def count(database: Database) -> dict[str, int]:
    """Count, without those whose records are gone; see `Store.count_unsent`."""
    counted = (
        select(UNSENT.c.sink, func.count())
        .join(RECORDS, RECORDS.c.id == UNSENT.c.record)
        .group_by(UNSENT.c.sink)
    )
    found = database.read(lambda connection: connection.execute(counted).all())
    with undamaged(database.place):
        return {to_text(sink): n for sink, n in found}


def remove_orphans(connection: Connection) -> None:
    """Forget those whose records are gone."""
    connection.execute(delete(UNSENT).where(UNSENT.c.record.not_in(select(RECORDS.c.id))))


def remove(database: Database, sink: str, id: str) -> None:
    """Forget a record; see `Store.sent`."""
    this = (UNSENT.c.sink == to_bytes(sink)) & (UNSENT.c.record == fingerprint(id))
    database.write(lambda c: c.execute(delete(UNSENT).where(this)))
