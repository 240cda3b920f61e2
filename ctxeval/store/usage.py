"""The tokens of each day, added up over all processes."""

from __future__ import annotations

from datetime import date

from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from ctxeval.store.database import Database
from ctxeval.store.tables import USAGE


def add(database: Database, day: date, tokens: int) -> int:
    """Add to a day's tokens; see `Store.add_tokens`."""

    def work(connection: Connection) -> int:
        dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
        new = dialect.insert(USAGE).values(day=day.toordinal(), tokens=tokens)
        sum_up = {"tokens": USAGE.c.tokens + new.excluded.tokens}
        connection.execute(new.on_conflict_do_update(index_elements=["day"], set_=sum_up))
        return _of(connection, day)

    return database.write(work)


def of(database: Database, day: date) -> int:
    """Give a day's tokens; see `Store.tokens_of`."""
    return database.read(lambda connection: _of(connection, day))


def _of(connection: Connection, day: date) -> int:
    return connection.scalar(select(USAGE.c.tokens).where(USAGE.c.day == day.toordinal())) or 0
