"""Where the expected ids stand among the retrieved ones, for many rows at once.

Ids are compared by a fingerprint of 32 bits each, and what agrees is then compared byte by
byte: fingerprints decide how fast it goes, and never what comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Ranks = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
Prints = npt.NDArray[np.uint32]
Rows = Ints | slice

NEVER = 2**30
"""The rank of an expected id that was not retrieved."""

_MIXERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_WORD = 16
_ONES = np.uint64(2**64 - 1)


def mixed(words: Sequence[Words], salt: Words | None = None) -> Prints:
    """Mix words and a salt into fingerprints."""
    mix = words[0] * _MIXERS[0]
    for word, mixer in zip(words[1:], _MIXERS[1:], strict=False):
        mix += word * mixer
    if salt is not None:
        mix += salt
    mix >>= np.uint64(32)
    return mix.astype(np.uint32)


class Ids(Protocol):
    """The ids of one column, all rows in one sequence.

    Attributes:
        prints: A fingerprint of each: equal for equal ids.
    """

    prints: Prints

    def same(self, places: Ints, others: Any, other_places: Ints) -> Bools:
        """Compare ids at these places with ids of another column at those, to the last bit."""
        ...


class Numbers:
    """Ids that are numbers."""

    def __init__(self, values: Any) -> None:
        """Take a pyarrow array of 64-bit integers, null where there is none."""
        self._values: Ints = values.fill_null(0).to_numpy(zero_copy_only=False)
        self.prints = mixed([self._values.view(np.uint64)])

    def same(self, places: Ints, others: Numbers, other_places: Ints) -> Bools:
        """See `Ids`."""
        return np.equal(self._values[places], others._values[other_places])


class Strings:
    """Ids that are strings, read 16 bytes at a time.

    Behind a string's end stand bytes that no text in UTF-8 holds, so that shorter ones never
    equal longer ones.
    """

    def __init__(self, values: Any, wide: bool) -> None:
        """Take a pyarrow array.

        Args:
            values: Strings with offsets of 32 bits, or of 64.
            wide: Are they of 64?
        """
        _, offsets, content = values.buffers()
        size = len(values)
        if size:
            bounds: Any = np.frombuffer(offsets, np.int64 if wide else np.int32)
            ends: Ints = bounds[values.offset : values.offset + size + 1].astype(np.int64)
        else:  # whose buffers may be missing
            ends = np.zeros(1, np.int64)
        begin, end = int(ends[0]), int(ends[-1])
        padded = np.empty(end - begin + _WORD, np.uint8)
        padded[-_WORD:] = 0
        if end > begin:
            padded[:-_WORD] = np.frombuffer(content, np.uint8)[begin:end]
        ends -= begin
        self._starts = ends[:-1]
        self._lengths: Ints = np.diff(ends)
        # From any place on: numpy reads 16 bytes at a time where they are a complex number.
        self._bytes = np.ndarray((end - begin + 1,), np.complex128, padded, 0, (1,))
        words = self._read(self._starts, self._lengths)
        self._first = words.view(np.complex128).ravel()
        self.prints = mixed([words[:, 0], words[:, 1]])
        self._longest = int(self._lengths.max(initial=0))
        long = np.flatnonzero(self._lengths > _WORD) if self._longest > _WORD else self._starts
        for skipped in range(_WORD, self._longest, _WORD):
            long = long[self._lengths[long] > skipped]
            words = self._read(self._starts[long] + skipped, self._lengths[long] - skipped)
            before = self.prints[long].astype(np.uint64)
            self.prints[long] = mixed([words[:, 0], words[:, 1]], before << np.uint64(32))

    def _read(self, starts: Ints, lengths: Ints) -> Words:
        """Read two words from each start on."""
        words = self._bytes[starts].view(np.uint64).reshape(-1, 2)
        bits = lengths << 3  # numpy shifts by 64 and more to 0
        if int(lengths.min(initial=8)) < 8:
            words[:, 0] |= _ONES << bits.view(np.uint64)
            bits = np.maximum(bits, 64)
        bits -= 64
        words[:, 1] |= _ONES << bits.view(np.uint64)
        return words

    def same(self, places: Ints, others: Strings, other_places: Ints) -> Bools:
        """See `Ids`."""
        ours, theirs = self._first[places], others._first[other_places]
        equal = ours.view(np.uint64) == theirs.view(np.uint64)  # as numbers, NaN would not
        same: Bools = equal[::2] & equal[1::2]
        if self._longest < _WORD:
            return same
        lengths = self._lengths[places]
        same &= lengths == others._lengths[other_places]
        for skipped in range(_WORD, self._longest, _WORD):
            open_ = np.flatnonzero(same & (lengths > skipped))
            rest = lengths[open_] - skipped
            words = self._read(self._starts[places[open_]] + skipped, rest)
            other = others._read(others._starts[other_places[open_]] + skipped, rest)
            same[open_] = (words == other).all(axis=1)
        return same


@dataclass(frozen=True, slots=True)
class Side:
    """The lists of some rows: of retrieved or of expected ids.

    Attributes:
        ids: All of them.
        starts: Where each row's begin.
        lengths: How many each row has.
    """

    ids: Ids
    starts: Ints
    lengths: Ints

    def of(self, rows: Rows) -> Side:
        """Take some of the rows."""
        return Side(self.ids, self.starts[rows], self.lengths[rows])

    @property
    def height(self) -> int:
        """The length of the longest list."""
        return int(self.lengths.max(initial=0))

    def there(self) -> Bools | None:
        """Say where lists of the greatest length would have ids; None if all have."""
        if int(self.lengths.min(initial=self.height)) == self.height:
            return None
        there: Bools = np.arange(self.height)[:, None] < self.lengths
        return there

    def grid(self, values: npt.NDArray[Any], nothing: Any) -> npt.NDArray[Any]:
        """Lay what runs in parallel with the ids out, a row to a column, the first on top.

        Args:
            values: One for each id.
            nothing: What stands below the end of a shorter list.
        """
        lines = np.arange(self.height)[:, None]
        there = self.there()
        if there is None:
            laid: npt.NDArray[Any] = values[self.starts + lines]
            return laid
        return np.where(there, values[np.where(there, self.starts + lines, 0)], nothing)

    def prints(self, salt: int) -> Prints:
        """Lay the fingerprints out, below an end one of its own for each line and salt."""
        nothing = np.arange(salt, salt + 2 * self.height, 2, dtype=np.uint32)[:, None]
        return self.grid(self.ids.prints, nothing)


@dataclass(frozen=True, slots=True)
class Found:
    """Where the expected ids of some rows were found, one row per column.

    Attributes:
        ranks: The rank, counted from 0, at which each distinct expected id stands first;
            `NEVER` for one that does not, and for a repeat in the list.
        height: How many ids were retrieved at most.
        repeats: Where an expected id stands again further down, or where there is none.
        expected: How many distinct ids each row expects.
    """

    ranks: Ranks
    height: int
    repeats: Bools
    expected: Ints


def find(retrieved: Side, expected: Side) -> Found:
    """Find the expected ids among the retrieved ones; best in lists of about equal lengths."""
    n, height, units = len(retrieved.lengths), retrieved.height, expected.height
    prints, expected_prints = retrieved.prints(0), expected.prints(1)
    uneven = retrieved.there() is not None or expected.there() is not None
    ranks = np.full((units, n), NEVER, np.int32)
    for unit in range(units):
        rank, column = _marked(prints == expected_prints[unit])
        ours, theirs = retrieved.starts[column] + rank, expected.starts[column] + unit
        if uneven:
            there = (rank < retrieved.lengths[column]) & (unit < expected.lengths[column])
            rank, column, ours, theirs = rank[there], column[there], ours[there], theirs[there]
        sure = retrieved.ids.same(ours, expected.ids, theirs)
        if not sure.all():
            rank, column = rank[sure], column[sure]
        ranks[unit, column[::-1]] = rank[::-1]  # the last assignment holds: that of the least
    repeats = _repeats(expected, expected_prints)
    wanted = np.full(n, units)
    if repeats.any():
        ranks[repeats] = NEVER
        wanted -= np.count_nonzero(repeats, axis=0)
    return Found(ranks, height, repeats, wanted)


def distinct(side: Side) -> Ints:
    """Count the distinct ids of each row."""
    repeats = _repeats(side, side.prints(0))
    return side.height - np.asarray(np.count_nonzero(repeats, axis=0))


def _repeats(side: Side, prints: Prints) -> Bools:
    """Mark the ids that stand again further down in their column, and the empty places."""
    there = side.there()
    repeats = np.zeros(prints.shape, np.bool_) if there is None else ~there
    for apart in range(1, len(prints)):
        agree = prints[apart:] == prints[:-apart]
        if not agree.any():
            continue
        upper, column = _marked(agree)
        if there is not None:
            inside = there[upper + apart, column]
            upper, column = upper[inside], column[inside]
        places = side.starts[column] + upper
        sure = side.ids.same(places, side.ids, places + apart)
        repeats[upper[sure], column[sure]] = True
    return repeats


def _marked(grid: Bools) -> tuple[Ranks, Ints]:
    """Give line and column of what is marked, line by line."""
    lines, n = grid.shape
    places = np.flatnonzero(grid)
    borders = np.arange(lines + 1) * n
    of_line = np.diff(np.searchsorted(places, borders))
    line = np.repeat(np.arange(lines, dtype=np.int32), of_line)
    return line, places - np.repeat(borders[:-1], of_line)
