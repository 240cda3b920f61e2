from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxeval import IdJudge, Sample, Verdict
from ctxeval.judges.ids import expected_grades

IDS = st.lists(st.sampled_from("abcdef"), max_size=8)
EXPECTED = IDS | st.dictionaries(st.sampled_from("abcdef"), st.integers(-2, 3))


@pytest.mark.parametrize(
    ("expected", "grades"),
    [
        pytest.param(None, {}, id="nothing known"),
        pytest.param([], {}, id="nothing"),
        pytest.param(["b", "a", "b"], {"b": 1, "a": 1}, id="list: 1 each, repeats once"),
        pytest.param({"a": 2, "b": 0, "c": -1}, {"a": 2}, id="mapping: those above 0"),
    ],
)
def test_expected_grades(expected: object, grades: dict[str, int]) -> None:
    found = expected_grades(Sample(reference_context_ids=expected))
    assert (found, list(found)) == (grades, list(grades))


def test_verdicts_by_hand() -> None:
    sample = Sample(
        retrieved_context_ids=["b", "x", "a", "b"], reference_context_ids={"a": 2, "b": 1, "c": 3}
    )
    verdicts = IdJudge().judge(sample)
    miss = "its id is not expected"
    assert verdicts.chunks == (
        Verdict(True, "b", matched=(1,), grade=1),
        Verdict(False, "x", miss),
        Verdict(True, "a", matched=(0,), grade=2),
        Verdict(True, "b", matched=(1,), grade=1),
    )
    assert verdicts.units == (
        Verdict(True, "a", matched=(2,), grade=2),
        Verdict(True, "b", matched=(0,), grade=1),
        Verdict(False, "c", "no chunk with this id was retrieved", grade=3),
    )
    assert verdicts.covered(1) == [False, True, False]
    assert verdicts.covered(3) == [True, True, False]
    assert verdicts.gains() == [1, 0, 2, 1]
    assert verdicts.distinct() == [0, 1, 2]


@given(IDS, EXPECTED)
def test_agrees_with_sets(retrieved: list[str], expected: list[str] | dict[str, int]) -> None:
    wanted = (
        {name for name, grade in expected.items() if grade > 0}
        if isinstance(expected, dict)
        else set(expected)
    )
    verdicts = IdJudge().judge(
        Sample(retrieved_context_ids=retrieved, reference_context_ids=expected)
    )
    assert [chunk.text for chunk in verdicts.chunks] == retrieved
    assert {chunk.text for chunk in verdicts.chunks if chunk.value} == wanted & set(retrieved)
    assert {unit.text for unit in verdicts.units} == wanted
    for k in range(1, len(retrieved) + 2):
        covered = verdicts.covered(k)
        found = {unit.text for unit, value in zip(verdicts.units, covered, strict=True) if value}
        assert found == wanted & set(retrieved[:k])


def test_ids_are_compared_as_text_and_as_they_are() -> None:
    sample = Sample(
        retrieved_context_ids=[1, "01", "Doc", " a", "é", 2.0, Fraction(1, 2)],
        reference_context_ids=["1", 1.0, "doc", "a", "e\u0301", 2, "1/2"],
    )
    assert IdJudge().judge(sample).relevant() == [True, False, False, False, False, True, True]
