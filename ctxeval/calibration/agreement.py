"""Compare a judge with people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxeval.calibration.calibration import Bin, Calibration, Confusion, Purpose
from ctxeval.calibration.labels import PURPOSES, TOP_GRADE
from ctxeval.calibration.threshold import cross_validated, fit_threshold, threshold_interval
from ctxeval.errors import InvalidArgumentError, near, short
from ctxeval.extras import load
from ctxeval.verdicts import Verdict

if TYPE_CHECKING:
    from ctxeval.judges.llm import LLMJudge

BINS = 10
FEWEST_IN_BIN = 10

Judged = Verdict | bool | float | None


def calibrate(
    judged: Sequence[Judged],
    labels: Sequence[bool | int],
    *,
    judge: LLMJudge | str = "",
    purpose: Purpose = "question",
) -> Calibration:
    """Say how far a judge agrees with people.

    Args:
        judged: What the judge said of each pair: verdicts, booleans, integer grades,
            probabilities, or None where it could not be read. Verdicts that have a
            probability count as that.
        labels: What people said of the same pairs: booleans, or integer grades of which those
            above 0 are a yes. How high a grade is counts only beside a judge that grades, too.
        judge: The judge, whose signature the calibration then carries, so that no other can
            use it.
        purpose: What the pairs were judged for.

    Returns:
        The calibration. Of probabilities, with the fitted threshold and cross-validated
        figures.

    Raises:
        InvalidArgumentError: The lists differ in length, are empty, mix probabilities and
            verdicts, or the labels are all yes or all no where a threshold is to be fitted.
        MissingExtraError: scikit-learn is not installed.

    Examples:
        >>> c = calibrate([True, True, False, False], [True, False, False, False])
        >>> c.agreement, c.sensitivity, c.confusion.false_positive
        (0.75, 1.0, 1)
    """
    if purpose not in PURPOSES:
        raise InvalidArgumentError(f"purpose: {short(purpose)}: {near(str(purpose), PURPOSES)}")
    signature = _signature(judge)
    judged, labels = _listed(judged, "judged"), _listed(labels, "labels")
    if len(judged) != len(labels):
        raise InvalidArgumentError(
            f"judged has {len(judged)} and labels {len(labels)}: give one label to each"
        )
    told = [_told(one, place) for place, one in enumerate(judged)]
    said = [_label(one, place) for place, one in enumerate(labels)]
    read = [place for place, one in enumerate(told) if one is not None]
    if not read:
        raise InvalidArgumentError("judged: nothing of it was read: there is nothing to compare")
    values: list[Any] = [told[place] for place in read]
    truth = np.array([said[place] for place in read], dtype=int)
    fractions = [isinstance(value, float) for value in values]
    if any(fractions) and not all(fractions):
        raise InvalidArgumentError(
            f"judged: {short(values[fractions.index(False)])} is a verdict and "
            f"{short(values[fractions.index(True)])} a probability: give either"
        )
    unread = len(told) - len(read)
    if not any(fractions):
        if all(_is_verdict(judged[place]) for place in read):
            truth = truth > 0  # a yes can't be nearer to a grade of 2 than to one of 1
        return _calibration(signature, purpose, unread, np.array(values, dtype=int), truth)
    probabilities, yes = np.array(values, dtype=float), truth > 0
    if yes.all() or not yes.any():
        kind = "yes" if yes.all() else "no"
        raise InvalidArgumentError(f"labels: all are {kind}: a threshold needs pairs of both kinds")
    threshold = fit_threshold(probabilities, yes)
    if not isinstance(judge, str):
        signature = judge.with_threshold(threshold).signature
    metrics = load("sklearn.metrics", "calibrate()", "calibrate")
    held_out = cross_validated(probabilities, yes)
    fitted = confusion_of(probabilities >= threshold, yes)
    sensitivity, specificity = _unflattered(fitted, confusion_of(held_out, yes))
    found = _calibration(
        signature,
        purpose,
        unread,
        held_out.astype(int),
        yes,
        auc=float(metrics.roc_auc_score(yes, probabilities)),
        threshold=threshold,
        threshold_interval=threshold_interval(probabilities, yes),
        curve=_curve(probabilities, yes),
    )
    return replace(found, sensitivity=sensitivity, specificity=specificity)


def _unflattered(fitted: Confusion, held_out: Confusion) -> tuple[float, float]:
    """Give sensitivity and specificity of the fitted threshold, less what the fit flatters them.

    Cross-validation cuts at as many thresholds as there are folds: it tells how good fitted
    thresholds are in the mean, but not on which side this one errs, which its own labels do.
    So its own rates, each less half of what they promise beyond the held-out ones.
    """
    rates = [
        one.true_positive / (one.true_positive + one.false_negative) for one in (fitted, held_out)
    ]
    others = [
        one.true_negative / (one.true_negative + one.false_positive) for one in (fitted, held_out)
    ]
    flattery = max(0.0, (rates[0] + others[0] - rates[1] - others[1]) / 2)
    return max(0.0, rates[0] - flattery), max(0.0, others[0] - flattery)


def decided(judged: Sequence[Judged], labels: Sequence[bool | int]) -> list[bool | None]:
    """Give what the judge decided on each pair, as `calibrate` counts it.

    Args:
        judged: As of `calibrate`; of probabilities, each is cut at a threshold that was
            fitted without it.
        labels: As of `calibrate`.

    Returns:
        Yes or no, None where nothing was read.
    """
    told = [_told(one, place) for place, one in enumerate(judged)]
    read = [place for place, one in enumerate(told) if one is not None]
    values = [told[place] for place in read]
    found: list[bool | None] = [None] * len(told)
    if any(isinstance(value, float) for value in values):
        yes = np.array([labels[place] > 0 for place in read], dtype=bool)
        cut = cross_validated(np.array(values, dtype=float), yes)
    else:
        cut = np.array([bool(value) for value in values], dtype=bool)
    for place, one in zip(read, cut, strict=True):
        found[place] = bool(one)
    return found


def confusion_of(found: np.ndarray, yes: np.ndarray) -> Confusion:
    """Count what was found against what is so, both booleans."""
    return Confusion(
        int((found & yes).sum()),
        int((found & ~yes).sum()),
        int((~found & yes).sum()),
        int((~found & ~yes).sum()),
    )


def _calibration(
    judge: str, purpose: Purpose, unread: int, judged: np.ndarray, truth: np.ndarray, **more: Any
) -> Calibration:
    metrics = load("sklearn.metrics", "calibrate()", "calibrate")
    judged, truth = judged.astype(int), truth.astype(int)
    confusion = confusion_of(judged > 0, truth > 0)
    top = int(max(judged.max(), truth.max()))
    one_kind = len(np.union1d(judged, truth)) < 2  # then chance agrees always, and kappa is 0 / 0
    kappa = None
    if not one_kind:
        # Grades that nobody gave keep their place, or the distance over them would be too short.
        between = {"weights": "quadratic", "labels": range(top + 1)} if top > 1 else {}
        kappa = float(metrics.cohen_kappa_score(judged, truth, **between))
    return Calibration(
        judge=judge,
        purpose=purpose,
        n=len(truth),
        unread=unread,
        agreement=float((judged == truth).mean()),
        kappa=kappa,
        sensitivity=_share(confusion.true_positive, confusion.false_negative),
        specificity=_share(confusion.true_negative, confusion.false_positive),
        confusion=confusion,
        **more,
    )


def _curve(probabilities: np.ndarray, yes: np.ndarray) -> tuple[Bin, ...]:
    order = np.argsort(probabilities, kind="stable")
    parts = np.array_split(order, max(1, min(BINS, len(order) // FEWEST_IN_BIN)))
    return tuple(
        Bin(float(probabilities[part].mean()), float(yes[part].mean()), len(part)) for part in parts
    )


def _share(these: int, others: int) -> float | None:
    return these / (these + others) if these + others else None


def _signature(judge: object) -> str:
    given = judge if isinstance(judge, str) else getattr(judge, "signature", None)
    if isinstance(given, str):
        return given
    raise InvalidArgumentError(
        f"judge: {short(judge)} is no judge: give the LLMJudge that judged, or leave it out"
    )


def _listed(given: Any, name: str) -> Any:
    """Check that it is a list, or what has the order of one: an array, a series, a tuple."""
    if isinstance(given, Sequence) or (hasattr(given, "__len__") and hasattr(given, "__array__")):
        return list(given)
    raise InvalidArgumentError(f"{name}: {short(given)} is no list: give one item for each pair")


def _is_verdict(one: object) -> bool:
    return isinstance(one, (bool, np.bool_, Verdict))


def _told(given: object, place: int) -> int | float | None:
    one = given
    if isinstance(given, Verdict):
        one = given.value if given.probability is None else given.probability
    if one is None or type(one).__name__ == "NAType":  # pandas' word for it
        return None
    if isinstance(one, (bool, np.bool_)):
        return int(one)
    if isinstance(one, (int, np.integer)) and 0 <= one <= TOP_GRADE:
        return int(one)
    if isinstance(one, Real) and not isinstance(one, (int, np.integer)) and 0 <= float(one) <= 1:
        return float(one)
    raise InvalidArgumentError(
        f"judged[{place}]: {short(given)} is no verdict, grade or probability: give a Verdict, a "
        f"bool, an integer from 0 to {TOP_GRADE}, or a float from 0 to 1"
    )


def _label(one: object, place: int) -> int:
    # Columns with a gap hold their integers as floats.
    if isinstance(one, (bool, np.bool_)) or (
        isinstance(one, Real) and 0 <= float(one) <= TOP_GRADE and float(one).is_integer()
    ):
        return int(float(one))
    raise InvalidArgumentError(
        f"labels[{place}]: {short(one)} is no label: give True or False, or an integer grade from "
        f"0 to {TOP_GRADE}"
    )
