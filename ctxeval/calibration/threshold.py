"""The probability from which on a yes is a yes, fitted to labels."""

from __future__ import annotations

import numpy as np

from ctxeval.extras import load

FOLDS = 5
RESAMPLES = 1000
SEED = 20240229


def fit_threshold(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Find the threshold with the best balanced accuracy.

    Args:
        probabilities: What the judge told, in [0, 1].
        labels: What people said, as booleans; both occur.

    Returns:
        The middle of the widest range of thresholds that do best, which is a threshold that
        no probability stands on.
    """
    points = np.unique(probabilities)
    # A threshold stands below all points, between two, or above all but 1.
    lows = np.concatenate(([0.0], points if points[-1] < 1 else points[:-1]))
    highs = np.append(points, 1.0)[: len(lows)]
    yes, no = np.sort(probabilities[labels]), np.sort(probabilities[~labels])
    above_all = np.arange(len(lows)) == len(points)
    found = np.where(above_all, 0, 1 - np.searchsorted(yes, highs) / len(yes))
    spared = np.where(above_all, 1, np.searchsorted(no, highs) / len(no))
    accuracy = found + spared
    best = np.flatnonzero(accuracy >= accuracy.max() - 1e-12)
    widest = best[np.argmax((highs - lows)[best])]
    return float((lows[widest] + highs[widest]) / 2)


def cross_validated(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Judge each label with a threshold that was fitted without it.

    With fewer than two labels of a kind, with the threshold of all.
    """
    fewest = int(min(labels.sum(), (~labels).sum()))
    if fewest < 2:
        return probabilities >= fit_threshold(probabilities, labels)
    selection = load("sklearn.model_selection", "calibrate()", "calibrate")
    folds = selection.StratifiedKFold(min(FOLDS, fewest), shuffle=True, random_state=SEED)
    judged = np.zeros(len(labels), dtype=bool)
    for fitted, held_out in folds.split(probabilities.reshape(-1, 1), labels):
        threshold = fit_threshold(probabilities[fitted], labels[fitted])
        judged[held_out] = probabilities[held_out] >= threshold
    return judged


def threshold_interval(probabilities: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Give the 95 % interval of the fitted threshold, by resampling yeses and noes apart."""
    rng = np.random.default_rng(SEED)
    yes, no = probabilities[labels], probabilities[~labels]
    said = np.concatenate((np.ones(len(yes), bool), np.zeros(len(no), bool)))
    fitted = [
        fit_threshold(np.concatenate((rng.choice(yes, len(yes)), rng.choice(no, len(no)))), said)
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(fitted, (2.5, 97.5))
    return float(low), float(high)
