"""Records, each in one row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Select, insert, select, tuple_
from sqlalchemy.dialects import postgresql

from ctxeval.record.query import QueryRecord
from ctxeval.store import rows as kept
from ctxeval.store.database import Database
from ctxeval.store.packing import pack, unpack
from ctxeval.store.privacy import Privacy
from ctxeval.store.tables import RECORDS, fingerprint, question_key
from ctxeval.store.texts import Numbers
from ctxeval.store.upkeep import microseconds


def put(
    database: Database, numbers: Numbers, privacy: Privacy, records: Iterable[QueryRecord]
) -> None:
    """Keep records; see `Store.put_records`."""
    for batch in kept.batches(records):
        # By id, of which the last counts; in this order PostgreSQL's writers don't get stuck.
        by_id = {fingerprint(record.id): record for record in batch}
        packed = [_pack(id, privacy, record) for id, record in sorted(by_id.items(), key=_id)]
        kept.write(database, numbers, packed, _insert)


def _id(item: tuple[bytes, QueryRecord]) -> bytes:
    return item[0]


def _pack(id: bytes, privacy: Privacy, record: QueryRecord) -> kept.Packed:
    strings, data = pack(privacy.record(record))
    return strings, {
        "id": id,
        "time": microseconds(record.started),
        "question": question_key(privacy.redacted(record.question)),
        "data": data,
    }


def _insert(connection: Connection, rows: list[dict[str, Any]]) -> None:
    # Either way a row that takes another's place gets a new number.
    if connection.dialect.name == "postgresql":
        new = postgresql.insert(RECORDS)
        values = {name: new.excluded[name] for name in ("seq", "time", "question", "refs", "data")}
        connection.execute(new.on_conflict_do_update(index_elements=["id"], set_=values), rows)
    else:
        connection.execute(insert(RECORDS).prefix_with("OR REPLACE"), rows)


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

    def page(last: Any) -> Select[Any]:
        return wanted if last is None else wanted.where(place > (last.time, last.seq))

    size = kept.PAGE if limit is None else max(1, min(kept.PAGE, limit))
    for row, strings in islice(kept.pages(database, page, size), limit):
        yield unpack(strings, row.data)
