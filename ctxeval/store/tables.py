"""The store's tables.

They hold numbers and bytes only: texts of every kind travel as UTF-8, so that SQLite and
PostgreSQL keep the same ones, NUL and lone surrogates included. What is looked up by a text
is looked up by its fingerprint, so that keys are short, however long the text.

Every text of a certain length is kept once, in `texts`, and what refers to it says so in
its column `refs`: the numbers of its texts, four bytes each. So a text that nothing refers
to any more is found without reading anything else.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Dialect,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

METADATA = MetaData()


class Bytes(LargeBinary):
    """Bytes as both drivers take and give them: SQLAlchemy's wrapping would cost a third."""

    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> None:
        """Leave them as they are."""

    def result_processor(self, dialect: Dialect, coltype: object) -> None:
        """Leave them as they are."""


_NUMBER = BigInteger().with_variant(Integer, "sqlite")  # SQLite's row ids are INTEGER only


def _table(name: str, *columns: Column[object] | Index | UniqueConstraint) -> Table:
    # Of a row that is replaced or deleted the number is never given again (AUTOINCREMENT):
    # so what was written since a certain number is what has a greater one.
    seq: Column[object] = Column("seq", _NUMBER, primary_key=True)
    return Table(f"ctxeval_{name}", METADATA, seq, *columns, sqlite_autoincrement=True)


def _bytes(name: str) -> Column[object]:
    return Column(name, Bytes, nullable=False)


def _time() -> Column[object]:
    return Column("time", BigInteger, nullable=False)


STATE = Table(
    "ctxeval_state",
    METADATA,
    Column("name", String(16), primary_key=True),
    Column("value", BigInteger, nullable=False),
)
"""`version`: of the schema. `texts`: the last number given to a text. `generation`: how often
texts were removed, so that whoever remembers their numbers knows when to forget them.
`turn…`: the microsecond of the next turn that somebody may take."""

TEXTS = Table(
    "ctxeval_texts",
    METADATA,
    Column("id", _NUMBER, primary_key=True, autoincrement=False),
    Column("hash", Bytes, nullable=False, unique=True),
    _bytes("text"),
    _bytes("tag"),
)

RECORDS = _table(
    "records",
    Column("id", Bytes, nullable=False, unique=True),
    _time(),
    _bytes("question"),
    _bytes("refs"),
    _bytes("data"),
    Index("ctxeval_records_time", "time"),
    Index("ctxeval_records_question", "question"),
)

RUNS = _table(
    "runs",
    Column("id", Bytes, nullable=False, index=True),
    _time(),
    Column("complete", Boolean, nullable=False),
    Column("size", BigInteger, nullable=False),
    _bytes("data"),
)

ROWS = _table(
    "rows",
    Column("run", BigInteger, nullable=False),
    Column("question", Bytes),
    _bytes("refs"),
    _bytes("data"),
    Index("ctxeval_rows_run", "run", "seq"),
)

CELLS = _table(
    "cells",
    _bytes("key"),
    _bytes("digest"),
    _time(),
    _bytes("data"),
    Column("question", Bytes),
    UniqueConstraint("key", "digest"),
)

USAGE = Table(
    "ctxeval_usage",
    METADATA,
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("tokens", BigInteger, nullable=False),
)

UNSENT = _table(
    "unsent",
    _bytes("sink"),
    _bytes("record"),
    _time(),
    UniqueConstraint("sink", "record"),
)
"""Which records a sink did not take, by the fingerprints of their ids."""

TABLES = {
    table.name.removeprefix("ctxeval_"): table
    for table in (RECORDS, TEXTS, CELLS, RUNS, ROWS, USAGE, UNSENT)
}
"""Those with content, by the names under which they are counted."""


def content(table: Table) -> list[ColumnElement[bytes]]:
    """Give the columns that hold the bulk of a table."""
    return [column for column in table.columns if isinstance(column.type, Bytes)]


def hash_of(data: bytes) -> bytes:
    """Give the 16 bytes by which bytes are known."""
    return hashlib.sha256(data).digest()[:16]


def fingerprint(text: str) -> bytes:
    """Give the 16 bytes under which a text is looked up."""
    return hash_of(text.encode("utf-8", "surrogatepass"))


def question_key(question: str) -> bytes:
    """Give what a question is looked up by; as in `References`, case and space don't matter."""
    return fingerprint(" ".join(question.casefold().split()))[:8]


def write_refs(numbers: Collection[int]) -> bytes:
    """Write the numbers of texts down."""
    return struct.pack(f"<{len(numbers)}I", *numbers)


def read_refs(refs: bytes) -> tuple[int, ...]:
    """Read what `write_refs` wrote."""
    return struct.unpack(f"<{len(refs) // 4}I", refs)
