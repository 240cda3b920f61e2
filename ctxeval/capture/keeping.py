"""Where captured records go for longer than this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ctxeval.record.query import QueryRecord

if TYPE_CHECKING:
    from ctxeval.store import Store

SAVED_TOGETHER = 64
"""How many records go to the store at once where they come quickly."""


class Keeping:
    """Puts records into a store, several at once.

    Args:
        store: The store.
        failed: Is called with the number of records that could not be stored, and why.
    """

    def __init__(self, store: Store, failed: Callable[[int, Exception], None]) -> None:
        """See the class."""
        self._store = store
        self._failed = failed
        self.start_over()

    def start_over(self) -> None:
        """Forget what is not stored yet: in a forked child it is the parent's."""
        self._unsaved: dict[str, QueryRecord] = {}
        self._lock = threading.Lock()

    def put(self, record: QueryRecord) -> None:
        """Put a record, or what became of it, into the store with the next ones."""
        with self._lock:
            self._unsaved[record.id] = record
            full = len(self._unsaved) >= SAVED_TOGETHER
        if full:
            self.save()

    def save(self) -> None:
        """Put into the store whatever is not there yet."""
        with self._lock:
            records, self._unsaved = list(self._unsaved.values()), {}
        if not records:
            return
        try:
            self._store.put_records(records)
        except Exception as error:  # the application and the scores go on without
            self._failed(len(records), error)
