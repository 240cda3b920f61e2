from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxeval.formulas.recall import recall

COVERED = st.lists(st.booleans(), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("covered", "expected"),
    [
        pytest.param([1], 1, id="1/1"),
        pytest.param([0], 0, id="0/1"),
        pytest.param([1, 0, 0, 0], Fraction(1, 4), id="1/4"),
        pytest.param([0, 1, 1], Fraction(2, 3), id="2/3"),
        pytest.param([1] * 3, 1, id="3/3"),
        pytest.param([1] * 49, 1, id="49/49"),
    ],
)
def test_worked_by_hand(covered: list[int], expected: Fraction) -> None:
    assert recall([bool(value) for value in covered]) == float(expected)


def test_nothing_expected_has_no_recall() -> None:
    with pytest.raises(ZeroDivisionError):
        recall([])


@given(COVERED)
def test_agrees_with_the_definition(covered: list[bool]) -> None:
    missed = sum(Fraction(1, len(covered)) for unit in covered if not unit)
    assert recall(covered) == float(1 - missed)


@given(COVERED)
def test_does_not_see_the_order(covered: list[bool]) -> None:
    assert recall(covered) == recall(covered[::-1])


@given(COVERED, st.data())
def test_one_more_covered_unit_raises_it(covered: list[bool], data: st.DataObject) -> None:
    unit = data.draw(st.integers(0, len(covered) - 1))
    more = [*covered[:unit], True, *covered[unit + 1 :]]
    assert recall(more) > recall(covered) or covered[unit]


@given(COVERED)
def test_is_one_exactly_when_all_are_covered(covered: list[bool]) -> None:
    assert (recall(covered) == 1) == all(covered)
    assert (recall(covered) == 0) == (not any(covered))
