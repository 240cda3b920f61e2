"""A mean, corrected for the errors of the judge behind it.

Two ways. A share of verdicts is corrected by the judge's sensitivity and specificity, as far as
these are known. Any mean is corrected by the samples of which people's value is known too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from ctxeval.calibration.calibration import Calibration
from ctxeval.calibration.confidence import check_confidence
from ctxeval.errors import InvalidArgumentError
from ctxeval.extras import load

DRAWS = 20_000
SEED = 20240229

FEWEST = 2
"""Of fewer samples no spread can be told."""


class Corrected(NamedTuple):
    """A corrected mean with its interval.

    Attributes:
        mean: The corrected mean, in [0, 1]; None where it can't be estimated.
        low: The interval's lower end; None where it can't be estimated.
        high: Its upper end; likewise.
        method: "Rogan–Gladen", "prediction-powered", or "not estimable".
        uncorrected: The mean of what the judge said.
        n: How many samples it rests on.
        labelled: How many labels it rests on.
        note: Why it can't be estimated, and what else a reader should know; "" for nothing.
    """

    mean: float | None
    low: float | None
    high: float | None
    method: str
    uncorrected: float
    n: int
    labelled: int
    note: str = ""

    def __str__(self) -> str:
        """Write it as one line."""
        said = f"{self.uncorrected:.3f} as judged"
        if self.mean is not None:
            said = f"{self.mean:.3f}, {said}"
        if self.low is not None and self.high is not None:
            said = said.replace(",", f" ({self.low:.3f}–{self.high:.3f}),", 1)
        told = f"{said}; {self.method}, {self.n} samples, {self.labelled} labels"
        return f"{told}; {self.note}" if self.note else told


def corrected_share(
    values: Sequence[float],
    calibration: Calibration,
    confidence: float = 0.95,
    *,
    judged: Sequence[float] | None = None,
) -> Corrected:
    r"""Correct the mean of shares of verdicts by the judge's sensitivity and specificity.

    .. math:: \frac{m - j (1 - s)}{q + s - 1}

    where m is the mean, q the sensitivity, s the specificity, and j the share of the verdicts
    that the judge gave: a blank chunk and an empty retrieval are a no without any error.

    Its interval carries what is not known of all three: the mean (by its standard error over
    samples), and the two rates (Beta distributions after Jeffreys' prior), drawn 20,000 times
    from a fixed seed.

    Args:
        values: Each sample's share of yeses, in [0, 1].
        calibration: How the judge did on labelled pairs.
        confidence: How often such intervals should hold the true mean, in (0, 1).
        judged: Of each sample, the share of its verdicts that the judge gave; None: all.

    Source:
        Rogan and Gladen, 1978.
    """
    check_confidence(confidence)
    mean, n = _mean(values)
    asked = np.ones(n) if judged is None else np.asarray(judged, dtype=float)
    yes, wrong, missed, no = calibration.confusion

    def unknown(note: str) -> Corrected:
        return Corrected(None, None, None, "not estimable", mean, n, calibration.n, note)

    if calibration.sensitivity is None or calibration.specificity is None:
        return unknown("the labels are all yes or all no: label pairs of both kinds")
    gain = calibration.sensitivity + calibration.specificity - 1
    if gain <= 0:
        return unknown("the judge does no better than chance on the labels")
    if n < FEWEST:
        return unknown("one sample has no spread")
    rng = np.random.default_rng(SEED)
    sensitivity = _drawn(rng, calibration.sensitivity, yes + missed)
    specificity = _drawn(rng, calibration.specificity, no + wrong)
    noes = asked * (1 - calibration.specificity)
    error = float(np.std(np.asarray(values, dtype=float) - noes, ddof=1)) / sqrt(n)
    means = mean + error * rng.standard_t(n - 1, DRAWS)
    share = float(asked.mean())
    gains = sensitivity + specificity - 1
    tail = (1 - confidence) / 2
    if (gains <= 0).mean() > tail:
        return unknown(f"{calibration.n} labels do not tell the judge from chance: label more")
    wrong_yeses = share * (1 - specificity)
    drawn = np.clip((means - wrong_yeses) / np.where(gains > 0, gains, np.nan), 0, share)
    low, high = np.nanquantile(drawn, (tail, 1 - tail))
    corrected = min(share, max(0.0, (mean - float(noes.mean())) / gain))
    return Corrected(corrected, float(low), float(high), "Rogan–Gladen", mean, n, calibration.n)


def _drawn(rng: np.random.Generator, share: float, n: int) -> np.ndarray:
    return rng.beta(share * n + 0.5, (1 - share) * n + 0.5, DRAWS)


def corrected_mean(
    values: Sequence[float], labelled: Sequence[tuple[float, float]], confidence: float = 0.95
) -> Corrected:
    r"""Correct any mean by the samples that people have labelled too.

    .. math:: \lambda \bar f_{unlabelled} + \overline{(y - \lambda f)}_{labelled}

    with the :math:`\lambda` in [0, 1] that makes the variance least: a judge that says nothing of
    the labels is left out, so that more of its verdicts never make the estimate worse.

    Args:
        values: The judge's value of each sample without a label.
        labelled: The judge's and people's value of each sample with one.
        confidence: How often such intervals should hold the true mean, in (0, 1).

    Source:
        Angelopoulos, Duchi and Zrnic, 2023 (PPI++).
    """
    check_confidence(confidence)
    stats = load("scipy.stats", "a corrected mean", "stats")
    judged = np.array([one for one, _ in labelled], dtype=float)
    truth = np.array([one for _, one in labelled], dtype=float)
    unlabelled = np.asarray(values, dtype=float)
    everything = np.concatenate((unlabelled, judged))
    mean, n = _mean(everything.tolist())
    if len(labelled) < FEWEST:
        note = f"{len(labelled)} labelled samples: two are the least"
        return Corrected(None, None, None, "not estimable", mean, n, len(labelled), note)
    weight = 0.0
    if len(unlabelled) >= FEWEST and (spread := float(np.var(everything, ddof=1))) > 0:
        together = float(np.cov(judged, truth, ddof=1)[0, 1])
        weight = together / (spread * (1 + len(labelled) / len(unlabelled)))
        weight = min(1.0, max(0.0, weight))
    rest = truth - weight * judged
    corrected = float(rest.mean())
    freedom = len(labelled) - (
        2 if weight and len(labelled) > FEWEST else 1
    )  # the weight is fitted
    variance = float(((rest - rest.mean()) ** 2).sum()) / freedom / len(labelled)
    if weight:
        corrected += weight * float(unlabelled.mean())
        variance += weight**2 * float(np.var(unlabelled, ddof=1)) / len(unlabelled)
    if variance == 0:
        note = "all labels say the same: the spread can't be told"
        return Corrected(corrected, None, None, "not estimable", mean, n, len(labelled), note)
    reach = float(stats.t.ppf((1 + confidence) / 2, freedom)) * sqrt(variance)
    low, high = max(0.0, corrected - reach), min(1.0, corrected + reach)
    shown = min(1.0, max(0.0, corrected))
    return Corrected(shown, low, high, "prediction-powered", mean, n, len(labelled))


def _mean(values: Sequence[float]) -> tuple[float, int]:
    if not len(values):
        raise InvalidArgumentError("values: there is none, so there is no mean to correct")
    return float(np.mean(values)), len(values)
