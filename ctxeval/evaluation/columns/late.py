"""Rows of a table whose values are known: scored one by one, when they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from ctxeval.evaluation.columns.opening import Opened
from ctxeval.evaluation.rows import Row
from ctxeval.naming import MetricSet
from ctxeval.record.reading import read_samples
from ctxeval.sample import Sample
from ctxeval.scoring import score_all

AT_ONCE = 256
"""So many rows are scored together."""


class Late:
    """Rows that are scored anew each time that they are asked for, so that none is kept.

    Args:
        table: The table.
        metrics: Metrics that call no model.
    """

    late = True

    def __init__(self, table: Opened, metrics: MetricSet) -> None:
        """See the class."""
        self._table = table
        self._metrics = metrics

    def rows(self) -> Iterator[Row]:
        """See `Holder`."""
        return self._scored(self._table.again())

    def at(self, places: Collection[int]) -> Iterator[Row]:
        """See `Holder`."""
        return self._scored(self._table.at(sorted(places))) if places else iter(())

    def samples(self) -> Iterator[Sample]:
        """See `Holder`."""
        return read_samples(self._table.again())

    def _scored(self, source: Any) -> Iterator[Row]:
        samples = read_samples(source)
        while batch := list(islice(samples, AT_ONCE)):
            for sample, results in zip(batch, score_all(batch, self._metrics), strict=True):
                yield Row(sample.key, sample, results)
