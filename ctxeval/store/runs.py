"""Runs: what an evaluation saves, row by row."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, select, update

from ctxeval.errors import StoreError, near, short
from ctxeval.store import rows as kept
from ctxeval.store.database import Database
from ctxeval.store.faults import undamaged
from ctxeval.store.plain import Strings, decode, encode, fold, unfold
from ctxeval.store.privacy import Privacy
from ctxeval.store.statements import insert
from ctxeval.store.tables import ROWS, RUNS, STATE, fingerprint, question_key
from ctxeval.store.texts import Tags, Texts


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is kept.

    Attributes:
        id: Its id.
        meta: What was put with it.
        stored: When it was put.
        size: How many rows it has.
    """

    id: str
    meta: Mapping[str, Any]
    stored: datetime
    size: int
    _seq: int = field(repr=False, compare=False)
    _database: Database = field(repr=False, compare=False)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Go through its rows, in the order in which they were put, as plain data.

        Raises:
            StoreError: It was deleted or replaced meanwhile.
        """

        def page(last: Any) -> Any:
            after = 0 if last is None else last.seq
            of_run = select(ROWS.c.seq, ROWS.c.refs, ROWS.c.data).where(ROWS.c.run == self._seq)
            return of_run.where(ROWS.c.seq > after).order_by(ROWS.c.seq)

        for row, texts in kept.pages(self._database, page):
            strings = [text for text, _ in texts]
            with undamaged(self._database.place):
                read = dict(unfold(decode(zlib.decompress(row.data)), strings))
            yield read
        there = select(RUNS.c.seq).where(RUNS.c.seq == self._seq)
        if self._database.read(lambda c: c.scalar(there)) is None:
            raise StoreError(f"the run {self.id!r} was deleted or replaced: get it again")


def put(
    database: Database,
    texts: Texts,
    privacy: Privacy,
    id: str,
    meta: Mapping[str, Any],
    rows: Iterable[Mapping[str, Any]],
) -> Run:
    """Put a run; see `Store.put_run`."""
    named = fingerprint(id)
    data = encode([id, privacy.meta(meta)])
    begun = time.time_ns() // 1000
    new = RUNS.insert().values(id=named, time=begun, complete=False, size=0, data=data)
    seq: int = database.write(lambda c: c.execute(new).inserted_primary_key[0])  # type: ignore[index]  # of one row
    size = 0
    try:
        for batch in kept.batches(rows):
            items = [(seq, _key(privacy, row), privacy.row(row)) for row in batch]
            kept.write(database, texts, items, _pack, _insert)
            size += len(batch)
        if not database.write(lambda c: _complete(c, seq, named, size)):
            raise StoreError(f"the run {id!r} was deleted while it was written: put it again")
    except BaseException:
        with suppress(StoreError):  # what stopped it may stop this too; `prune` finds it later
            database.write(lambda c: remove(c, [seq]))
        raise
    # As it was put: another process may have replaced it by now.
    return _run(database, seq, begun, size, data)


_COLUMNS = ("run", "question", "data", "refs")


def _key(privacy: Privacy, row: Mapping[str, Any]) -> bytes | None:
    sample = row.get("sample")
    question = sample.get("user_input") if isinstance(sample, Mapping) else None
    return question_key(privacy.redacted(question)) if isinstance(question, str) else None


def _pack(item: tuple[int, bytes | None, Mapping[str, Any]], tags: Tags) -> kept.Packed:
    seq, question, row = item
    strings = Strings()
    data = encode(fold(row, strings))
    return strings, (seq, question, zlib.compress(data))


def _insert(connection: Connection, rows: list[tuple[Any, ...]]) -> None:
    insert(connection, ROWS, _COLUMNS, rows)


def _complete(connection: Connection, seq: int, named: bytes, size: int) -> bool:
    # PostgreSQL: two that complete the same run do so in turns, so that one replaces the other.
    connection.execute(select(STATE.c.value).where(STATE.c.name == "version").with_for_update())
    same = select(RUNS.c.seq).where(RUNS.c.id == named, RUNS.c.complete, RUNS.c.seq != seq)
    remove(connection, list(connection.scalars(same)))
    this = update(RUNS).where(RUNS.c.seq == seq).values(complete=True, size=size)
    return connection.execute(this).rowcount == 1


def remove(connection: Connection, seqs: list[int]) -> None:
    """Remove runs with their rows."""
    for seq in seqs:
        connection.execute(delete(ROWS).where(ROWS.c.run == seq))
        connection.execute(delete(RUNS).where(RUNS.c.seq == seq))


def find(database: Database, named: bytes | None = None) -> list[Run]:
    """Give the runs, oldest first."""
    wanted = select(RUNS).where(RUNS.c.complete).order_by(RUNS.c.time, RUNS.c.seq)
    if named is not None:
        wanted = wanted.where(RUNS.c.id == named)
    found = database.read(lambda c: c.execute(wanted).all())
    return [_run(database, row.seq, row.time, row.size, row.data) for row in found]


def get(database: Database, id: str) -> Run:
    """Give a run.

    Raises:
        StoreError: There is none with this id.
    """
    found = find(database, fingerprint(id))
    if not found:
        names = [repr(run.id)[1:-1] for run in find(database)]
        hint = near(id, names) if names else "it holds no runs at all"
        raise StoreError(f"{database.place.shown} holds no run {short(id)}: {hint}")
    return found[-1]


def _run(database: Database, seq: int, time: int, size: int, data: bytes) -> Run:
    with undamaged(database.place):
        id, meta = decode(data)
        return Run(id, meta, datetime.fromtimestamp(time / 1e6, UTC), size, seq, database)
