"""Which texts of many rows resemble each other: only comparisons that can change a verdict.

A text that equals a reference is decided by that. What is open then is compared with one
reference after the other, of all rows in one call, until it is decided.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from ctxeval.evaluation.columns.ids import Bools, Ints
from ctxeval.judges.similarity import NamedMatcher
from ctxeval.judges.text import TextJudge
from ctxeval.metric import Metric
from ctxeval.metrics import (
    NDCG,
    AveragePrecision,
    HitRate,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    PrecisionAtK,
    ReciprocalRank,
)
from ctxeval.verdicts import Verdicts, first_ranks

UNDECIDED = 2**30
"""Stands for the reference that decides a chunk where none does."""

WORTH_THREADS = 64
"""From so many pairs on, threads cost less than they save."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of one column.

    Attributes:
        missing: The rows that have no list.
        lengths: How many texts each row has, 0 where it has no list.
        values: All texts, as Python strings; None for a null.
    """

    missing: Bools
    lengths: Ints
    values: npt.NDArray[np.object_]

    @property
    def starts(self) -> Ints:
        """Where each row's texts begin."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def longest(self) -> int:
        """The length of the longest list."""
        return int(self.lengths.max(initial=0))

    @property
    def rows(self) -> Ints:
        """The row of each text."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def blank(self) -> Bools:
        """Say of each text whether there is nothing in it."""
        blank = [not text or text.isspace() for text in self.values.tolist()]
        return np.array(blank, np.bool_)


class Resemblance:
    """Which retrieved texts resemble a reference, and the other way round.

    Args:
        retrieved: The retrieved texts.
        references: The references of the same rows.
        matcher: The measure with its threshold.
    """

    def __init__(self, retrieved: Texts, references: Texts, matcher: NamedMatcher) -> None:
        """Find what is equal."""
        self._retrieved = retrieved
        self._references = references
        self._matcher = matcher
        self._blank = retrieved.blank()
        self._reference_blank = references.blank()
        self._rows = retrieved.rows
        # The number of the reference that decided a chunk, which was not compared with later
        # ones; before the first where it equals one.
        self._decided = np.full(len(retrieved.values), UNDECIDED)
        self._covered = np.zeros(len(references.values), np.bool_)
        self._compared = False
        for unit in range(references.longest):
            chunks, units = self._pairs(unit, ~self._blank)
            equal = retrieved.values[chunks] == references.values[units]
            self._decided[chunks[equal]] = -1
            self._covered[units[equal]] = True

    def expects(self) -> Bools:
        """Say of each row whether it has a reference that is not blank."""
        expects = np.zeros(len(self._references.lengths), np.bool_)
        expects[self._references.rows[~self._reference_blank]] = True
        return expects

    def relevant(self) -> Bools:
        """Say of each retrieved text whether it resembles a reference of its row."""
        if not self._compared:
            for unit in range(self._references.longest):
                open_ = (self._decided == UNDECIDED) & ~self._blank
                chunks, units = self._pairs(unit, open_)
                similar = self._similar(units, chunks)
                self._decided[chunks[similar]] = unit
                self._covered[units[similar]] = True
            self._compared = True
        return self._decided < UNDECIDED

    def covered(self) -> Bools:
        """Say of each reference whether a retrieved text of its row resembles it."""
        units = np.flatnonzero(~self._covered & ~self._reference_blank)
        owners, chunks = self._not_compared(units)
        while len(owners):  # the first of each, until it is found or none is left
            first = np.append(True, owners[1:] != owners[:-1])
            tried = units[owners[first]]
            self._covered[tried[self._similar(tried, chunks[first])]] = True
            left = ~first & ~self._covered[units[owners]]
            owners, chunks = owners[left], chunks[left]
        return self._covered

    def _not_compared(self, units: Ints) -> tuple[Ints, Ints]:
        """Pair references with the texts of their rows that they were not compared with."""
        rows = self._references.rows[units]
        lengths = self._retrieved.lengths[rows]
        owners = np.repeat(np.arange(len(units)), lengths)
        ranks = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        chunks = self._retrieved.starts[rows][owners] + ranks
        open_ = ~self._blank[chunks]
        if self._compared:
            numbers = units - self._references.starts[rows]
            open_ &= self._decided[chunks] < numbers[owners]
        return owners[open_], chunks[open_]

    def _pairs(self, unit: int, chunks: Bools) -> tuple[Ints, Ints]:
        """Pair these retrieved texts with the reference of this number, where there is one."""
        places = np.flatnonzero(chunks & (self._references.lengths[self._rows] > unit))
        units = self._references.starts[self._rows[places]] + unit
        there = ~self._reference_blank[units]
        return places[there], units[there]

    def _similar(self, units: Ints, chunks: Ints) -> Bools:
        references = self._references.values[units].tolist()
        texts = self._retrieved.values[chunks].tolist()
        threads = usable_processors() if len(texts) >= WORTH_THREADS else 1
        return self._matcher.similar(references, texts, threads=threads)


class DecidedTexts(Verdicts):
    """Verdicts by text of which only yes and no are known."""

    __slots__ = ("_covered", "_relevant", "_texts")

    def __init__(self, texts: list[str], relevant: list[bool], covered: list[bool]) -> None:
        """Take the retrieved texts, and what was decided."""
        super().__init__()
        self._texts = texts
        self._relevant = relevant
        self._covered = covered

    def relevant(self) -> list[bool | None]:
        """Say of each chunk whether it is relevant."""
        return list(self._relevant)

    def covered(self, k: int | None = None) -> list[bool | None]:
        """Say of each reference whether it is covered; by the first k is not known."""
        assert k is None
        return list(self._covered)

    def distinct(self) -> list[int]:
        """Give the ranks of the chunks that are no repeat of an earlier one."""
        return first_ranks(self._texts)


def by_text(metric: Metric) -> bool:
    """Can yes and no decide this metric, by a measure that compares many pairs at once?"""
    judge = metric.judge
    known = type(metric) in _KNOWN and type(judge) is TextJudge
    return known and isinstance(judge, TextJudge) and isinstance(judge.matcher, NamedMatcher)


_KNOWN = (
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    HitRate,
    ReciprocalRank,
    PrecisionAtK,
    NDCG,
    AveragePrecision,
)


def score_texts(
    retrieved: Texts, references: Texts, metrics: Sequence[Metric]
) -> tuple[dict[str, npt.NDArray[np.float64]], Bools]:
    """Score rows by metrics that share a judge by text.

    Returns:
        The values by the metric's name, 0 where there is none; and which rows expect a text.
    """
    judge = metrics[0].judge
    assert isinstance(judge, TextJudge)
    assert isinstance(judge.matcher, NamedMatcher)
    pairs = Resemblance(retrieved, references, judge.matcher)
    reads = {metric.reads for metric in metrics}
    relevant = pairs.relevant().tolist() if "chunks" in reads else []
    covered = pairs.covered().tolist() if "units" in reads else []
    expects = pairs.expects()
    values = {metric.name: np.zeros(len(expects)) for metric in metrics}
    begin, end = retrieved.starts, retrieved.starts + retrieved.lengths
    first, last = references.starts, references.starts + references.lengths
    for row in np.flatnonzero(expects & (retrieved.lengths > 0)).tolist():
        chunks, units = slice(begin[row], end[row]), slice(first[row], last[row])
        texts = retrieved.values[chunks].tolist()
        verdicts = DecidedTexts(texts, relevant[chunks], covered[units])
        for metric in metrics:
            answers = cast("list[bool]", metric.answers(verdicts))
            values[metric.name][row] = metric.formula(answers, verdicts)
    return values, expects


def usable_processors() -> int:
    """Count the processors that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # not everywhere
    return len(allowed(0)) if allowed else os.cpu_count() or 1
