from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxeval.formulas.ranking import hit_rate, ndcg, precision_at_k, reciprocal_rank

RANKINGS = st.lists(st.booleans(), max_size=25)
GAINS = st.lists(st.integers(0, 5), max_size=15)
CUTS = st.none() | st.integers(1, 30)


@pytest.mark.parametrize(
    ("relevant", "k", "expected"),
    [
        pytest.param([], None, 0.0, id="nothing retrieved"),
        pytest.param([0, 0], None, 0.0, id="nothing relevant"),
        pytest.param([0, 0, 1], None, 1.0, id="third of all"),
        pytest.param([0, 0, 1], 2, 0.0, id="third, but two count"),
        pytest.param([0, 0, 1], 3, 1.0, id="third, and three count"),
        pytest.param([1], 10, 1.0, id="fewer than k"),
    ],
)
def test_hit_rate_worked_by_hand(relevant: list[int], k: int | None, expected: float) -> None:
    assert hit_rate([bool(value) for value in relevant], k) == expected


@pytest.mark.parametrize(
    ("relevant", "k", "expected"),
    [
        pytest.param([], None, 0, id="nothing retrieved"),
        pytest.param([0, 0, 0], None, 0, id="nothing relevant"),
        pytest.param([1, 1], None, 1, id="1/1"),
        pytest.param([0, 0, 1, 1], None, Fraction(1, 3), id="1/3"),
        pytest.param([0, 0, 1], 2, 0, id="third, but two count"),
        pytest.param([0, 0, 1], 3, Fraction(1, 3), id="third, and three count"),
        pytest.param([0] * 48 + [1], None, Fraction(1, 49), id="1/49"),
    ],
)
def test_reciprocal_rank_worked_by_hand(
    relevant: list[int], k: int | None, expected: Fraction
) -> None:
    assert reciprocal_rank([bool(value) for value in relevant], k) == float(expected)


@pytest.mark.parametrize(
    ("relevant", "k", "expected"),
    [
        pytest.param([], 5, 0, id="0/5"),
        pytest.param([1], 5, Fraction(1, 5), id="1/5, four places empty"),
        pytest.param([1, 0, 1], 2, Fraction(1, 2), id="1/2"),
        pytest.param([1, 0, 1], 3, Fraction(2, 3), id="2/3"),
        pytest.param([1, 1, 1], 3, 1, id="3/3"),
        pytest.param([0, 1, 1], 1, 0, id="0/1"),
    ],
)
def test_precision_at_k_worked_by_hand(relevant: list[int], k: int, expected: Fraction) -> None:
    assert precision_at_k([bool(value) for value in relevant], k) == float(expected)


# 1 / log2(rank + 1) is 1 at rank 1, 1/2 at rank 3, 1/3 at rank 7 and 1/4 at rank 15.
@pytest.mark.parametrize(
    ("gains", "k", "expected_gains", "expected"),
    [
        pytest.param([], None, [1], 0, id="nothing retrieved"),
        pytest.param([0, 0], None, [1], 0, id="nothing relevant"),
        pytest.param([3], None, [3], 1, id="3 / 3"),
        pytest.param([0, 0, 1], None, [1], Fraction(1, 2), id="(1/2) / 1"),
        pytest.param([0] * 6 + [5], None, [5], Fraction(1, 3), id="(5 * 1/3) / 5"),
        pytest.param(
            [1, 0, 2], 1, [1, 2], Fraction(1, 2), id="k=1: 1 / 2, the better one is third"
        ),
        pytest.param([1], None, [2], Fraction(1, 2), id="1 / 2, a poor substitute"),
        pytest.param([0, 0, 1], 2, [1], 0, id="third, but two count"),
        pytest.param([1, 0, 0], 1, [1, 1, 1], 1, id="k=1: 1 / 1, of three expected"),
        pytest.param([0, 0, 2, 0], None, None, Fraction(1, 2), id="(2 * 1/2) / 2, of retrieved"),
        pytest.param([2, 1, 0], None, None, 1, id="best order of the retrieved"),
        pytest.param([0, 1], 1, None, 0, id="k=1: 0 / 1"),
    ],
)
def test_ndcg_worked_by_hand(
    gains: list[int], k: int | None, expected_gains: list[int] | None, expected: Fraction
) -> None:
    value = ndcg(gains, k, expected=expected_gains)
    assert value == pytest.approx(float(expected), abs=1e-15)


def test_ndcg_of_the_paper_s_kind_of_example() -> None:
    """Grades 3 2 3 0 1 2 against the best order 3 3 2 2 1 0, by pocket calculator.

    DCG  = 3 + 2/1.584963 + 3/2 + 0 + 1/2.584963 + 2/2.807355 = 6.861127
    IDCG = 3 + 3/1.584963 + 2/2 + 2/2.321928 + 1/2.584963     = 7.140995
    """
    assert ndcg([3, 2, 3, 0, 1, 2]) == pytest.approx(6.861127 / 7.140995, abs=1e-6)


@given(RANKINGS, CUTS)
def test_hit_rate_is_whether_there_is_a_reciprocal_rank(
    relevant: list[bool], k: int | None
) -> None:
    assert hit_rate(relevant, k) == math.ceil(reciprocal_rank(relevant, k))


@given(RANKINGS, CUTS)
def test_reciprocal_rank_agrees_with_the_definition(relevant: list[bool], k: int | None) -> None:
    limit = math.inf if k is None else k
    ranks = {rank for rank, value in enumerate(relevant, start=1) if value and rank <= limit}
    assert reciprocal_rank(relevant, k) == (float(Fraction(1, min(ranks))) if ranks else 0)


@given(RANKINGS, st.integers(1, 30))
def test_precision_at_k_agrees_with_the_definition(relevant: list[bool], k: int) -> None:
    places = [relevant[place] if place < len(relevant) else False for place in range(k)]
    assert precision_at_k(relevant, k) == float(Fraction(places.count(True), k))


def dcg(gains: list[int], k: int | None) -> float:
    """The definition read aloud, rank by rank, added up without rounding in between."""
    return math.fsum(
        gain / math.log2(1 + rank)
        for rank, gain in zip(range(1, len(gains) + 1), gains, strict=True)
        if k is None or rank <= k
    )


@given(GAINS, CUTS, st.lists(st.integers(1, 5), max_size=8))
def test_ndcg_agrees_with_the_definition(
    gains: list[int], k: int | None, missed: list[int]
) -> None:
    expected = [gain for gain in gains if gain] + missed
    value = ndcg(gains, k, expected=expected)
    best = dcg(sorted(expected, key=lambda gain: -gain), k)
    assert value == pytest.approx(dcg(gains, k) / best if best else 0, abs=1e-12)
    assert 0 <= value <= 1


@given(GAINS, CUTS)
def test_ndcg_of_the_retrieved_agrees_with_the_definition(gains: list[int], k: int | None) -> None:
    best = dcg(sorted(gains, key=lambda gain: -gain), k)
    assert ndcg(gains, k) == pytest.approx(dcg(gains, k) / best if best else 0, abs=1e-12)


@given(GAINS, CUTS)
def test_ndcg_of_the_best_order_is_exactly_one(gains: list[int], k: int | None) -> None:
    best = sorted(gains, reverse=True)
    assert ndcg(best, k) == (1 if any(gains) else 0)
    assert ndcg(best, k, expected=gains[::-1]) == (1 if any(gains) else 0)


@given(GAINS, CUTS, st.integers(2, 7))
def test_ndcg_does_not_see_the_scale_of_the_grades(
    gains: list[int], k: int | None, factor: int
) -> None:
    scaled = [gain * factor for gain in gains]
    assert ndcg(scaled, k) == pytest.approx(ndcg(gains, k), abs=1e-12)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=15), st.data())
def test_ndcg_rises_when_a_better_chunk_moves_up(gains: list[int], data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, len(gains) - 2))
    upper, lower = sorted(gains[rank : rank + 2])
    worse = [*gains[:rank], upper, lower, *gains[rank + 2 :]]
    better = [*gains[:rank], lower, upper, *gains[rank + 2 :]]
    assert ndcg(worse) < ndcg(better) or upper == lower


@given(RANKINGS, CUTS)
def test_an_irrelevant_tail_changes_no_rank_metric(relevant: list[bool], k: int | None) -> None:
    longer = [*relevant, False]
    assert hit_rate(longer, k) == hit_rate(relevant, k)
    assert reciprocal_rank(longer, k) == reciprocal_rank(relevant, k)
    assert precision_at_k(longer, k or 5) == precision_at_k(relevant, k or 5)
    assert ndcg([int(v) for v in longer], k) == ndcg([int(v) for v in relevant], k)
