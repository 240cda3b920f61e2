"""Score lists of ids, all rows at once where their lists are of about equal lengths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from ctxeval.evaluation.columns.formulas import Floats, Formula, Standing
from ctxeval.evaluation.columns.ids import (
    Bools,
    Ints,
    Numbers,
    Rows,
    Side,
    Strings,
    distinct,
    find,
)
from ctxeval.evaluation.columns.reading import IdColumn, arrow

FEW = 8
"""A row among others takes less by columns than alone, while so many times their number is
more than their lists are long."""


def score_ids(
    retrieved: IdColumn, expected: IdColumn, formulas: Mapping[str, Formula]
) -> tuple[dict[str, Floats], Bools, Ints]:
    """Score rows by metrics that judge by id.

    Returns:
        The values by the metric's name, 0 where there is none; which rows expect an id; and
        the rows that are better scored one by one, which have no values.
    """
    n = len(retrieved.lengths)
    sides = _sides(retrieved, expected)
    values = {name: np.zeros(n) for name in formulas}
    expects = np.zeros(n, np.bool_)
    alone = [np.empty(0, np.int64)]
    for rows in _alike(retrieved.lengths, expected.lengths):
        ours, theirs = sides[0].of(rows), sides[1].of(rows)
        if isinstance(rows, np.ndarray) and len(rows) * FEW < ours.height + 5 * theirs.height:
            alone.append(rows)
            continue
        found = find(ours, theirs)
        grades = None
        if expected.grades is not None:
            grades = np.where(found.repeats, 0, theirs.grid(expected.grades, 0))
        standing = Standing(found, grades, partial(distinct, ours))
        if isinstance(rows, slice):  # all of them
            values = {name: formula(standing) for name, formula in formulas.items()}
            expects = standing.expected > 0
            break
        expects[rows] = standing.expected > 0
        for name, formula in formulas.items():
            values[name][rows] = formula(standing)
    return values, expects, np.concatenate(alone)


def _sides(retrieved: IdColumn, expected: IdColumn) -> tuple[Side, Side]:
    pa = arrow()
    numbers = retrieved.numbers and expected.numbers
    sides = []
    for column in (retrieved, expected):
        values = column.values
        if numbers:
            ids: Numbers | Strings = Numbers(values)
        else:
            values = values.cast(pa.string()) if column.numbers else values
            ids = Strings(values, wide=pa.types.is_large_string(values.type))
        sides.append(Side(ids, column.starts, column.lengths))
    return sides[0], sides[1]


def _alike(one: Ints, other: Ints) -> Iterator[Rows]:
    """Part rows into such as have lists of about equal lengths."""
    if not len(one):
        return
    longest = int(one.max()), int(other.max())
    many = len(one) * FEW > longest[0] + 5 * longest[1]
    if many and (int(one.min()), int(other.min())) == longest:
        yield slice(None)
        return
    kinds = np.ceil(np.log2(np.maximum(one, 1))) * 64 + np.ceil(np.log2(np.maximum(other, 1)))
    for kind in np.unique(kinds):
        yield np.flatnonzero(kinds == kind)
