"""What a database says when something is wrong, in words that help."""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ctxeval.errors import StoreError, short
from ctxeval.keys import as_cause
from ctxeval.store.place import Place

_KNOWN = {
    "file is not a database": "this file is no SQLite database: give another path",
    "malformed": "the file is damaged: move it away, or restore a copy",
    "unable to open": "the file can't be opened: is its folder there and writable?",
    "readonly": "it may not be written to: change the owner or the mode of the file and its folder",
    "permission denied": "you may not do that: ask for the right to make and write tables",
    "is full": "the disk is full: make room",
    "no space left": "the server's disk is full: make room",
    "disk i/o error": "the disk failed, or it can't lock files, as network drives can't: give "
    "a path on a local one",
    "locked": "other processes have kept writing to it for too long: try again",
}
_DAMAGED = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError),
    *(AssertionError, MemoryError, struct.error, zlib.error),
)
_PASSING = ("locked", "busy")
_PASSING_STATES = ("40P01", "40001")  # a deadlock, a conflict of transactions


def passes(error: Exception) -> bool:
    """May the same work succeed if it is tried again?"""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if getattr(cause, "sqlstate", None) in _PASSING_STATES:
        return True
    return isinstance(cause, sqlite3.OperationalError) and any(
        word in str(cause) for word in _PASSING
    )


@contextmanager
def explained(place: Place) -> Iterator[None]:
    """Raise what a database says as a `StoreError`, without a password in it."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        cause = as_cause(error, str(place.url.password or ""))
        raise StoreError(_explain(error, place)) from cause


@contextmanager
def undamaged(place: Place) -> Iterator[None]:
    """Raise what reading the bytes of a row says as a `StoreError`."""
    try:
        yield
    except _DAMAGED as error:
        said = f"{type(error).__name__}: {short(str(error), 100)}"
        raise StoreError(
            f"{place.shown}: what it holds was changed since it was written ({said}): restore a "
            "copy, or delete what is of that time"
        ) from error


def _explain(error: Exception, place: Place) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, OSError):  # only SQLite's file is made by ourselves
        return f"{place.shown} can't be made: {cause.strerror}: is its folder there and writable?"
    said = " ".join(str(cause).split())
    if place.url.password:
        said = said.replace(str(place.url.password), "***")
    for words, meaning in _KNOWN.items():
        if words in said.casefold():
            return f"{place.shown}: {meaning} ({said})"
    if place.path is None and getattr(cause, "sqlstate", "") is None:  # it never got through
        return (
            f"{place.shown} can't be reached: is the server running, and are host, port, name and "
            f"password right? ({said})"
        )
    return f"{place.shown}: {said}"
