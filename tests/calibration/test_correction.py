"""Corrected means: by pencil, by their ends, and as often right as they say."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from ctxeval import InvalidArgumentError, calibrate
from ctxeval.calibration import threshold
from ctxeval.calibration.calibration import Calibration, Confusion
from ctxeval.calibration.correction import corrected_mean, corrected_share


def calibration(yes, wrong, missed, no):
    return Calibration(
        judge="j", purpose="question", n=yes + wrong + missed + no, unread=0, agreement=0.0,
        kappa=None, sensitivity=yes / (yes + missed) if yes + missed else None,
        specificity=no / (no + wrong) if no + wrong else None,
        confusion=Confusion(yes, wrong, missed, no),
    )  # fmt: skip


GOOD = calibration(90, 20, 10, 80)


def test_a_share_by_hand():
    # (0.45 + 0.8 - 1) / (0.9 + 0.8 - 1)
    got = corrected_share([0.4, 0.5] * 50, GOOD)
    assert got.mean == pytest.approx(0.25 / 0.7)
    assert got.low < got.mean < got.high
    assert (got.uncorrected, got.n, got.labelled) == (pytest.approx(0.45), 100, 200)


def test_a_judge_without_error_corrects_nothing():
    got = corrected_share([0.0, 0.5, 1.0] * 30, calibration(10_000, 0, 0, 10_000))
    assert got.mean == 0.5
    assert got.low < 0.5 < got.high


def test_fewer_labels_make_a_wider_interval():
    values = [0.4, 0.5] * 500
    widths = [
        (got := corrected_share(values, calibration(9 * n, 2 * n, n, 8 * n))).high - got.low
        for n in (1, 10, 100)
    ]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 3 * widths[2]


def test_what_is_out_of_range_is_drawn_in():
    assert corrected_share([0.05, 0.06, 0.04], GOOD).mean == 0
    assert corrected_share([1.0, 1.0, 0.99], GOOD).mean == 1


@pytest.mark.parametrize(
    ("values", "labels", "note"),
    [
        ([0.5, 0.6], (50, 50, 50, 50), "no better than chance"),
        ([0.5, 0.6], (5, 0, 0, 0), "all yes or all no"),
        ([0.5, 0.6], (3, 2, 2, 3), "do not tell the judge from chance: label more"),
        ([0.5], (90, 20, 10, 80), "one sample has no spread"),
    ],
)
def test_what_cannot_be_estimated_is_told(values, labels, note):
    got = corrected_share(values, calibration(*labels))
    assert (got.mean, got.low, got.high, got.method) == (None, None, None, "not estimable")
    assert note in got.note


def test_a_mean_by_hand():
    # The judge is 0.2 too high on each label, and nothing else differs.
    labelled = [(0.4, 0.2), (0.6, 0.4), (0.8, 0.6), (1.0, 0.8)]
    got = corrected_mean([0.4, 0.6, 0.8, 1.0] * 1000, labelled)
    assert got.mean == pytest.approx(0.5, abs=1e-3)
    assert got.uncorrected == pytest.approx(0.7)
    assert got.low < 0.5 < got.high


def test_a_judge_that_says_nothing_is_left_out():
    rng = np.random.default_rng(3)
    truth, noise = rng.random(50), rng.random(50)
    got = corrected_mean(list(rng.random(5000)), list(zip(noise, truth, strict=True)))
    assert got.mean == pytest.approx(truth.mean(), abs=0.03)


def test_labels_alone_serve_too():
    got = corrected_mean([], [(0.9, 0.5), (0.8, 0.7), (0.7, 0.3)])
    assert got.mean == pytest.approx(0.5)
    assert got.low < 0.5 < got.high


@pytest.mark.parametrize(
    ("labelled", "note"),
    [([(0.5, 0.5)], "1 labelled samples: two are the least"), ([(1, 1), (1, 1)], "all labels say")],
)
def test_what_the_labels_cannot_tell(labelled, note):
    got = corrected_mean([1.0, 1.0, 1.0], labelled)
    assert (got.low, got.high, got.method) == (None, None, "not estimable")
    assert note in got.note


@pytest.mark.parametrize("confidence", [0, 1, 95, float("nan"), "0.9", None])
def test_what_is_no_confidence(confidence):
    with pytest.raises(InvalidArgumentError, match=r"confidence: .* between 0 and 1: give 0\.95"):
        corrected_share([0.5, 0.4], GOOD, confidence)
    with pytest.raises(InvalidArgumentError, match=r"confidence: .* between 0 and 1: give 0\.95"):
        corrected_mean([0.5, 0.4], [(0.5, 0.4), (0.3, 0.2)], confidence)


def test_no_values():
    with pytest.raises(InvalidArgumentError, match="there is none"):
        corrected_share([], GOOD)


@pytest.mark.slow
@pytest.mark.parametrize("prevalence", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("labels", [60, 200])
def test_a_share_is_covered_as_often_as_is_said(prevalence, labels):
    rng = np.random.default_rng(int(prevalence * 10) + labels)
    sensitivity, specificity = 0.85, 0.9
    covered = tried = 0
    for _ in range(600):
        truth = rng.random(labels) < 0.5
        said = np.where(truth, rng.random(labels) < sensitivity, rng.random(labels) >= specificity)
        c = calibration(
            int((said & truth).sum()), int((said & ~truth).sum()),
            int((~said & truth).sum()), int((~said & ~truth).sum()),
        )  # fmt: skip
        relevant = rng.random((200, 5)) < prevalence
        judged = np.where(
            relevant, rng.random((200, 5)) < sensitivity, rng.random((200, 5)) >= specificity
        )
        got = corrected_share(judged.mean(axis=1).tolist(), c)
        tried += got.low is not None
        covered += got.low is not None and got.low <= prevalence <= got.high
    assert tried > 550
    assert covered / tried >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("apart", [1.5, 2.5])
@pytest.mark.parametrize("prevalence", [0.1, 0.4, 0.8])
def test_a_share_is_covered_where_the_threshold_is_fitted_to_the_labels(
    apart, prevalence, monkeypatch
):
    monkeypatch.setattr(threshold, "RESAMPLES", 2)  # its interval is not what counts here
    rng = np.random.default_rng(int(10 * prevalence + apart))

    def told(truth):
        return 1 / (1 + np.exp(1 - apart * truth - rng.normal(0, 1, truth.shape)))

    covered = tried = 0
    for _ in range(500):
        labels = rng.random(120) < 0.5
        c = calibrate(told(labels).tolist(), labels.tolist())
        relevant = rng.random((150, 5)) < prevalence
        got = corrected_share((told(relevant) >= c.threshold).mean(axis=1).tolist(), c)
        tried += got.low is not None
        covered += got.low is not None and got.low <= prevalence <= got.high
    assert tried > 450
    assert covered / tried >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("labels", [20, 100])
def test_a_mean_is_covered_as_often_as_is_said(labels):
    rng = np.random.default_rng(labels)
    covered = 0
    for _ in range(1000):
        truth = rng.beta(2, 1, 1000)
        judged = np.clip(truth + rng.normal(0.1, 0.15, 1000), 0, 1)
        got = corrected_mean(
            judged[labels:].tolist(), list(zip(judged[:labels], truth[:labels], strict=True))
        )
        covered += got.low <= 2 / 3 <= got.high
    assert covered / 1000 >= 0.93
