"""The texts that are kept once: how they get their numbers, and how unused ones are removed.

A process remembers the numbers of texts it has seen, so that a chunk that comes again costs
a look into a dict. What removes texts raises `generation`; a writer compares it in the same
transaction in which it writes, and forgets what it remembers where it has changed. So no
row ever refers to a text that is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql import Insert

from ctxeval.store.database import Database
from ctxeval.store.plain import to_bytes, to_text
from ctxeval.store.tables import RECORDS, ROWS, STATE, TEXTS, fingerprint, read_refs

MAX_CHARACTERS = 8_000_000
"""How much text is remembered at most."""

AT_ONCE = 500
"""How many rows one statement looks up, reads or removes."""


class Numbers:
    """The numbers of the texts that this process has seen. Guarded by `Database.writing`."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[str, int] = {}
        self._characters = 0
        self._generation = -1

    def give(self, connection: Connection, wanted: Iterable[Collection[str]]) -> dict[str, int]:
        """Give numbers to the texts that have none, in the transaction that refers to them.

        Returns:
            The numbers of those not known before: `keep` them once the transaction is done.
        """
        generation = connection.scalar(
            # PostgreSQL: shared among writers, and in the way of whoever removes texts.
            select(STATE.c.value).where(STATE.c.name == "generation").with_for_update(read=True)
        )
        if generation != self._generation:
            self.forget()
            self._generation = generation or 0
        known = self._known
        new = list(dict.fromkeys(text for row in wanted for text in row if text not in known))
        if not new:
            return {}
        counter = STATE.c.name == "texts"
        # The counter's row is locked from here on: PostgreSQL's writers number in turns.
        connection.execute(update(STATE).where(counter).values(value=STATE.c.value + len(new)))
        last = connection.scalar(select(STATE.c.value).where(counter)) or 0
        hashes = [fingerprint(text) for text in new]
        numbers = dict(zip(hashes, range(last - len(new) + 1, last + 1), strict=True))
        rows = [
            {"id": numbers[hash], "hash": hash, "text": to_bytes(text)}
            for hash, text in zip(hashes, new, strict=True)
        ]
        inserted = connection.execute(insert_new(connection, TEXTS), rows)
        if inserted.rowcount != len(rows):
            for part in parts(hashes):
                there = select(TEXTS.c.hash, TEXTS.c.id).where(TEXTS.c.hash.in_(part))
                numbers.update({hash: number for hash, number in connection.execute(there)})
        return {text: numbers[hash] for hash, text in zip(hashes, new, strict=True)}

    def refs(self, row: Iterable[str], new: dict[str, int]) -> list[int]:
        """Give the numbers of a row's texts."""
        known = self._known
        return [known[text] if text in known else new[text] for text in row]

    def keep(self, new: dict[str, int]) -> None:
        """Remember numbers that are in the database for good."""
        self._known.update(new)
        self._characters += sum(map(len, new))
        if self._characters > MAX_CHARACTERS:
            self.forget()

    def forget(self) -> None:
        """Forget all numbers."""
        self._known = {}
        self._characters = 0


def load(connection: Connection, rows: Iterable[bytes]) -> dict[int, str]:
    """Read the texts that rows refer to, given their `refs`."""
    wanted = list({number for refs in rows for number in read_refs(refs)})
    texts: dict[int, str] = {}
    for part in parts(wanted):
        found = connection.execute(select(TEXTS.c.id, TEXTS.c.text).where(TEXTS.c.id.in_(part)))
        texts.update({number: to_text(text) for number, text in found})
    return texts


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


def insert_new(connection: Connection, table: Table) -> Insert:
    """Insert the rows that are not there yet."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()


def parts(items: Sequence[Any], size: int = AT_ONCE) -> Iterator[Sequence[Any]]:
    """Divide items into what one statement takes."""
    return (items[start : start + size] for start in range(0, len(items), size))
