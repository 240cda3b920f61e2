"""Cells, appended: two processes that find something out at a time lose neither finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter

from sqlalchemy import Connection, select

from ctxeval.judges.cells import Finding
from ctxeval.store.database import Database
from ctxeval.store.plain import decode, encode, to_text
from ctxeval.store.privacy import Privacy
from ctxeval.store.statements import insert_new, parts
from ctxeval.store.tables import CELLS, fingerprint
from ctxeval.store.upkeep import microseconds


def get_many(database: Database, keys: Sequence[str]) -> dict[str, list[Finding]]:
    """Give the findings kept under keys; see `CellCache.get_many`."""
    if not keys:
        return {}
    named = {fingerprint(key): key for key in keys}

    def work(connection: Connection) -> dict[str, list[Finding]]:
        found: dict[str, list[Finding]] = {}
        for part in parts(list(named)):
            wanted = select(CELLS.c.key, CELLS.c.data).where(CELLS.c.key.in_(part))
            for key, data in connection.execute(wanted.order_by(CELLS.c.seq)):
                found.setdefault(named[key], []).append(decode(data))
        return found

    return database.read(work)


_COLUMNS = ("key", "digest", "time", "data", "question")


def put_many(database: Database, privacy: Privacy, findings: Iterable[tuple[str, Finding]]) -> None:
    """Keep findings; see `CellCache.put_many`."""
    now = microseconds(None)
    rows: list[tuple[bytes, bytes, int, bytes, bytes | None]] = []
    for key, finding in findings:
        kept = privacy.finding(finding)
        if kept is not None:
            of = bytes.fromhex(finding["of"]) if "of" in finding else None
            data = encode({name: kept[name] for name in sorted(kept) if name != "of"})
            rows.append((fingerprint(key), fingerprint(to_text(data)), now, data, of))
    if rows:
        # By key, so that PostgreSQL's writers of the same cells come in the same order.
        rows.sort(key=itemgetter(0))
        database.write(lambda c: insert_new(c, CELLS, _COLUMNS, rows))
