from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxeval.formulas.precision import average_precision, precision

RANKINGS = st.lists(st.booleans(), max_size=25)
SOME_RANKINGS = st.lists(st.booleans(), min_size=1, max_size=25)
CUTS = st.none() | st.integers(1, 30)


@pytest.mark.parametrize(
    ("relevant", "expected"),
    [
        pytest.param([], 0, id="nothing retrieved"),
        pytest.param([0], 0, id="0/1"),
        pytest.param([1], 1, id="1/1"),
        pytest.param([1, 0, 0, 0], Fraction(1, 4), id="1/4"),
        pytest.param([0, 1, 1, 1, 0, 0, 1, 0], Fraction(1, 2), id="4/8"),
        pytest.param([1] * 7, 1, id="7/7"),
    ],
)
def test_precision_worked_by_hand(relevant: list[int], expected: Fraction) -> None:
    assert precision([bool(value) for value in relevant]) == expected


@given(RANKINGS)
def test_precision_does_not_see_the_order(relevant: list[bool]) -> None:
    assert precision(relevant) == precision(sorted(relevant))


@given(SOME_RANKINGS)
def test_precision_and_its_complement_are_one(relevant: list[bool]) -> None:
    complement = [not value for value in relevant]
    assert precision(relevant) + precision(complement) == pytest.approx(1, abs=1e-15)


@given(SOME_RANKINGS)
def test_precision_agrees_with_the_definition(relevant: list[bool]) -> None:
    good = [rank for rank in range(len(relevant)) if relevant[rank]]
    assert precision(relevant) == float(Fraction(len(good), len(relevant)))


@pytest.mark.parametrize(
    ("relevant", "expected"),
    [
        pytest.param([], 0, id="nothing retrieved"),
        pytest.param([0, 0, 0], 0, id="nothing relevant"),
        pytest.param([1], 1, id="(1/1) / 1"),
        pytest.param([1, 1, 1], 1, id="(1/1 + 2/2 + 3/3) / 3"),
        pytest.param([1, 0, 0, 0], 1, id="(1/1) / 1, the tail costs nothing"),
        pytest.param([0, 1], Fraction(1, 2), id="(1/2) / 1"),
        pytest.param([0, 0, 0, 1], Fraction(1, 4), id="(1/4) / 1"),
        pytest.param([1, 0, 1], Fraction(5, 6), id="(1/1 + 2/3) / 2"),
        pytest.param([0, 1, 1], Fraction(7, 12), id="(1/2 + 2/3) / 2"),
        pytest.param([1, 0, 0, 1, 0, 1], Fraction(2, 3), id="(1/1 + 2/4 + 3/6) / 3"),
        pytest.param([0, 1] * 5, Fraction(1, 2), id="(1/2 + 2/4 + 3/6 + 4/8 + 5/10) / 5"),
    ],
)
def test_average_precision_worked_by_hand(relevant: list[int], expected: Fraction) -> None:
    value = average_precision([bool(value) for value in relevant])
    assert value == pytest.approx(float(expected), abs=1e-15)


@pytest.mark.parametrize(
    ("relevant", "k", "expected_items", "expected"),
    [
        pytest.param([1, 0, 1, 1], 2, 4, Fraction(1, 4), id="k=2, N=4: (1/1) / 4"),
        pytest.param([1, 0, 1, 1], 3, 4, Fraction(5, 12), id="k=3, N=4: (1/1 + 2/3) / 4"),
        pytest.param([1, 1, 0], 9, 2, 1, id="k beyond the end: (1/1 + 2/2) / 2"),
        pytest.param([0, 1], None, 5, Fraction(1, 10), id="N=5: (1/2) / 5"),
        pytest.param([0, 0, 1], 2, 1, 0, id="k=2: the only one stands third"),
        pytest.param([0, 1, 1], 2, None, Fraction(1, 4), id="k=2, best is 1 1: (1/2) / 2"),
        pytest.param([0, 1, 0, 0], 2, None, Fraction(1, 2), id="k=2, best is 1 0: (1/2) / 1"),
        pytest.param([0, 0, 1], 2, None, 0, id="k=2, best is 1 0: 0 / 1"),
        pytest.param([1, 1, 1], 2, None, 1, id="k=2, best is 1 1: (1/1 + 2/2) / 2"),
    ],
)
def test_average_precision_with_options_worked_by_hand(
    relevant: list[int], k: int | None, expected_items: int | None, expected: Fraction
) -> None:
    flags = [bool(value) for value in relevant]
    value = average_precision(flags, k, expected=expected_items)
    assert value == pytest.approx(float(expected), abs=1e-15)


def definition(relevant: list[bool], k: int | None, expected: int | None) -> Fraction:
    """The definition read aloud: precision at each relevant rank, over what the best order has."""
    cut = len(relevant) if k is None else min(k, len(relevant))
    ranks = [rank for rank in range(1, cut + 1) if relevant[rank - 1]]
    precisions = [Fraction(sum(1 for r in ranks if r <= rank), rank) for rank in ranks]
    if expected is None:
        best = sorted(relevant, reverse=True)[:cut]
        expected = max(best.count(True), 1)
    return sum(precisions, Fraction(0)) / expected


@given(RANKINGS, CUTS, st.integers(0, 20) | st.none())
def test_average_precision_agrees_with_the_definition(
    relevant: list[bool], k: int | None, missed: int | None
) -> None:
    expected = None if missed is None else max(sum(relevant) + missed, 1)
    value = average_precision(relevant, k, expected=expected)
    assert value == pytest.approx(float(definition(relevant, k, expected)), abs=1e-13)


@given(RANKINGS, CUTS)
def test_average_precision_is_one_exactly_when_nothing_irrelevant_comes_first(
    relevant: list[bool], k: int | None
) -> None:
    first = relevant[:k]
    best_order = any(first) and first == sorted(first, reverse=True)
    assert (average_precision(relevant, k) == 1) == (
        best_order and sum(first) == min(sum(relevant), len(first))
    )


@given(RANKINGS, CUTS)
def test_best_first_is_never_worse(relevant: list[bool], k: int | None) -> None:
    best = sorted(relevant, reverse=True)
    assert average_precision(relevant, k) <= average_precision(best, k)


@given(RANKINGS)
def test_an_irrelevant_tail_costs_nothing(relevant: list[bool]) -> None:
    assert average_precision([*relevant, False]) == average_precision(relevant)


@given(RANKINGS, st.integers(1, 20))
def test_each_missed_item_costs(relevant: list[bool], missed: int) -> None:
    found = max(sum(relevant), 1)
    complete = average_precision(relevant, expected=found)
    incomplete = average_precision(relevant, expected=found + missed)
    assert incomplete < complete or complete == 0


@given(RANKINGS)
def test_a_head_of_irrelevant_chunks_costs(relevant: list[bool]) -> None:
    assert average_precision([False, *relevant]) < average_precision(relevant) or not any(relevant)
