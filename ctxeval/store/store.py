"""The store: where records, runs and judgements are kept."""

from __future__ import annotations

import os
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Self, TextIO, overload

from ctxeval.errors import StoreError, short
from ctxeval.judges.cells import Finding
from ctxeval.record.query import QueryRecord
from ctxeval.store.place import DEFAULT, find
from ctxeval.store.privacy import Privacy, Redact

if TYPE_CHECKING:
    from ctxeval.store.runs import Run
    from ctxeval.store.upkeep import Stats

Source = str | os.PathLike[str]


class Store:
    """Where records, runs and judgements are kept: SQLite on one machine, PostgreSQL for teams.

    Any number of threads and processes may use one at a time. It is opened at its first
    use, so making one costs nothing and can be done before a fork; sent to another process,
    it opens the same database there. Give it to a judge as its `cache=`, and no process
    asks a model what another has asked.

    Args:
        url: The path of an SQLite file, `sqlite:///FILE`, or
            `postgresql://USER:PASSWORD@HOST/DATABASE`.
        store_text: Keep texts? If not, each is replaced by `#` and its hash, reasons and
            metadata are left out, and ids, verdicts and numbers stay.
        redact: A function that is given each text before anything is stored (questions,
            answers, chunks, reasons, strings in metadata, never ids) and returns what may
            be. What it raises reaches the caller, and nothing is stored.

    Raises:
        StoreError: The URL can be no store's.
        MissingExtraError: SQLAlchemy is not installed, or psycopg for PostgreSQL.
    """

    _shared: ClassVar[weakref.WeakValueDictionary[str, Store]] = weakref.WeakValueDictionary()

    def __init__(
        self, url: Source = DEFAULT, *, store_text: bool = True, redact: Redact | None = None
    ) -> None:
        """See the class."""
        if redact is not None and not callable(redact):
            raise StoreError(f"redact: {short(redact)} can't be called: give a function of a text")
        place = find(url)
        from ctxeval.store.database import Database
        from ctxeval.store.texts import Texts

        self._privacy = Privacy(store_text, redact)
        self._database = Database(place)
        self._texts = Texts()

    @overload
    @classmethod
    def of(cls, store: Store | Source) -> Store: ...

    @overload
    @classmethod
    def of(cls, store: None) -> None: ...

    @classmethod
    def of(cls, store: Store | Source | None) -> Store | None:
        """Take a store as it is, or make one of a URL or a path; None stays None.

        The same URL gives the same store, so that those who are given it share judgements
        that are under way.
        """
        if store is None or isinstance(store, Store):
            return store
        name = find(store).text
        # Taken before it is looked at: it may go at any time.
        made = cls._shared.get(name) or cls(store)
        return cls._shared.setdefault(name, made)

    @property
    def place(self) -> str:
        """The file, or the URL without a password."""
        return self._database.place.shown

    def __repr__(self) -> str:
        """Show where it is."""
        return f"Store({self.place!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Send where it is and what it does to texts."""
        return _opened, (self._database.place.text, self._privacy)

    def __enter__(self) -> Self:
        """Use it in a block."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Give the connections back. A later use opens new ones."""
        self._database.close()

    def get_many(self, keys: Sequence[str]) -> dict[str, list[Finding]]:
        """See `CellCache.get_many`."""
        from ctxeval.store import cells

        return cells.get_many(self._database, keys)

    def put_many(self, findings: Iterable[tuple[str, Finding]]) -> None:
        """See `CellCache.put_many`."""
        from ctxeval.store import cells

        cells.put_many(self._database, self._privacy, findings)

    def put_records(self, records: Iterable[QueryRecord]) -> None:
        """Keep records. One with an id that is there takes the earlier one's place.

        Many at once are cheaper by far than one by one.
        """
        from ctxeval.store.records import put

        put(self._database, self._texts, self._privacy, records)

    def records(
        self,
        since: datetime | None = None,
        question: str | None = None,
        limit: int | None = None,
    ) -> Iterator[QueryRecord]:
        """Go through the records in order of asking, as they were put.

        Args:
            since: Only those begun at or after this moment; without a time zone, local time.
            question: Only those that asked this; case and white space don't matter.
            limit: How many at most.
        """
        from ctxeval.store.records import read

        return read(self._database, since, self._question(question), limit)

    def _question(self, question: str | None) -> bytes | None:
        from ctxeval.store.tables import question_key

        return None if question is None else question_key(self._privacy.redacted(question))

    def put_run(self, id: str, meta: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> Run:
        """Keep what an evaluation found, row by row: memory does not grow with the rows.

        Args:
            id: Its name. A run that has it already is replaced once this one is complete.
            meta: What is to be known of it, as plain data.
            rows: Its rows, as plain data; `sample` holds a sample's fields.
        """
        from ctxeval.store import runs

        return runs.put(self._database, self._texts, self._privacy, id, meta, rows)

    def run(self, id: str) -> Run:
        """Give a run.

        Raises:
            StoreError: There is none with this id.
        """
        from ctxeval.store import runs

        return runs.get(self._database, id)

    def runs(self) -> list[Run]:
        """Give all runs, oldest first."""
        from ctxeval.store import runs

        return runs.find(self._database)

    def as_kept(self, record: QueryRecord) -> QueryRecord:
        """Give a record as it is kept: redacted, or with the hashes of its texts."""
        return self._privacy.record(record)

    def redacting(self) -> tuple[Store, Redact | None]:
        """Part storing from redacting, for whoever redacts before there is anything to store.

        Returns:
            The same store, for what is redacted already, and what redacts; itself and None
            where nothing does.
        """
        redact = self._privacy.redact
        if redact is None:
            return self, None
        other = copy(self)
        other._privacy = replace(self._privacy, redact=None)
        return other, redact

    def put_unsent(self, unsent: Iterable[tuple[str, str]]) -> None:
        """Note which sinks did not take which records, which are here or about to be.

        Args:
            unsent: The sinks' names, each with a record's id.
        """
        from ctxeval.store.unsent import put

        put(self._database, unsent)

    def unsent(self, sink: str) -> Iterator[QueryRecord]:
        """Go through the records that a sink did not take, as long as they are here."""
        from ctxeval.store import unsent

        return unsent.read(self._database, sink)

    def count_unsent(self) -> dict[str, int]:
        """Say how many records which sink did not take."""
        from ctxeval.store import unsent

        return unsent.count(self._database)

    def sent(self, sink: str, id: str) -> None:
        """Note that a sink took a record after all."""
        from ctxeval.store import unsent

        unsent.remove(self._database, sink, id)

    def add_tokens(self, day: date, tokens: int) -> int:
        """Add to the tokens that all processes spent on a day.

        Returns:
            What they make together now.
        """
        from ctxeval.store import usage

        return usage.add(self._database, day, tokens)

    def tokens_of(self, day: date) -> int:
        """Say how many tokens all processes spent on a day."""
        from ctxeval.store import usage

        return usage.of(self._database, day)

    def take_turn(self, name: str, seconds: float) -> float:
        """Take the next turn of those that all processes take, so that they come evenly.

        Args:
            name: What they take turns at: a model, say.
            seconds: How long after this turn the next one is.

        Returns:
            In how many seconds this turn is: 0 where nobody was before it.
        """
        from ctxeval.store import usage

        return usage.take_turn(self._database, name, seconds)

    def stats(self) -> Stats:
        """Say what it holds."""
        from ctxeval.store.upkeep import stats

        return stats(self._database)

    def prune(
        self, before: datetime | None = None, *, keep: Collection[str] = ()
    ) -> dict[str, int]:
        """Remove what is old, what a killed process left behind, and texts without use.

        Afterwards the file is made smaller if it can be: that takes space for a copy.

        Args:
            before: What is older goes: records, runs, cells, usage. None: nothing does.
            keep: Which of those four stay.

        Returns:
            How many rows were removed, by the table's name.
        """
        from ctxeval.store.upkeep import prune

        _check_moment(before)
        return prune(self._database, before, keep)

    def delete(
        self, *, question: str | None = None, before: datetime | None = None
    ) -> dict[str, int]:
        """Delete what is of a question, or older than a moment, or both; texts included.

        In SQLite's file, and in its log, nothing of it is left.

        Returns:
            How many rows were removed, by the table's name.

        Raises:
            StoreError: It was deleted, but others read from the log and go on doing so.
        """
        from ctxeval.store.tables import question_key
        from ctxeval.store.upkeep import remove

        if question is None and before is None:
            raise StoreError("delete() was told nothing: give question=, before=, or both")
        _check_moment(before)
        keys = None
        if question is not None:
            keys = {question_key(question), question_key(self._privacy.redacted(question))}
        return remove(self._database, keys, before)

    def export(self, to: Source | TextIO) -> int:
        """Write everything as lines of JSON.

        Args:
            to: A path, whose file gets the mode 0600, or an open text file.

        Returns:
            How many lines.
        """
        from ctxeval.store import export

        return export.write(self, self._database, to)


def _opened(url: str, privacy: Privacy) -> Store:
    return Store(url, store_text=privacy.store_text, redact=privacy.redact)


def _check_moment(before: object) -> None:
    if before is not None and not isinstance(before, datetime):
        raise StoreError(f"before: {short(before)} is no moment: give a datetime")
