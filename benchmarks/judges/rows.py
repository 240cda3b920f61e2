"""How well one way of judging did on the labelled set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.judges.cases import Case
from ctxeval.calibration.agreement import confusion_of
from ctxeval.calibration.calibration import balanced_accuracy_interval
from ctxeval.calibration.threshold import fit_threshold

RESAMPLES = 1000
FITTED = 4
"""The threshold is fitted to each fourth question, and judged on the others."""


class Told(NamedTuple):
    """What was told of one case: how likely a yes is, or how much speaks for it."""

    case: Case
    yes: float | None

    @property
    def label(self) -> bool:
        """Is it a yes?"""
        return bool(self.case.labelled.label)

    @property
    def question(self) -> int:
        """The question's number."""
        return int(self.case.labelled.pair.sample)


class Interval(NamedTuple):
    """A figure and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Write it with two digits."""
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


class Row(NamedTuple):
    """One way of judging.

    Attributes:
        n: How many cases were read.
        unread: How many were not.
        auc: How well it ranks: the chance that a yes is found likelier than a no.
        near: The same, with the near negatives alone.
        far: The same, with the far negatives alone.
        even: The balanced accuracy with the threshold 0.5.
        fitted: That with the threshold that was fitted to other questions.
        held_out: How many cases that is about.
        threshold: The fitted threshold.
    """

    n: int
    unread: int
    auc: Interval
    near: float | None
    far: float | None
    even: Interval
    fitted: Interval
    held_out: int
    threshold: float


def row(told: Sequence[Told]) -> Row:
    """Reckon the row of one way of judging."""
    read = [one for one in told if one.yes is not None]
    fit = [one for one in read if one.question % FITTED == 0]
    rest = [one for one in read if one.question % FITTED]
    threshold = fit_threshold(*_arrays(fit))
    return Row(
        n=len(read),
        unread=len(told) - len(read),
        auc=_auc_interval(read),
        near=_auc_of(read, "near"),
        far=_auc_of(read, "far"),
        even=accuracy(read, 0.5),
        fitted=accuracy(rest, threshold),
        held_out=len(rest),
        threshold=threshold,
    )


def _arrays(told: Iterable[Told]) -> tuple[np.ndarray, np.ndarray]:
    pairs = [(one.yes, one.label) for one in told]
    return np.array([yes for yes, _ in pairs], float), np.array([said for _, said in pairs], bool)


def _auc(told: Sequence[Told]) -> float:
    yes, labels = _arrays(told)
    return float(roc_auc_score(labels, yes))


def _auc_of(told: Sequence[Told], kind: str) -> float | None:
    these = [one for one in told if one.case.kind in ("answering", kind)]
    return _auc(these) if any(one.case.kind == kind for one in these) else None


def _auc_interval(told: Sequence[Told]) -> Interval:
    """Resample whole questions, as the cases of one are alike."""
    draw = np.random.default_rng(1)
    by_question: dict[int, list[Told]] = {}
    for one in told:
        by_question.setdefault(one.question, []).append(one)
    groups = list(by_question.values())
    drawn = [
        _auc([one for n in draw.integers(len(groups), size=len(groups)) for one in groups[n]])
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(drawn, (2.5, 97.5))
    return Interval(_auc(told), float(low), float(high))


def accuracy(told: Sequence[Told], threshold: float) -> Interval:
    """Give the balanced accuracy with a threshold."""
    yes, labels = _arrays(told)
    confusion = confusion_of(yes >= threshold, labels)
    found = (yes >= threshold)[labels].mean()
    spared = (yes < threshold)[~labels].mean()
    interval = balanced_accuracy_interval(confusion)
    low, high = interval if interval is not None else (0.0, 1.0)
    return Interval(float((found + spared) / 2), low, high)
