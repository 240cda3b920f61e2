"""Intervals and tests agree with scipy, with the textbook, and with simulation."""

import math
import random
from fractions import Fraction
from itertools import product

import pytest

pytest.importorskip("scipy")

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ctxeval import InvalidArgumentError
from ctxeval.evaluation.statistics import (
    _sign_flip_p,
    holm,
    mean_interval,
    paired_difference,
)


def test_wilson_by_hand():
    # p = 8/10, z = 1.96: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)
    z, p, n = stats.norm.ppf(0.975), 0.8, 10
    middle = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    interval = mean_interval([1.0] * 8 + [0.0] * 2)
    assert interval.method == "Wilson"
    assert interval.low == pytest.approx((middle - half) / (1 + z * z / n))
    assert interval.high == pytest.approx((middle + half) / (1 + z * z / n))


@pytest.mark.parametrize(
    ("values", "method"),
    [
        pytest.param([1.0] * 20, "Wilson", id="all 1: a share, with an honest lower end"),
        pytest.param([0.5] * 20, "not estimable", id="all one other number: no width of 0"),
        pytest.param([0.3], "not estimable", id="one value"),
        pytest.param([0.3, 0.7, 0.5], "BCa", id="several"),
    ],
)
def test_which_method(values, method):
    interval = mean_interval(values)
    assert interval.method == method
    assert interval.mean == pytest.approx(sum(values) / len(values))
    if interval.low is None:
        assert interval.high is None
    else:
        assert interval.low < interval.high
        assert interval.low <= interval.mean <= interval.high


def test_many_values_take_the_normal_limit():
    randomly = random.Random(5)
    values = [randomly.choice((0.0, 0.5, 1.0)) for _ in range(6000)]
    interval = mean_interval(values)
    half = stats.norm.ppf(0.975) * np.std(values, ddof=1) / math.sqrt(6000)
    assert interval.method == "normal"
    assert interval.high - interval.mean == pytest.approx(half)
    small = mean_interval(values[:5000])
    assert small.method == "BCa"
    assert small.high - small.low == pytest.approx(2 * half * math.sqrt(6 / 5), rel=0.05)


def test_many_clusters_of_one_are_no_clusters():
    randomly = random.Random(5)
    values = [randomly.random() for _ in range(6000)]
    alone, together = mean_interval(values), mean_interval(values, clusters=range(6000))
    assert together.method == "normal, of clusters"
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high))


def test_many_pairs_that_differ_take_the_normal_limit():
    differences = [0.5, -0.5] * 3000 + [0.5] * 100
    # 100 × 0.5 over √(6100 × 0.25)
    assert paired_difference(differences).p == pytest.approx(
        2 * stats.norm.sf(50 / math.sqrt(1525))
    )


def test_few_values_are_flagged():
    assert mean_interval([0.1, 0.2] * 4).few
    assert not mean_interval([0.1, 0.2] * 5).few


def test_the_same_values_give_the_same_interval():
    values = [0.1, 0.5, 0.9, 1.0] * 8
    assert mean_interval(values) == mean_interval(values)


def test_clusters_widen_the_interval_where_their_values_agree():
    values = [v for v in (0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.15, 0.95) for _ in range(10)]
    clusters = [n // 10 for n in range(80)]
    alone, together = mean_interval(values), mean_interval(values, clusters=clusters)
    assert together.method == "BCa of clusters"
    assert together.mean == pytest.approx(alone.mean)
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_one_cluster_says_nothing():
    assert mean_interval([0.1, 0.9], clusters=["a", "a"]).method == "not estimable"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_interval([]), "values: the list is empty"),
        (lambda: mean_interval([1, 2], clusters=[1]), "clusters: 1 for 2 values"),
        (lambda: paired_difference([]), "differences: the list is empty"),
    ],
)
def test_nothing_given(call, message):
    with pytest.raises(InvalidArgumentError, match=message):
        call()


def exact_p(differences):
    """Read the definition aloud: over all ways to turn signs around."""
    observed = abs(sum(differences))
    ways = [
        abs(sum(sign * d for sign, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return Fraction(sum(way >= observed - 1e-12 for way in ways), len(ways))


@given(st.lists(st.integers(-8, 8), min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
def test_few_pairs_are_tested_exactly(eighths):
    differences = [n / 8 for n in eighths]
    changed = [d for d in differences if d]
    expected = exact_p(changed) if changed else 1
    assert paired_difference(differences).p == pytest.approx(float(expected))


def test_many_pairs_agree_with_scipy():
    randomly = random.Random(3)
    differences = [randomly.gauss(0.1, 0.4) for _ in range(60)]
    theirs = stats.permutation_test(
        (np.array(differences),),
        np.mean,
        permutation_type="samples",
        n_resamples=20_000,
        rng=7,
    ).pvalue
    assert paired_difference(differences).p == pytest.approx(theirs, abs=0.02)


@pytest.mark.parametrize(
    ("differences", "theirs"),
    [
        pytest.param(
            [-0.2] * 5 + [0] * 5 + [0.05] * 13 + [0.25] * 1 + [0.3] * 6, 0.07047, id="30 pairs"
        ),
        pytest.param(
            [-0.15] * 9 + [0] * 12 + [0.1] * 18 + [0.25] * 5 + [0.35] * 6, 0.00104, id="50 pairs"
        ),
    ],
)
def test_many_pairs_agree_with_ranx(differences, theirs):
    """Its `fisher_randomization_test` of the same pairs, with 100,000 permutations."""
    error = math.sqrt(theirs * (1 - theirs) / 10_000)
    assert paired_difference(differences).p == pytest.approx(theirs, abs=4 * error + 1e-4)


def test_no_difference_at_all():
    found = paired_difference([0.0] * 30)
    assert found.p == 1
    assert found.interval.low is None
    assert found.detectable is None


def test_the_p_value_is_never_0():
    assert paired_difference([0.5] * 40).p >= 1 / 10_001


@pytest.mark.parametrize(
    ("differences", "why"),
    [
        pytest.param([0.1, 0.2, -0.1, 0.3, 0.2], "of fewer than 6 pairs no difference", id="five"),
        pytest.param([0.5], "of fewer than 6 pairs", id="one"),
        pytest.param([0.0] * 9, "no pair differs", id="none differs"),
        pytest.param([0.5] * 9, "all pairs differ by the same", id="all alike"),
    ],
)
def test_where_no_detectable_difference_is_estimable(differences, why):
    found = paired_difference(differences)
    assert found.detectable is None
    assert found.not_estimable.startswith(why)


def test_six_pairs_are_the_fewest_that_can_show_a_difference():
    assert paired_difference([0.1, 0.2, 0.3, 0.1, 0.2]).p > 0.05
    six = paired_difference([0.1, 0.2, 0.3, 0.1, 0.2, 0.3])
    assert six.p < 0.05
    assert six.detectable is not None
    assert six.not_estimable == ""


def test_the_detectable_difference_by_hand():
    differences = [0.5, -0.5] * 32
    spread = np.std(differences, ddof=1)
    needed = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert paired_difference(differences).detectable == pytest.approx(needed * spread / 8)


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        pytest.param([0.01, 0.04, 0.03], [0.03, 0.06, 0.06], id="3×.01, 2×.03, then no less"),
        pytest.param([0.9, 0.8], [1.0, 1.0], id="never above 1"),
        pytest.param([0.02], [0.02], id="one stays"),
        pytest.param([], [], id="none"),
    ],
)
def test_holm_by_hand(p_values, adjusted):
    assert holm(p_values) == pytest.approx(adjusted)


@pytest.mark.slow
def test_bca_covers_near_the_ceiling():
    """At n = 50 with 90 % ones the interval holds the true mean in at least 90 % of cases."""
    randomly = random.Random(11)
    others, runs, n = (0.0, 0.33, 0.5, 0.67), 400, 50
    truth = 0.9 + 0.1 * sum(others) / len(others)
    held = 0
    for _ in range(runs):
        values = [1.0 if randomly.random() < 0.9 else randomly.choice(others) for _ in range(n)]
        interval = mean_interval(values)
        held += interval.low is not None and interval.low <= truth <= interval.high
    assert held / runs >= 0.90


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("n", [20, 50])
def test_the_paired_test_rarely_sees_what_is_not_there(n):
    randomly = random.Random(n)
    runs, alarms = 3000, 0
    for _ in range(runs):
        differences = [
            randomly.choice((-0.5, -0.33, 0.33, 0.5)) if randomly.random() < 0.4 else 0.0
            for _ in range(n)
        ]
        changed = [one for one in differences if one]
        alarms += bool(changed) and _sign_flip_p(changed) <= 0.05
    assert alarms / runs <= 0.055


@pytest.mark.parametrize("confidence", [0, 1, 95, -1, math.nan, "0.9", None])
def test_what_is_no_confidence(confidence):
    for call in (mean_interval, paired_difference):
        for values in ([0, 1, 1], [0.5, 0.25, 1]):
            with pytest.raises(InvalidArgumentError, match=r"confidence: .* give 0\.95"):
                call(values, confidence)
