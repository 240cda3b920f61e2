"""Rows of a table whose values are known: scored one by one, when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from ctxeval.evaluation.columns.opening import Opened
from ctxeval.evaluation.rows import Row
from ctxeval.record.reading import read_samples
from ctxeval.sample import Sample

ScoreRows = Callable[[Any], Iterator[Row]]
"""Scores what was given row by row."""


class Late:
    """Rows that are scored anew each time that they are asked for, so that none is kept.

    Args:
        table: The table.
        score: Scores rows of it.
    """

    late = True

    def __init__(self, table: Opened, score: ScoreRows) -> None:
        """See the class."""
        self._table = table
        self._score = score

    def rows(self) -> Iterator[Row]:
        """See `Holder`."""
        return self._score(self._table.again())

    def at(self, places: Collection[int]) -> Iterator[Row]:
        """See `Holder`."""
        return self._score(self._table.at(sorted(places))) if places else iter(())

    def samples(self) -> Iterator[Sample]:
        """See `Holder`."""
        return read_samples(self._table.again())
