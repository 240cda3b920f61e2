"""The formulas of the metrics by id, for many rows at once.

Each makes the same additions and divisions in the same order as its twin in
`ctxeval.formulas`, so that the numbers agree to the last bit. All that they read is where
the expected ids were found: loops go over those, never over rows.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from typing import Any

import numpy as np
import numpy.typing as npt

from ctxeval.evaluation.columns.ids import NEVER, Found, Ints, Ranks
from ctxeval.judges.ids import IdJudge
from ctxeval.metric import Metric
from ctxeval.metrics import (
    NDCG,
    AveragePrecision,
    HitRate,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    PrecisionAtK,
    RecallAtK,
    ReciprocalRank,
)

Floats = npt.NDArray[np.float64]


class Standing:
    """Where the expected ids of some rows stand, one row per column.

    Attributes:
        ranks: The ranks, counted from 0, in ascending order; `NEVER` fills up.
        gains: The grade of the id at each of these ranks; None where all are 1.
        best: All grades of what is expected, greatest first, filled up by 0; None likewise.
        expected: How many ids each row expects.

    Args:
        found: The first ranks of the expected ids.
        grades: Their grades, where they are graded: at most 0 means not expected; 0 for
            repeats.
        distinct: Counts the distinct retrieved ids.
    """

    def __init__(self, found: Found, grades: Ints | None, distinct: Callable[[], Ints]) -> None:
        """Bring what was found in order."""
        self.ranks: Ranks = found.ranks
        self.gains = self.best = None
        self.expected: Ints = found.expected
        self.distinct = distinct
        self._height = found.height
        self._cuts: dict[int, Ranks] = {}
        self._counts: dict[int, Ranks] = {}
        if grades is None:
            self.ranks = _ascending(found.ranks)
            return
        wanted = grades > 0
        ranks = np.where(wanted, found.ranks, np.int32(NEVER))
        order = np.argsort(ranks, axis=0, kind="stable")
        self.ranks = np.take_along_axis(ranks, order, axis=0)
        self.gains = np.take_along_axis(grades, order, axis=0)
        self.best = -np.sort(-np.where(wanted, grades, 0), axis=0)
        self.expected = np.count_nonzero(wanted, axis=0)

    def depth(self, k: int | None) -> int:
        """Give the number of ranks that count, of which some may be empty."""
        return self._height if k is None else min(k, self._height)

    def cut(self, k: int | None) -> Ranks:
        """Give the ranks, where those that do not count are one that none has: the depth."""
        depth = self.depth(k)
        if depth not in self._cuts:
            self._cuts[depth] = np.minimum(self.ranks, np.int32(depth))
        return self._cuts[depth]

    def found(self, k: int | None = None) -> Ranks:
        """Count the expected ids among the first k."""
        depth = self.depth(k)
        if depth not in self._counts:
            counts = np.zeros(self.ranks.shape[1], np.int32)
            for ranks in self.cut(k):
                counts += ranks < depth
            self._counts[depth] = counts
        return self._counts[depth]


Formula = Callable[[Standing], Floats]


def formula_of(metric: Metric) -> Formula | None:
    """Give a metric's formula for many rows; None where it has only that for one.

    A class derived from ours may mean something else, so it has none.
    """
    make = _FORMULAS.get(type(metric)) if type(metric.judge) is IdJudge else None
    return None if make is None else make(metric)


def _id_based_precision(metric: Metric) -> Formula:
    return lambda rows: _share(rows.found(), rows.distinct())


def _id_based_recall(metric: Metric) -> Formula:
    return lambda rows: _share(rows.found(), rows.expected)


def _hit_rate(metric: Metric) -> Formula:
    assert isinstance(metric, HitRate)

    def formula(rows: Standing) -> Floats:
        return np.minimum(rows.found(metric.k), 1.0)

    return formula


def _reciprocal_rank(metric: Metric) -> Formula:
    assert isinstance(metric, ReciprocalRank)

    def formula(rows: Standing) -> Floats:
        if not len(rows.ranks):
            return np.zeros(rows.ranks.shape[1])
        worth: Floats = np.append(1 / np.arange(1, rows.depth(metric.k) + 1), 0.0)
        value: Floats = np.take(worth, rows.cut(metric.k)[0])
        return value

    return formula


def _precision(metric: Metric) -> Formula:
    assert isinstance(metric, PrecisionAtK)
    k = metric.k or 1  # it has one
    return lambda rows: np.divide(rows.found(k), k)


def _recall(metric: Metric) -> Formula:
    assert isinstance(metric, RecallAtK)
    return lambda rows: _share(rows.found(metric.k), rows.expected)


def _average_precision(metric: Metric) -> Formula:
    assert isinstance(metric, AveragePrecision)

    def formula(rows: Standing) -> Floats:
        places = np.arange(1, rows.depth(metric.k) + 1)
        total = np.zeros(rows.ranks.shape[1])
        for hits, ranks in enumerate(rows.cut(metric.k), start=1):
            total += np.append(hits / places, 0.0)[ranks]
        if metric.normalize == "gold":
            return _share(total, rows.expected)
        found = rows.found()
        return _share(total, found if metric.k is None else np.minimum(found, metric.k))

    return formula


def _ndcg(metric: Metric) -> Formula:
    assert isinstance(metric, NDCG)

    def formula(rows: Standing) -> Floats:
        depth, units = rows.depth(metric.k), len(rows.ranks)
        discounts = np.array([log2(rank + 2) for rank in range(max(depth, units))] or [1.0])
        worth = np.append(1 / discounts[:depth], 0.0)
        actual, ideal = np.zeros((2, rows.ranks.shape[1]))
        if rows.gains is None or rows.best is None:
            for ranks in rows.cut(metric.k):
                actual += worth[ranks]
            best = np.append(0.0, np.cumsum(1 / discounts[: metric.k]))
            return _share(actual, best[np.minimum(rows.expected, len(best) - 1)])
        for ranks, gains in zip(rows.cut(metric.k), rows.gains, strict=True):
            counts = ranks < depth
            actual += np.where(counts, gains / discounts[np.where(counts, ranks, 0)], 0.0)
        for gains, discount in zip(rows.best[: metric.k], discounts, strict=False):
            ideal += gains / discount
        return _share(actual, ideal)

    return formula


_FORMULAS: dict[type[Metric], Callable[[Metric], Formula]] = {
    IDBasedContextPrecision: _id_based_precision,
    IDBasedContextRecall: _id_based_recall,
    HitRate: _hit_rate,
    ReciprocalRank: _reciprocal_rank,
    PrecisionAtK: _precision,
    RecallAtK: _recall,
    NDCG: _ndcg,
    AveragePrecision: _average_precision,
}


def _share(part: npt.NDArray[Any], whole: npt.NDArray[Any]) -> Floats:
    """Divide, and give 0 where there is nothing to divide by."""
    shares: Floats = np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
    return shares


def _ascending(ranks: Ranks) -> Ranks:
    """Sort each column: few lines by exchanging them whole, which is faster."""
    if len(ranks) > 8:
        return np.sort(ranks, axis=0)
    ranks = ranks.copy()
    for end in range(len(ranks) - 1, 0, -1):
        for line in range(end):
            upper = np.minimum(ranks[line], ranks[line + 1])
            np.maximum(ranks[line], ranks[line + 1], out=ranks[line + 1])
            ranks[line] = upper
    return ranks
