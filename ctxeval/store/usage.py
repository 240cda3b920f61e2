"""What models cost, added up over all processes: the tokens of each day, and whose turn it is."""

from __future__ import annotations

import time
from datetime import date
from typing import Any

from sqlalchemy import Connection, case, select
from sqlalchemy.dialects import postgresql, sqlite

from ctxeval.store.database import Database
from ctxeval.store.tables import STATE, USAGE, fingerprint


def add(database: Database, day: date, tokens: int) -> int:
    """Add to a day's tokens; see `Store.add_tokens`."""

    def work(connection: Connection) -> int:
        new = _dialect(connection).insert(USAGE).values(day=day.toordinal(), tokens=tokens)
        sum_up = {"tokens": USAGE.c.tokens + new.excluded.tokens}
        connection.execute(new.on_conflict_do_update(index_elements=["day"], set_=sum_up))
        return _of(connection, day)

    return database.write(work)


def of(database: Database, day: date) -> int:
    """Give a day's tokens; see `Store.tokens_of`."""
    return database.read(lambda connection: _of(connection, day))


def _of(connection: Connection, day: date) -> int:
    return connection.scalar(select(USAGE.c.tokens).where(USAGE.c.day == day.toordinal())) or 0


def take_turn(database: Database, name: str, seconds: float) -> float:
    """Take the next turn; see `Store.take_turn`."""
    step = round(seconds * 1e6)
    # STATE's names are of 16 letters.
    known = f"turn{fingerprint(name).hex()[:12]}"

    def work(connection: Connection) -> float:
        now = round(time.time() * 1e6)
        new = _dialect(connection).insert(STATE).values(name=known, value=now + step)
        later = case((STATE.c.value > now, STATE.c.value), else_=now) + step
        taken = new.on_conflict_do_update(index_elements=["name"], set_={"value": later})
        following = connection.scalar(taken.returning(STATE.c.value))
        return float(max(0, following - step - now) / 1e6)

    return database.write(work)


def _dialect(connection: Connection) -> Any:
    return postgresql if connection.dialect.name == "postgresql" else sqlite
