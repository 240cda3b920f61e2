"""What a mean of scores is worth: intervals by scipy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxeval.errors import InvalidArgumentError, MissingExtraError

RESAMPLES = 2000
SEED = 20240229
FEW = 10
"""Below so many values an interval is more a warning than a measure."""


class Interval(NamedTuple):
    """A mean with its interval.

    Attributes:
        mean: The mean.
        low: The interval's lower end; None where it can't be estimated.
        high: Its upper end; likewise.
        method: "BCa", "Wilson" or "not estimable".
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


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Give the mean of independent scores with its confidence interval.

    The interval is the bias-corrected and accelerated bootstrap's (2000 resamples, with
    a fixed seed), which holds up best for scores that crowd at 1; Wilson's where all values
    are 0 or 1. Where all values are one and the same other number, or there is but one, no
    interval can be estimated, and none is given: a width of 0 would be a lie.

    Args:
        values: The scores, at least one.
        confidence: How often such intervals should hold the true mean, in (0, 1).

    Raises:
        InvalidArgumentError: There are no values.
        MissingExtraError: scipy is not installed.

    Source:
        Efron, 1987 (BCa); Wilson, 1927.

    Examples:
        >>> mean_interval([0.25, 0.25]).method
        'not estimable'
    """
    try:
        import numpy as np
        from scipy import stats
    except ModuleNotFoundError as error:
        if error.name != "scipy":
            raise
        raise MissingExtraError("an interval", "scipy", "stats") from error
    n = len(values)
    if n == 0:
        raise InvalidArgumentError("values: the list is empty: a mean needs at least one score")
    mean = sum(values) / n
    if set(values) <= {0.0, 1.0}:
        wilson = stats.binomtest(int(sum(values)), n).proportion_ci(confidence, method="wilson")
        return Interval(mean, float(wilson.low), float(wilson.high), "Wilson", n)
    if len(set(values)) == 1:
        return Interval(mean, None, None, "not estimable", n)
    bca = stats.bootstrap(
        (list(values),),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=confidence,
        method="BCa",
        rng=SEED,
    ).confidence_interval
    return Interval(mean, float(bca.low), float(bca.high), "BCa", n)
