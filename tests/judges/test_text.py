from __future__ import annotations

import copy
import enum
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz import distance, fuzz

from ctxeval import InvalidArgumentError, NonLLMContextRecall, Sample, TextJudge, Verdict, Verdicts
from ctxeval.judges.similarity import THRESHOLDS, NamedMatcher, callable_matcher

# What rapidfuzz calls them, and what its number is out of.
RAPIDFUZZ: dict[str, tuple[Callable[..., float], int]] = {
    "levenshtein": (distance.Levenshtein.normalized_similarity, 1),
    "damerau_levenshtein": (distance.DamerauLevenshtein.normalized_similarity, 1),
    "osa": (distance.OSA.normalized_similarity, 1),
    "indel": (distance.Indel.normalized_similarity, 1),
    "lcs_seq": (distance.LCSseq.normalized_similarity, 1),
    "hamming": (distance.Hamming.normalized_similarity, 1),
    "jaro": (distance.Jaro.normalized_similarity, 1),
    "jaro_winkler": (distance.JaroWinkler.normalized_similarity, 1),
    "prefix": (distance.Prefix.normalized_similarity, 1),
    "postfix": (distance.Postfix.normalized_similarity, 1),
    "ratio": (fuzz.ratio, 100),
    "q_ratio": (fuzz.QRatio, 100),
    "w_ratio": (fuzz.WRatio, 100),
    "partial_ratio": (fuzz.partial_ratio, 100),
    "token_ratio": (fuzz.token_ratio, 100),
    "token_sort_ratio": (fuzz.token_sort_ratio, 100),
    "token_set_ratio": (fuzz.token_set_ratio, 100),
    "partial_token_ratio": (fuzz.partial_token_ratio, 100),
    "partial_token_sort_ratio": (fuzz.partial_token_sort_ratio, 100),
    "partial_token_set_ratio": (fuzz.partial_token_set_ratio, 100),
}
every_measure = pytest.mark.parametrize("measure", RAPIDFUZZ)

AWKWARD = [0.0, 0.07, 0.1, 0.2, 0.29, 0.3, 0.5, 0.57, 0.6, 0.66, 0.7, 0.8, 0.93, 1.0]
THRESHOLD = st.sampled_from(AWKWARD) | st.integers(0, 100).map(lambda n: n / 100) | st.floats(0, 1)
# Words of two letters: a good part of all pairs is similar, some are equal, some are blank.
TEXT = st.text("ab ", max_size=12) | st.lists(
    st.sampled_from(["ab", "abc", "cab", "é", "aab"]), max_size=4
).map(" ".join)
TEXTS = st.lists(TEXT, max_size=4)
ASKED = st.lists(
    st.sampled_from(["relevant", "chunks", "units"]) | st.none() | st.integers(1, 5), max_size=4
)


def similarity(measure: str, reference: str, chunk: str) -> float:
    scorer, scale = RAPIDFUZZ[measure]
    return scorer(reference, chunk) / scale


def judged(judge: TextJudge, retrieved: list[str], references: list[str]) -> Verdicts:
    return judge.judge(Sample(retrieved_contexts=retrieved, reference_contexts=references))


class Counting:
    """A measure that counts its calls: as similar as the first letters are alike."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []

    def __call__(self, reference: str, chunk: str) -> float:
        self.pairs.append((reference, chunk))
        return float(reference[0] == chunk[0])


def test_every_measure_is_tested() -> None:
    assert THRESHOLDS.keys() == RAPIDFUZZ.keys()


@every_measure
@settings(max_examples=60)
@given(TEXTS, TEXTS, THRESHOLD, ASKED)
def test_agrees_with_the_full_matrix(
    measure: str,
    retrieved: list[str],
    references: list[str],
    threshold: float,
    asked: list[str | int | None],
) -> None:
    def similar(reference: str, chunk: str) -> bool:
        if not reference.strip() or not chunk.strip():
            return False
        return reference == chunk or similarity(measure, reference, chunk) >= threshold

    verdicts = judged(TextJudge(measure, threshold), retrieved, references)
    for question in asked:
        if question == "relevant":
            verdicts.relevant()
        elif isinstance(question, str):
            getattr(verdicts, question)
        else:
            verdicts.covered(question)
    matrix = [[similar(reference, chunk) for chunk in retrieved] for reference in references]
    columns = [[row[rank] for row in matrix] for rank in range(len(retrieved))]
    assert verdicts.relevant() == [any(column) for column in columns]
    for k in (1, 2, 3, 4, None):
        assert verdicts.covered(k) == [any(row[:k]) for row in matrix]
    assert [chunk.value for chunk in verdicts.chunks] == [any(column) for column in columns]
    assert [unit.value for unit in verdicts.units] == [any(row) for row in matrix]
    for unit, row in zip(verdicts.units, matrix, strict=True):
        assert unit.matched == ((row.index(True),) if any(row) else ())
    for chunk, column in zip(verdicts.chunks, columns, strict=True):
        equal = [unit for unit, text in enumerate(references) if text == chunk.text]
        deciding = equal[0] if any(column) and equal else any(column) and column.index(True)
        assert chunk.matched == ((deciding,) if any(column) else ())


@every_measure
@settings(max_examples=60)
@given(TEXT.filter(str.strip), TEXT.filter(str.strip))
def test_the_threshold_is_included(measure: str, reference: str, chunk: str) -> None:
    exact = similarity(measure, reference, chunk)
    at = judged(TextJudge(measure, exact), [chunk], [reference])
    assert (at.relevant(), at.covered()) == ([True], [True])
    assert at.chunks[0].similarity == at.units[0].similarity
    assert at.chunks[0].similarity == (1.0 if reference == chunk else exact)
    if exact < 1 and reference != chunk:
        above = judged(TextJudge(measure, min(1.0, exact + 1e-9)), [chunk], [reference])
        assert (above.relevant(), above.covered()) == ([False], [False])


@pytest.mark.parametrize(
    ("measure", "reference", "chunk", "threshold"),
    [
        pytest.param("levenshtein", "abcd", "abxy", 0.5, id="2 of 4 stay"),
        pytest.param("levenshtein", "a" * 6 + "b" * 4, "a" * 6 + "c" * 4, 0.6, id="6 of 10 stay"),
        pytest.param("levenshtein", "a" * 8 + "b" * 2, "a" * 8 + "c" * 2, 0.8, id="8 of 10 stay"),
        pytest.param("levenshtein", "a" * 29 + "b" * 71, "a" * 29 + "c" * 71, 0.29, id="29 of 100"),
        pytest.param("levenshtein", "a" * 57 + "b" * 43, "a" * 57 + "c" * 43, 0.57, id="57 of 100"),
        pytest.param("hamming", "aaabbbbbbb", "aaaccccccc", 0.3, id="3 of 10 places"),
        pytest.param("prefix", "abcxx", "abcyy", 0.6, id="3 of 5 from the start"),
        pytest.param("postfix", "xxabc", "yyabc", 0.6, id="3 of 5 from the end"),
        pytest.param("ratio", "a" * 29 + "b" * 71, "a" * 29 + "c" * 71, 0.29, id="58 of 200"),
        pytest.param("indel", "abcde", "abcxy", 0.6, id="6 of 10 letters"),
        pytest.param("jaro", "abcd", "abxy", 2 / 3, id="(2/4 + 2/4 + 2/2) / 3"),
        pytest.param("token_sort_ratio", "b a", "a b", 1.0, id="the same words"),
    ],
)
def test_the_threshold_is_included_by_hand(
    measure: str, reference: str, chunk: str, threshold: float
) -> None:
    verdicts = judged(TextJudge(measure, threshold), [chunk], [reference])
    assert verdicts.relevant() == [True]
    assert verdicts.chunks[0].similarity == pytest.approx(threshold, abs=1e-12)
    if threshold < 1:
        above = judged(TextJudge(measure, threshold + 1e-9), [chunk], [reference])
        assert above.relevant() == [False]
        assert above.chunks[0].similarity is None


class Measure(enum.Enum):
    JARO_WINKLER = "jaro_winkler"


@pytest.mark.parametrize(
    ("given_name", "measure"),
    [
        *[pytest.param(name, name, id=name) for name in RAPIDFUZZ],
        pytest.param("Jaro-Winkler", "jaro_winkler", id="Jaro-Winkler"),
        pytest.param("JaroWinkler", "jaro_winkler", id="JaroWinkler"),
        pytest.param("JARO_WINKLER", "jaro_winkler", id="JARO_WINKLER"),
        pytest.param("Damerau Levenshtein", "damerau_levenshtein", id="with a blank"),
        pytest.param("LCSseq", "lcs_seq", id="LCSseq"),
        pytest.param("WRatio", "w_ratio", id="WRatio"),
        pytest.param("QRatio", "q_ratio", id="QRatio"),
        pytest.param(Measure.JARO_WINKLER, "jaro_winkler", id="an enum's member"),
    ],
)
def test_a_measure_by_its_name(given_name: Any, measure: str) -> None:
    judge = TextJudge(given_name)
    assert judge.measure == measure
    assert judge.threshold == THRESHOLDS[measure]
    assert judge.signature == f"text({measure}>={THRESHOLDS[measure]!r})"


def test_the_default_is_levenshtein_at_one_half() -> None:
    assert (TextJudge().measure, TextJudge().threshold) == ("levenshtein", 0.5)
    assert judged(TextJudge(), ["abxy", "axyz"], ["abcd"]).relevant() == [True, False]


@every_measure
def test_every_default_tells_equal_from_unrelated(measure: str) -> None:
    assert 0 < THRESHOLDS[measure] <= 1
    verdicts = judged(TextJudge(measure), ["12345", "some words"], ["some words"])
    assert verdicts.relevant() == [False, True]


@pytest.mark.parametrize(
    ("given_name", "message"),
    [
        pytest.param("levenstein", "did you mean 'levenshtein'", id="a letter is missing"),
        pytest.param("cosine", "it is one of damerau_levenshtein, hamming, ", id="nothing near"),
        pytest.param("", "'' is unknown: it is one of", id="empty"),
        pytest.param(None, "None is unknown: it is one of", id="None"),
        pytest.param(7, "7 is unknown: it is one of", id="a number"),
    ],
)
def test_an_unknown_measure(given_name: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        TextJudge(given_name)
    assert str(raised.value).startswith("distance_measure: ")
    assert message in str(raised.value)


@pytest.mark.parametrize("threshold", [-0.01, 1.01, 50, float("nan"), float("inf"), "0.5", True])
def test_an_impossible_threshold(threshold: Any) -> None:
    for make in (TextJudge, NonLLMContextRecall):
        with pytest.raises(InvalidArgumentError, match=r"^threshold: .* (0 to 1)"):
            make(threshold=threshold)


def test_a_function_needs_a_threshold() -> None:
    with pytest.raises(InvalidArgumentError, match="threshold: state one for") as raised:
        TextJudge(similarity_by_length)
    assert "similarity_by_length" in str(raised.value)


def similarity_by_length(reference: str, chunk: str) -> float:
    return min(len(reference), len(chunk)) / max(len(reference), len(chunk))


@pytest.mark.parametrize("returned", [1.0000001, -0.1, float("nan"), 100])
def test_a_function_out_of_range(returned: float) -> None:
    judge = TextJudge(lambda reference, chunk: returned, 0.5)
    with pytest.raises(InvalidArgumentError, match=rf"returned {float(returned)!r} for 'a' and"):
        judged(judge, ["b"], ["a"]).relevant()


def test_a_function_is_asked_with_the_reference_first() -> None:
    measure = Counting()
    assert judged(TextJudge(measure, 0.5), ["ab", "xy"], ["ac"]).relevant() == [True, False]
    assert measure.pairs == [("ac", "ab"), ("ac", "xy")]


def test_threshold_zero_takes_every_chunk_that_has_text() -> None:
    assert judged(TextJudge(threshold=0), ["zzzz", " "], ["abcd"]).relevant() == [True, False]


def test_threshold_one_takes_only_equal_texts() -> None:
    assert judged(TextJudge(threshold=1), ["abcd", "abce"], ["abcd"]).relevant() == [True, False]


# As few comparisons as decide.


def test_equal_texts_are_not_compared() -> None:
    measure = Counting()
    verdicts = judged(TextJudge(measure, 0.5), ["b", "a", "b"], ["a", "b"])
    assert verdicts.relevant() == [True, True, True]
    assert verdicts.covered() == [True, True]
    assert measure.pairs == []
    assert verdicts.chunks[0] == Verdict(True, "b", matched=(1,), similarity=1.0, grade=1)


def test_a_decided_chunk_is_not_compared_again() -> None:
    measure = Counting()
    verdicts = judged(TextJudge(measure, 0.5), ["a1", "b1", "c1"], ["a2", "b2", "c2"])
    assert verdicts.relevant() == [True, True, True]
    assert measure.pairs == [
        *[("a2", "a1"), ("a2", "b1"), ("a2", "c1")],
        *[("b2", "b1"), ("b2", "c1")],
        ("c2", "c1"),
    ]


def test_a_covered_reference_is_not_compared_on() -> None:
    measure = Counting()
    verdicts = judged(TextJudge(measure, 0.5), ["a1", "b1", "c1"], ["a2", "b2"])
    assert verdicts.covered() == [True, True]
    assert measure.pairs == [("a2", "a1"), ("b2", "a1"), ("b2", "b1")]


@given(st.lists(st.sampled_from(["relevant", "chunks", "units", None, 1, 2, 3]), max_size=6))
def test_no_pair_is_compared_twice(asked: list[str | int | None]) -> None:
    measure = Counting()
    verdicts = judged(TextJudge(measure, 0.5), ["a1", "b1", "c1", "x"], ["a2", "b2", "b1", "d"])
    for question in asked:
        if question == "relevant":
            verdicts.relevant()
        elif isinstance(question, str):
            getattr(verdicts, question)
        else:
            verdicts.covered(question)
    assert len(measure.pairs) == len(set(measure.pairs))
    assert not {("b1", "b1")} & set(measure.pairs)


def test_blank_texts_match_nothing_and_are_not_compared() -> None:
    measure = Counting()
    verdicts = judged(TextJudge(measure, 0.5), ["", " ", "a"], ["", " ", "\n"])
    assert verdicts.relevant() == [False, False, False]
    assert verdicts.covered() == [False, False, False]
    assert measure.pairs == []
    assert verdicts.chunks[0].reason == "the chunk is blank"
    assert verdicts.chunks[2].reason == "similar to no reference context"
    assert verdicts.units[1].reason == "the reference context is blank"


def test_similarity_is_that_of_the_deciding_pair() -> None:
    verdicts = judged(TextJudge(), ["zzzz", "abcx", "abcd"], ["abxy", "abcd", "mnop"])
    # abcx against abxy: c and x to exchange, or c to remove and y to add, 1 - 2/4.
    assert verdicts.chunks == (
        Verdict(False, "zzzz", "similar to no reference context"),
        Verdict(True, "abcx", matched=(0,), similarity=0.5, grade=1),
        Verdict(True, "abcd", matched=(1,), similarity=1.0, grade=1),
    )
    assert verdicts.units == (
        Verdict(True, "abxy", matched=(1,), similarity=0.5, grade=1),
        Verdict(True, "abcd", matched=(1,), similarity=0.75, grade=1),
        Verdict(False, "mnop", "no chunk is similar", grade=1),
    )


# The matchers themselves.


def test_a_matcher_yields_in_order_and_when_asked() -> None:
    measure = Counting()
    matches = callable_matcher(measure, 0.5)("a", ["a1", "b1", "a2", "a3"])
    assert next(matches) == (0, 1.0)
    assert len(measure.pairs) == 1
    assert list(matches) == [(2, 1.0), (3, 1.0)]
    assert [index for index, _ in NamedMatcher("prefix", 0.5)("a", ["a", "b", "a"])] == [0, 2]


# Judges are made once and used anywhere.


@pytest.mark.parametrize(
    "judge",
    [
        pytest.param(TextJudge("jaro", 0.7), id="by name"),
        pytest.param(TextJudge(similarity_by_length, 0.7), id="a function"),
    ],
)
def test_a_judge_can_be_copied_and_sent(judge: TextJudge) -> None:
    before = judged(judge, ["abc"], ["abcd"])
    for again in (pickle.loads(pickle.dumps(judge)), copy.copy(judge), copy.deepcopy(judge)):
        assert again.signature == judge.signature
        assert judged(again, ["abc"], ["abcd"]) == before
        assert before.relevant() == [True]


async def test_judging_from_asynchronous_code() -> None:
    sample = Sample(retrieved_contexts=["abxy"], reference_contexts=["abcd"])
    assert await TextJudge().ajudge(sample) == TextJudge().judge(sample)
