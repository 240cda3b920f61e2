"""The expected value: by pencil, by law, and against a slow twin."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxeval.formulas.expected import expected_value
from ctxeval.formulas.precision import average_precision, precision

LIKELY = st.lists(st.integers(0, 8).map(lambda n: n / 8), min_size=1, max_size=7)


@pytest.mark.parametrize(
    ("formula", "probabilities", "expected"),
    [
        pytest.param(precision, [0.5], 0.5, id="one chunk"),
        pytest.param(precision, [0.25, 0.75], 0.5, id="the mean of the probabilities"),
        pytest.param(average_precision, [1.0, 0.0], 1.0, id="certain"),
        # 1/4 each: none 0, second only 1/2, first only 1, both 1.
        pytest.param(average_precision, [0.5, 0.5], 0.625, id="(0 + 1/2 + 1 + 1) / 4"),
    ],
)
def test_worked_by_hand(formula, probabilities, expected):
    assert expected_value(formula, probabilities) == expected


@given(LIKELY)
def test_agrees_with_the_definition(probabilities):
    exact = [Fraction(p) for p in probabilities]
    total = Fraction(0)
    for way in product((0, 1), repeat=len(exact)):
        weight = Fraction(1)
        for p, yes in zip(exact, way, strict=True):
            weight *= p if yes else 1 - p
        hits = [sum(way[: k + 1]) for k in range(len(way))]
        gained = sum((Fraction(hits[k], k + 1) for k in range(len(way)) if way[k]), Fraction(0))
        total += weight * (gained / sum(way) if any(way) else 0)
    assert expected_value(average_precision, probabilities) == pytest.approx(float(total))


@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_what_is_certain_is_the_formula_itself(verdicts):
    expected = expected_value(average_precision, [float(verdict) for verdict in verdicts])
    assert expected == pytest.approx(average_precision(verdicts))


def test_many_verdicts_are_drawn_and_always_the_same():
    probabilities = [n / 40 for n in range(40)]
    drawn = expected_value(precision, probabilities)
    assert drawn == pytest.approx(sum(probabilities) / 40, abs=0.01)
    assert drawn == expected_value(precision, probabilities)
