"""Records, each in one row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import Connection, select, tuple_

from ctxeval.record.query import QueryRecord
from ctxeval.store import rows as kept
from ctxeval.store.database import Database
from ctxeval.store.faults import undamaged
from ctxeval.store.packing import pack, unpack
from ctxeval.store.privacy import Privacy
from ctxeval.store.statements import insert_or_replace
from ctxeval.store.tables import RECORDS, fingerprint, question_key
from ctxeval.store.texts import Tags, Texts
from ctxeval.store.upkeep import microseconds

_COLUMNS = ("id", "time", "question", "data", "refs")


def put(database: Database, texts: Texts, privacy: Privacy, records: Iterable[QueryRecord]) -> None:
    """Keep records; see `Store.put_records`."""

    def pack_one(item: tuple[bytes, bytes, QueryRecord], tags: Tags) -> kept.Packed:
        id, question, record = item
        strings, data = pack(record, tags)
        return strings, (id, microseconds(record.started), question, data)

    for batch in kept.batches(records):
        # By id, of which the last counts; in this order PostgreSQL's writers don't get stuck.
        by_id = {
            fingerprint(record.id): (
                question_key(privacy.redacted(record.question)),
                privacy.record(record),
            )
            for record in batch
        }
        items = [(id, *by_id[id]) for id in sorted(by_id)]
        kept.write(database, texts, items, pack_one, _insert)


def _insert(connection: Connection, rows: list[tuple[Any, ...]]) -> None:
    insert_or_replace(connection, RECORDS, _COLUMNS, rows)


def read(
    database: Database, since: datetime | None, question: bytes | None, limit: int | None
) -> Iterator[QueryRecord]:
    """Go through records; see `Store.records`."""
    place = tuple_(RECORDS.c.time, RECORDS.c.seq)
    columns = select(RECORDS.c.time, RECORDS.c.seq, RECORDS.c.refs, RECORDS.c.data)
    wanted = columns.order_by(RECORDS.c.time, RECORDS.c.seq)
    if since is not None:
        wanted = wanted.where(RECORDS.c.time >= microseconds(since))
    if question is not None:
        wanted = wanted.where(RECORDS.c.question == question)

    def page(last: Any) -> Any:
        return wanted if last is None else wanted.where(place > (last.time, last.seq))

    size = kept.PAGE if limit is None else max(1, min(kept.PAGE, limit))
    for row, texts in islice(kept.pages(database, page, size), limit):
        with undamaged(database.place):
            record = unpack(texts, row.data)
        yield record
