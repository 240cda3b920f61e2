"""Where the rows of an evaluation are, and how to come by those that are asked for."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol, overload

from ctxeval.errors import InvalidArgumentError, short
from ctxeval.evaluation.rows import Row, read_run
from ctxeval.sample import Sample

VALUES_ALONE = (
    "The run holds values without samples and verdicts: to see queries, write it to a .jsonl"
)


class Holder(Protocol):
    """Holds rows.

    Attributes:
        late: Is a row scored only when it is asked for?
    """

    late: bool

    def rows(self) -> Iterator[Row]:
        """Go through all rows, in order."""
        ...

    def at(self, places: Collection[int]) -> Iterator[Row]:
        """Go through the rows at these places, counted from 0, in ascending order."""
        ...

    def samples(self) -> Iterator[Sample]:
        """Go through the samples, in order."""
        ...


class Rows(Sequence[Row]):
    """The rows of an evaluation, in the order of the samples: read or scored when asked for.

    >>> rows = Rows(InMemory([]), 0)
    >>> rows, len(rows), rows[:1]
    (<0 rows>, 0, [])

    Args:
        holder: Holds them.
        size: How many they are.
    """

    def __init__(self, holder: Holder, size: int) -> None:
        """See the class."""
        self._holder = holder
        self._size = size

    def __len__(self) -> int:
        """Count them."""
        return self._size

    def __iter__(self) -> Iterator[Row]:
        """Go through them."""
        return self._holder.rows()

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | list[Row]:
        """Give the row at a place, counted from 0 (from the end below), or those of a slice."""
        if isinstance(place, slice):
            wanted = range(self._size)[place]
            found = list(self._holder.at(wanted))
            return found[::-1] if wanted.step < 0 else found
        there = operator.index(place)
        there += self._size if there < 0 else 0
        if not 0 <= there < self._size:
            raise IndexError(f"rows: there is no row {short(place)}: they are {self._size:,}")
        return next(iter(self._holder.at((there,))))

    def __reversed__(self) -> Iterator[Row]:
        """Go through them from the end; they are read or scored at once for that."""
        return iter(self[::-1])

    def __repr__(self) -> str:
        """Say how many they are: to show one costs reading or scoring it."""
        return f"<{self._size:,} rows>"


class InMemory:
    """Rows in a list."""

    late = False

    def __init__(self, rows: list[Row]) -> None:
        """See the class."""
        self._rows = rows

    def rows(self) -> Iterator[Row]:
        """See `Holder`."""
        return iter(self._rows)

    def at(self, places: Collection[int]) -> Iterator[Row]:
        """See `Holder`."""
        return (self._rows[place] for place in sorted(places))

    def samples(self) -> Iterator[Sample]:
        """See `Holder`."""
        return (row.sample for row in self._rows)


class InFile:
    """Rows in a .jsonl file that `write_run` made."""

    late = False

    def __init__(self, path: Path) -> None:
        """See the class."""
        self._path = path

    def rows(self) -> Iterator[Row]:
        """See `Holder`."""
        return read_run(self._path)

    def at(self, places: Collection[int]) -> Iterator[Row]:
        """See `Holder`."""
        return read_run(self._path, frozenset(places))

    def samples(self) -> Iterator[Sample]:
        """See `Holder`."""
        return (row.sample for row in read_run(self._path))


class Nowhere:
    """Rows of which only values and statuses are left.

    Args:
        why: What to say to who asks for one.
    """

    late = False

    def __init__(self, why: str) -> None:
        """See the class."""
        self.why = why

    def rows(self) -> Iterator[Row]:
        """Raise.

        Raises:
            InvalidArgumentError: Always.
        """
        raise InvalidArgumentError(self.why)

    def at(self, places: Collection[int]) -> Iterator[Row]:
        """See `rows`; of no places there are no rows."""
        return self.rows() if places else iter(())

    def samples(self) -> Iterator[Sample]:
        """See `rows`."""
        raise InvalidArgumentError(self.why)


class Part:
    """Some of the rows that another one scores when they are asked for.

    Args:
        whole: The other one.
        places: Their places there, in ascending order.
    """

    late = True

    def __init__(self, whole: Holder, places: Sequence[int]) -> None:
        """See the class."""
        self._whole = whole
        self._places = places

    def rows(self) -> Iterator[Row]:
        """See `Holder`."""
        return self._whole.at(self._places)

    def at(self, places: Collection[int]) -> Iterator[Row]:
        """See `Holder`."""
        return self._whole.at([self._places[place] for place in places])

    def samples(self) -> Iterator[Sample]:
        """See `Holder`."""
        wanted = set(self._places)
        return (one for place, one in enumerate(self._whole.samples()) if place in wanted)
