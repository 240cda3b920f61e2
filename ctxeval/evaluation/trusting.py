"""What people's labels say of the judges behind an evaluation, for its report."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING

from ctxeval.calibration.calibration import Calibration
from ctxeval.errors import InvalidArgumentError, short
from ctxeval.evaluation.correcting import SHARES
from ctxeval.report.content import Trust

if TYPE_CHECKING:
    from ctxeval.evaluation.evaluation import Evaluation

Calibrations = Calibration | str | PathLike[str] | Iterable[Calibration | str | PathLike[str]]

METRICS = {
    "question": "context_relevance",
    "reference": "context_precision",
    "response": "context_utilization",
    "support": "context_recall",
}
"""By what was labelled, the metric that reads such verdicts."""


def calibrations_of(given: Calibrations | None) -> list[Calibration]:
    """Take calibrations, or the files that they were saved to.

    Raises:
        InvalidArgumentError: Something is neither.
    """
    if given is None:
        return []
    several = given if not isinstance(given, (Calibration, str, PathLike)) else [given]
    if not isinstance(several, Iterable):
        raise InvalidArgumentError(f"calibration: {short(given)} is no Calibration and no path")
    return [one if isinstance(one, Calibration) else Calibration.load(one) for one in several]


def metrics_about(evaluation: Evaluation, calibration: Calibration) -> list[str]:
    """Name the metrics that read such verdicts as a calibration is about."""
    purpose = calibration.purpose
    found = []
    for name in evaluation.metrics:
        by_rank = "support" if name.startswith("recall") else "reference"
        if name == METRICS[purpose] or (name.endswith("[llm]") and by_rank == purpose):
            found.append(name)
    return found


def trust_of(evaluation: Evaluation, calibrations: Iterable[Calibration]) -> dict[str, Trust]:
    """Say by metric what calibrations tell of its judge.

    Raises:
        InvalidArgumentError: A calibration is of another judge than the metric's, or no metric
            that reads such verdicts was scored.
    """
    found: dict[str, Trust] = {}
    for one in calibrations:
        metrics = metrics_about(evaluation, one)
        if not metrics:
            raise InvalidArgumentError(
                f"calibration: it is about verdicts for {one.purpose!r}, which "
                f"{METRICS[one.purpose]} reads, and that was not scored: leave it out"
            )
        for metric in metrics:
            signature = evaluation.signature(metric)
            if signature != f"{metric}/1 {one.judge}":
                raise InvalidArgumentError(
                    f"calibration: it is of {one.judge or 'a judge that was not named'}, but "
                    f"{metric} was judged as {signature}: score with the calibration "
                    "(--calibration, or judge.with_calibration(…)), which asks nothing again, or "
                    "calibrate this judge"
                )
            found[metric] = _trust(evaluation, one, metric)
    return found


def _trust(evaluation: Evaluation, calibration: Calibration, metric: str) -> Trust:
    told: list[str] = []
    doubts: list[str] = []
    accuracy = calibration.balanced_accuracy
    if accuracy is not None:
        interval = calibration.balanced_accuracy_interval
        reach = "" if interval is None else f" ({interval[0]:.3f}–{interval[1]:.3f})"
        told.append(f"its judge's balanced accuracy on the labels is {accuracy:.3f}{reach}")
    for one in calibration.beside:
        (told if one.better and not one.odd else doubts).append(f"its judge {one}")
    mean = low = high = None
    if metric != SHARES.get(calibration.purpose):
        told.append(
            "its mean is no plain share of verdicts: no calibration corrects it, but people's "
            "values of some samples do, by evaluation.corrected(labels=…)"
        )
    elif not evaluation.readable:
        doubts.append(f"its mean can't be corrected: {evaluation.unreadable}")
    elif evaluation.places(metric):
        corrected = evaluation.corrected(calibration)
        mean, low, high = corrected.mean, corrected.low, corrected.high
        if corrected.mean is None:
            doubts.append(f"its mean can't be corrected: {corrected.note}")
        elif corrected.note:
            told.append(corrected.note)
    return Trust(mean, low, high, calibration.n, tuple(told), tuple(doubts))
