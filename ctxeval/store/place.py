"""Where a store is: a path or a URL, read into one that SQLAlchemy takes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ctxeval.errors import MissingExtraError, StoreError, short

if TYPE_CHECKING:
    from sqlalchemy import URL

DEFAULT = "sqlite:///ctxeval.db"

KNOWN = "give sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"

_IN_QUERY = re.compile(r"([?&]\w*password=)[^&]*")
_SETTING = re.compile(r"(?:^|\s)(host|hostaddr|port|dbname|user|password)\s*=")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is.

    Attributes:
        url: The URL for SQLAlchemy.
        shown: What messages call it, without a password.
        path: The file, of SQLite.
    """

    url: URL
    shown: str
    path: Path | None = None

    @property
    def text(self) -> str:
        """The URL as text, password included: for another process, not for people."""
        return self.url.render_as_string(hide_password=False)


def find(given: str | os.PathLike[str]) -> Place:
    """Read a path or a URL.

    Args:
        given: As `Store` takes it. A relative path is taken from the folder of now, so that
            the store stays the same one when that changes.

    Raises:
        StoreError: It names no database that can be a store.
        MissingExtraError: SQLAlchemy is not installed, or psycopg for PostgreSQL.
    """
    try:
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError
    except ModuleNotFoundError as error:
        if error.name != "sqlalchemy":
            raise
        raise MissingExtraError("the store", "sqlalchemy", "store") from error
    if not isinstance(given, (str, os.PathLike)) or not str(given).strip():
        raise StoreError(f"{short(given)} is no store: give a path, or a URL such as {DEFAULT!r}")
    if isinstance(given, os.PathLike) or "://" not in given:
        if isinstance(given, str) and _SETTING.search(given):
            raise StoreError(
                f"the given text sets {_SETTING.findall(given)[0]}, as for libpq: {KNOWN}"
            )
        return _file(os.fspath(given))
    shown = _IN_QUERY.sub(r"\1***", re.sub(r"//([^/@:]*):.*@", r"//\1:***@", given))
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):  # a port that is no number, say
        raise StoreError(f"{shown!r} is no URL of a database: {KNOWN}") from None
    backend, _, driver = url.drivername.partition("+")
    if backend == "sqlite" and driver in ("", "pysqlite"):
        if url.query or url.host:
            raise StoreError(f"{shown!r}: a path is all that SQLite takes: give sqlite:///FILE")
        return _file(url.database or "")
    if backend in ("postgresql", "postgres") and driver in ("", "psycopg"):
        try:
            import psycopg  # noqa: F401
        except ModuleNotFoundError as error:
            if error.name != "psycopg":
                raise
            raise MissingExtraError("a store in PostgreSQL", "psycopg", "postgres") from error
        url = url.set(drivername="postgresql+psycopg")
        if isinstance(password := url.query.get("password"), str):
            url = url.set(password=password).difference_update_query(["password"])
        if "@" in (url.host or ""):
            raise StoreError(f"{shown!r}: a user or a password holds @: write %40 instead")
        named = url.set(drivername="postgresql").render_as_string()
        return Place(url, _IN_QUERY.sub(r"\1***", named))
    raise StoreError(f"{shown!r}: {url.drivername} is no database for a store: {KNOWN}")


def _file(given: str) -> Place:
    from sqlalchemy import URL

    if given in ("", ":memory:"):
        raise StoreError(
            "a store in memory would be gone with the process: give a path, or no store at all"
        )
    path = Path(given).expanduser().absolute()
    return Place(URL.create("sqlite", database=str(path)), str(path), path)
