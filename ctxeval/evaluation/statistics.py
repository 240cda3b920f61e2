"""What means and differences of scores are worth: intervals and tests by scipy."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from ctxeval.calibration.confidence import check_confidence
from ctxeval.errors import InvalidArgumentError
from ctxeval.extras import load

RESAMPLES = 2000
FLIPS = 10_000
EXACT = 14
"""Up to so many pairs that differ, all sign flips are tried."""

SEED = 20240229
LARGE = 5000
"""Above so many values the central limit theorem serves: resampling them would cost gigabytes
to move the interval's ends by a ten-thousandth."""

FEWEST_PAIRS = 6
"""Of fewer pairs not even the same sign in all of them is significant: 2 / 2**5 > 0.05."""

FEW = 10
"""Below so many values an interval is more a warning than a measure."""


class Interval(NamedTuple):
    """A mean with its interval.

    Attributes:
        mean: The mean.
        low: The interval's lower end; None where it can't be estimated.
        high: Its upper end; likewise.
        method: "BCa", "Wilson", "normal" (above 5000 values), the same "of clusters", or
            "not estimable".
        n: How many values it rests on.
    """

    mean: float
    low: float | None
    high: float | None
    method: str
    n: int

    @property
    def few(self) -> bool:
        """Does it rest on so few values that the interval itself is doubtful?"""
        return self.n < FEW


def mean_interval(
    values: Sequence[float],
    confidence: float = 0.95,
    *,
    clusters: Sequence[object] | None = None,
) -> Interval:
    """Give the mean of scores with its confidence interval.

    The interval is the bias-corrected and accelerated bootstrap's (2000 resamples, with
    a fixed seed), which holds up best for scores that crowd at 1; Wilson's where all values
    are 0 or 1; the normal one above 5000 values. Where all values are one and the same
    other number, or there is but one, no interval can be estimated, and none is given: a
    width of 0 would be a lie.

    Args:
        values: The scores, at least one.
        confidence: How often such intervals should hold the true mean, in (0, 1).
        clusters: What names the group of each value, where those of a group depend on
            each other: whole groups are resampled then.

    Raises:
        InvalidArgumentError: There are no values, or not as many clusters, or the confidence
            is none.
        MissingExtraError: scipy is not installed.

    Source:
        Efron, 1987 (BCa); Wilson, 1927.

    Examples:
        >>> mean_interval([0.25, 0.25]).method
        'not estimable'
    """
    check_confidence(confidence)
    stats = load("scipy.stats", "an interval", "stats")
    n = len(values)
    if n == 0:
        raise InvalidArgumentError("values: the list is empty: a mean needs at least one score")
    mean = sum(values) / n
    if clusters is not None:
        return _cluster_interval(values, clusters, confidence)
    if set(values) <= {0.0, 1.0}:
        wilson = stats.binomtest(int(sum(values)), n).proportion_ci(confidence, method="wilson")
        return Interval(mean, float(wilson.low), float(wilson.high), "Wilson", n)
    return _bootstrap(values, confidence)


def _normal(mean: float, error: float, confidence: float, method: str, n: int) -> Interval:
    half = float(load("scipy.stats", "an interval", "stats").norm.ppf(0.5 + confidence / 2)) * error
    return Interval(mean, mean - half, mean + half, method, n)


def _bootstrap(values: Sequence[float], confidence: float) -> Interval:
    """Give the BCa interval of a mean."""
    stats = load("scipy.stats", "an interval", "stats")
    n = len(values)
    mean = sum(values) / n
    if max(values) - min(values) < 1e-12:  # equal but for rounding
        return Interval(mean, None, None, "not estimable", n)
    if n > LARGE:
        return _normal(mean, float(np.std(values, ddof=1)) / sqrt(n), confidence, "normal", n)
    bca = stats.bootstrap(
        (list(values),),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=confidence,
        method="BCa",
        rng=SEED,
    ).confidence_interval
    return Interval(mean, float(bca.low), float(bca.high), "BCa", n)


def _cluster_interval(
    values: Sequence[float], clusters: Sequence[object], confidence: float
) -> Interval:
    stats = load("scipy.stats", "an interval", "stats")
    if len(clusters) != len(values):
        raise InvalidArgumentError(
            f"clusters: {len(clusters)} for {len(values)} values: give each one"
        )
    groups: dict[Hashable, list[float]] = {}
    for value, name in zip(values, clusters, strict=True):
        groups.setdefault(str(name), []).append(value)
    sums = np.array([sum(group) for group in groups.values()])
    sizes = np.array([len(group) for group in groups.values()])
    mean = float(sums.sum() / sizes.sum())
    if len(groups) > LARGE:
        residuals = sums - mean * sizes
        spread = float(np.std(residuals, ddof=1)) * sqrt(len(groups)) / float(sizes.sum())
        return _normal(mean, spread, confidence, "normal, of clusters", len(values))
    if len(groups) < 2 or float(np.ptp(sums / sizes)) < 1e-12:
        return Interval(mean, None, None, "not estimable", len(values))
    bca = stats.bootstrap(
        (sums, sizes),
        lambda s, n, axis=-1: s.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=confidence,
        method="BCa",
        rng=SEED,
    ).confidence_interval
    return Interval(mean, float(bca.low), float(bca.high), "BCa of clusters", len(values))


class Difference(NamedTuple):
    """A mean difference of pairs.

    Attributes:
        interval: The mean difference with its interval.
        p: The two-sided p-value of the sign-flip test: how often a difference at least as
            great comes about if the two are alike.
        detectable: The smallest mean difference that so many pairs, differing as these do,
            would show in 8 of 10 cases at the 5 % level; None where that is not estimable.
        not_estimable: Why it is not; "" where it is.
    """

    interval: Interval
    p: float
    detectable: float | None
    not_estimable: str = ""


def paired_difference(differences: Sequence[float], confidence: float = 0.95) -> Difference:
    """Test whether differences of pairs are more than chance.

    Args:
        differences: Candidate minus baseline, one per pair, at least one.
        confidence: As of `mean_interval`.

    Raises:
        InvalidArgumentError: There are no differences, or the confidence is none.
        MissingExtraError: scipy is not installed.

    Source:
        Fisher's randomisation: all sign flips where at most 14 pairs differ, else 10,000
        random ones with p = (b + 1) / (B + 1), and their normal limit above 5000 pairs that
        differ. Smucker, Allan and Carterette, 2007.
    """
    check_confidence(confidence)
    stats = load("scipy.stats", "a comparison", "stats")
    if not differences:
        raise InvalidArgumentError("differences: the list is empty: no sample is in both runs")
    interval = _bootstrap(differences, confidence)
    changed = [difference for difference in differences if difference != 0]
    p = _sign_flip_p(changed) if changed else 1.0
    n = len(differences)
    if n < FEWEST_PAIRS:
        why = f"of fewer than {FEWEST_PAIRS} pairs no difference is significant at the 5 % level"
    elif not changed:
        why = "no pair differs"
    elif interval.low is None:
        why = "all pairs differ by the same"
    else:
        spread = float(np.std(differences, ddof=1))
        needed = float(stats.norm.ppf(0.975) + stats.norm.ppf(0.8))
        return Difference(interval, p, needed * spread / sqrt(n))
    return Difference(interval, p, None, why)


def _sign_flip_p(changed: Sequence[float]) -> float:
    """Give the two-sided p-value of the pairs that differ."""
    stats = load("scipy.stats", "a comparison", "stats")
    if len(changed) == 1:  # either sign is as good
        return 1.0
    if len(changed) > LARGE:  # the sum of so many random signs is normal
        ratio = abs(sum(changed)) / sqrt(sum(difference**2 for difference in changed))
        return float(2 * stats.norm.sf(ratio))
    exact = 2 ** len(changed) if len(changed) <= EXACT else 0
    return float(
        stats.permutation_test(
            (changed,),
            np.sum,
            permutation_type="samples",
            alternative="two-sided",
            n_resamples=max(FLIPS, exact),
            batch=1000,  # all at once would take half a gigabyte, and five times as long
            rng=SEED,
        ).pvalue
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for testing several metrics at once.

    Args:
        p_values: One per metric.

    Returns:
        The adjusted ones, in the same order.

    Source:
        Holm, 1979.

    Examples:
        >>> holm([0.25, 0.125])
        [0.25, 0.25]
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted
