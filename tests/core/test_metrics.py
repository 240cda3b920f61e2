"""The metrics by hand, their options, and what unread verdicts leave possible."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxeval import (
    NDCG,
    AveragePrecision,
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    HitRate,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    IdJudge,
    InvalidArgumentError,
    LLMJudge,
    Metric,
    NonLLMContextPrecision,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    PrecisionAtK,
    RecallAtK,
    ReciprocalRank,
    Sample,
    TextJudge,
    Verdict,
    Verdicts,
)
from ctxeval.testing import ScriptedLLM


@pytest.mark.parametrize(
    ("metric", "retrieved", "expected_ids", "expected"),
    [
        pytest.param(IDBasedContextPrecision(), "abc", "ad", Fraction(1, 3), id="1 of a b c"),
        pytest.param(IDBasedContextPrecision(), "aab", "a", Fraction(1, 2), id="1 of a b"),
        pytest.param(IDBasedContextRecall(), "abc", "ad", Fraction(1, 2), id="1 of a d"),
        pytest.param(IDBasedContextRecall(), "ab", "aac", Fraction(1, 2), id="1 of a c"),
        pytest.param(HitRate(2), "xyab", "ab", 0, id="first hit third, two count"),
        pytest.param(HitRate(3), "xyab", "ab", 1, id="first hit third, three count"),
        pytest.param(ReciprocalRank(), "xyab", "ab", Fraction(1, 3), id="first hit third"),
        pytest.param(PrecisionAtK(4), "xab", "ab", Fraction(1, 2), id="2 of 4 places"),
        pytest.param(PrecisionAtK(3), "aab", "ab", Fraction(2, 3), id="2 of 3, the repeat misses"),
        pytest.param(RecallAtK(3), "xaab", "ab", Fraction(1, 2), id="a is among three, b not"),
        pytest.param(NDCG(), "xxa", "a", Fraction(1, 2), id="(1 / log2 4) / 1"),
        pytest.param(NDCG(), "aaa", "a", 1, id="1 / 1, repeats gain nothing"),
        pytest.param(AveragePrecision(), "axb", "abc", Fraction(5, 9), id="(1 + 2/3) / 3"),
        pytest.param(AveragePrecision(2), "axb", "abc", Fraction(1, 3), id="1 / 3"),
        pytest.param(AveragePrecision(), "aab", "ab", Fraction(5, 6), id="(1 + 2/3) / 2"),
        pytest.param(
            AveragePrecision(normalize="retrieved"), "axb", "abc", Fraction(5, 6), id="of found"
        ),
        pytest.param(
            AveragePrecision(2, "retrieved"), "axb", "abc", Fraction(1, 2), id="best 2: (1 + 1) / 2"
        ),
    ],
)
def test_by_id(metric: Metric, retrieved: str, expected_ids: str, expected: Fraction) -> None:
    result = metric.score(
        retrieved_context_ids=list(retrieved), reference_context_ids=list(expected_ids)
    )
    assert result.value == pytest.approx(float(expected), abs=1e-15)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # Grades by rank: 0 (negative), 1, not judged, 3; the fourth document, of 2, is missed.
        pytest.param(HitRate(1), 0, id="a negative grade is not expected"),
        pytest.param(ReciprocalRank(), Fraction(1, 2), id="1/2"),
        pytest.param(IDBasedContextPrecision(), Fraction(1, 2), id="2 of 4"),
        pytest.param(IDBasedContextRecall(), Fraction(2, 3), id="2 of 3"),
        pytest.param(AveragePrecision(), Fraction(1, 3), id="(1/2 + 2/4) / 3"),
    ],
)
def test_graded_ids(metric: Metric, expected: Fraction) -> None:
    sample = Sample(
        retrieved_context_ids=["bad", "fair", "unknown", "best"],
        reference_context_ids={"best": 3, "good": 2, "fair": 1, "useless": 0, "bad": -1},
    )
    assert metric.score(sample).value == pytest.approx(float(expected), abs=1e-15)


SAME, CLOSE, OTHER = "abcdefgh", "abcdefxy", "ijklmnop"


@pytest.mark.parametrize(
    ("metric", "retrieved", "references", "expected"),
    [
        pytest.param(
            NonLLMContextPrecision(), [OTHER, SAME, CLOSE], [SAME], Fraction(7, 12), id="0 1 1"
        ),
        pytest.param(
            NonLLMContextPrecision(), [SAME, OTHER, SAME], [SAME], Fraction(5, 6), id="1 0 1: again"
        ),
        pytest.param(
            AveragePrecision(judge=TextJudge()),
            [SAME, OTHER, SAME],
            [SAME],
            1,
            id="1 0 0: once",
        ),
        pytest.param(
            NonLLMContextPrecision(threshold=0.75), [OTHER, CLOSE], [SAME], Fraction(1, 2), id="6/8"
        ),
        pytest.param(NonLLMContextPrecision(threshold=0.8), [OTHER, CLOSE], [SAME], 0, id="6/8<.8"),
        pytest.param(
            NonLLMContextRecall(), [CLOSE], [SAME, OTHER, SAME], Fraction(2, 3), id="2 of 3"
        ),
        pytest.param(
            NonLLMContextRecall("prefix", 0.8), [CLOSE], [SAME], 0, id="6/8 from the start < 0.8"
        ),
        pytest.param(
            RecallAtK(1, judge=TextJudge()), [OTHER, SAME], [SAME, OTHER], Fraction(1, 2), id="k=1"
        ),
        pytest.param(
            NDCG(judge=TextJudge()), [OTHER, "zzzz", SAME], [SAME], Fraction(1, 2), id="(1/2) / 1"
        ),
        pytest.param(PrecisionAtK(4, judge=TextJudge()), [SAME], [SAME], Fraction(1, 4), id="1/4"),
    ],
)
def test_by_text(
    metric: Metric, retrieved: list[str], references: list[str], expected: Fraction
) -> None:
    result = metric.score(retrieved_contexts=retrieved, reference_contexts=references)
    assert result.value == pytest.approx(float(expected), abs=1e-15)


def test_the_short_name_is_the_long_one() -> None:
    assert NonLLMContextPrecision is NonLLMContextPrecisionWithReference


def test_every_verdict_names_chunk_unit_and_reason() -> None:
    sample = Sample(
        retrieved_context_ids=["x", "a", "a"], reference_context_ids={"b": 1, "a": 3, "c": 0}
    )
    verdicts = IDBasedContextPrecision().score(sample).verdicts
    assert verdicts is not None
    not_expected = Verdict(False, "x", "its id is not expected")
    expected = Verdict(True, "a", matched=(1,), grade=3)
    assert verdicts.chunks == (not_expected, expected, expected)
    assert verdicts.units == (
        Verdict(False, "b", "no chunk with this id was retrieved", grade=1),
        Verdict(True, "a", matched=(1,), grade=3),
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: HitRate(0), "k: 0 is no number of ranks", id="k=0"),
        pytest.param(lambda: NDCG(-1), "k: -1 is no number of ranks", id="k=-1"),
        pytest.param(lambda: ReciprocalRank(True), "k: True is no number", id="k=True"),
        pytest.param(lambda: NDCG("10"), "k: '10' is no number of ranks", id="k as text"),
        pytest.param(lambda: NDCG(2.5), "k: 2.5 is no number of ranks", id="k=2.5"),
        pytest.param(lambda: PrecisionAtK(None), "k: PrecisionAtK needs one", id="precision, no k"),
        pytest.param(lambda: RecallAtK(None), "k: RecallAtK needs one", id="recall, no k"),
        pytest.param(lambda: HitRate(judge="text"), "judge: 'text' is no judge", id="judge's name"),
        pytest.param(lambda: HitRate(judge=IdJudge), "is no judge: give IdJudge()", id="a class"),
        pytest.param(
            lambda: AveragePrecision(normalize="all"), "normalize: 'all' is unknown", id="normalize"
        ),
        pytest.param(
            lambda: AveragePrecision(normalize="gold", judge=TextJudge()),
            "give normalize='retrieved'",
            id="gold by text",
        ),
        pytest.param(
            lambda: ContextPrecision(None), "llm: None cannot judge: give llm=", id="no model"
        ),
        pytest.param(
            lambda: ContextRecall("gpt-4o"), "give ctxeval.llm_factory('gpt-4o')", id="model's name"
        ),
        pytest.param(
            lambda: ContextRecall(ScriptedLLM(), repeats=2), "repeats: 2 is even", id="even repeats"
        ),
        pytest.param(
            lambda: ContextRecall(ScriptedLLM(), mode="join"), "did you mean 'joint'", id="mode"
        ),
    ],
)
def test_an_option_that_cannot_be(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        make()
    assert message in str(raised.value)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(HitRate(3), HitRate(4), id="k"),
        pytest.param(HitRate(3), ReciprocalRank(3), id="metric"),
        pytest.param(HitRate(3), HitRate(3, judge=TextJudge()), id="judge"),
        pytest.param(NonLLMContextRecall(), NonLLMContextRecall("jaro", 0.5), id="measure"),
        pytest.param(NonLLMContextRecall(), NonLLMContextRecall(threshold=0.6), id="threshold"),
        pytest.param(
            NonLLMContextRecall(threshold=0.1234567),
            NonLLMContextRecall(threshold=0.1234568),
            id="threshold, in the seventh digit",
        ),
        pytest.param(AveragePrecision(), AveragePrecision(normalize="retrieved"), id="normalize"),
        pytest.param(
            ContextRecall(ScriptedLLM()), ContextRecall(ScriptedLLM()), id="one model and another"
        ),
    ],
)
def test_what_is_not_comparable_has_another_signature(one: Metric, other: Metric) -> None:
    assert one.signature != other.signature
    assert repr(one) == f"<{one.signature}>"


# Verdicts that could not be read.

LLM = ScriptedLLM()
BY_MODEL = LLMJudge(LLM)


@pytest.mark.parametrize(
    ("metric", "read", "low", "high"),
    [
        pytest.param(ContextPrecision(LLM), [None, 1], "1/2", "1", id="0 1: 1/2, 1 1: 1"),
        pytest.param(ContextPrecision(LLM), [0, None], "0", "1/2", id="0 0: 0, 0 1: 1/2"),
        pytest.param(ContextPrecision(LLM), [1, None, 1], "5/6", "1", id="1 0 1: 5/6, 1 1 1: 1"),
        pytest.param(ContextRelevance(LLM), [1, None, None, 0], "1/4", "3/4", id="1/4 to 3/4"),
        pytest.param(ContextRecall(LLM), [None, 1], "1/2", "1", id="1/2 or 2/2"),
        pytest.param(
            ReciprocalRank(judge=BY_MODEL), [0, None, 1], "1/3", "1/2", id="third or second"
        ),
        pytest.param(HitRate(1, judge=BY_MODEL), [None, 1], "0", "1", id="0 or 1"),
        pytest.param(RecallAtK(5, judge=BY_MODEL), [None, None, 1], "1/3", "1", id="1/3 to 3/3"),
    ],
)
def test_unread_verdicts_leave_bounds_and_no_value(
    metric: Metric, read: list[int | None], low: str, high: str
) -> None:
    result = metric.after_judging(verdicts_of(metric, read))
    assert (result.value, result.status) == (None, "failed")
    assert result.bounds == pytest.approx((float(Fraction(low)), float(Fraction(high))), abs=1e-15)
    unread = [index for index, value in enumerate(read) if value is None]
    what = "chunk" if metric.reads == "chunks" else "claim"
    assert result.reason == (
        f"{len(unread)} of {len(read)} verdicts could not be read, "
        f"the first on {what} {unread[0] + 1}: garbled"
    )


@pytest.mark.parametrize(
    ("metric", "read", "value"),
    [
        pytest.param(HitRate(judge=BY_MODEL), [1, None], 1, id="a hit whatever the other is"),
        pytest.param(ReciprocalRank(judge=BY_MODEL), [0, 1, None], Fraction(1, 2), id="second"),
        pytest.param(PrecisionAtK(1, judge=BY_MODEL), [0, None], 0, id="beyond k"),
        pytest.param(NDCG(1, judge=BY_MODEL), [1, None], 1, id="first is as good as can be"),
        pytest.param(ContextPrecision(LLM), [1, 1, None], 1, id="relevant or not, it is last"),
    ],
)
def test_unread_verdicts_that_decide_nothing(
    metric: Metric, read: list[int | None], value: Fraction
) -> None:
    result = metric.after_judging(verdicts_of(metric, read))
    assert (result.value, result.status) == (float(value), "scored")
    assert result.bounds == (float(value), float(value))


def test_too_many_unread_verdicts_to_try_all() -> None:
    result = ContextRelevance(LLM).after_judging(verdicts_of(ContextRelevance(LLM), [None] * 11))
    assert (result.status, result.bounds) == ("failed", (0.0, 1.0))
    result = ContextRelevance(LLM).after_judging(
        verdicts_of(ContextRelevance(LLM), [1, *[None] * 10, 0])
    )
    assert result.bounds == (1 / 12, 11 / 12)


def verdicts_of(metric: Metric, read: list[int | None]) -> Verdicts:
    said = [
        Verdict(None if value is None else bool(value), text=str(index), reason="garbled")
        for index, value in enumerate(read)
    ]
    chunks, units = (said, []) if metric.reads == "chunks" else ([], said)
    return Verdicts(chunks, units, judge="llm", together=True)


@given(st.lists(st.sampled_from([0, 1, None]), min_size=1, max_size=7))
def test_bounds_are_those_of_all_completions(read: list[int | None]) -> None:
    metric = ContextPrecision(LLM)
    ways = itertools.product(*[(0, 1) if value is None else (value,) for value in read])
    values = {metric.after_judging(verdicts_of(metric, [*way])).value for way in ways}
    result = metric.after_judging(verdicts_of(metric, read))
    assert result.bounds == (min(values), max(values))
    assert (result.status == "scored") == (len(values) == 1)
