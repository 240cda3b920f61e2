"""The value to expect of a formula whose verdicts are only likely."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import product
from math import fsum, prod

ENUMERATED = 12
"""Up to so many verdicts, every way that they may turn out is counted."""

DRAWN = 4096
"""So many ways are drawn where there are more verdicts."""


def expected_value(
    formula: Callable[[Sequence[bool]], float], probabilities: Sequence[float]
) -> float:
    r"""Average a formula over all ways that independent verdicts may turn out.

    .. math:: \sum_{v \in \{0, 1\}^n} f(v) \prod_i p_i^{v_i} (1 - p_i)^{1 - v_i}

    Args:
        formula: Gives the value of one way.
        probabilities: How likely each verdict is a yes, in [0, 1].

    Returns:
        A number between the least and the greatest value of the formula; of more than 12
        verdicts the mean over 4,096 ways drawn from a fixed seed, whose standard error is
        at most 0.008 for a formula in [0, 1].

    Examples:
        >>> expected_value(lambda verdicts: sum(verdicts) / len(verdicts), [0.5, 1.0])
        0.75
    """
    if len(probabilities) > ENUMERATED:
        rng = random.Random(0)
        ways = ([rng.random() < p for p in probabilities] for _ in range(DRAWN))
        return fsum(formula(way) for way in ways) / DRAWN
    total = []
    for way in product((False, True), repeat=len(probabilities)):
        weight = prod(p if yes else 1 - p for p, yes in zip(probabilities, way, strict=True))
        if weight:
            total.append(weight * formula(way))
    return fsum(total)
