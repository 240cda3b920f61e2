"""The rank metrics against trec_eval, which is what everybody means by their names."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxeval import (
    NDCG,
    AveragePrecision,
    HitRate,
    Metric,
    MetricResult,
    PrecisionAtK,
    RecallAtK,
    ReciprocalRank,
    Sample,
)

pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec-eval-terrier is not installed")

CUTS = (1, 2, 3, 5, 10)
METRICS: dict[str, Metric] = {
    "recip_rank": ReciprocalRank(),
    "ndcg": NDCG(),
    "map": AveragePrecision(),
    **{f"success_{k}": HitRate(k) for k in CUTS},
    **{f"P_{k}": PrecisionAtK(k) for k in CUTS},
    **{f"recall_{k}": RecallAtK(k) for k in CUTS},
    **{f"ndcg_cut_{k}": NDCG(k) for k in CUTS},
    **{f"map_cut_{k}": AveragePrecision(k) for k in CUTS},
}
_LISTED = ",".join(map(str, CUTS))
ASKED = {"recip_rank", "ndcg", "map"} | {
    f"{name}.{_LISTED}" for name in ("success", "P", "recall", "ndcg_cut", "map_cut")
}

Qrel = dict[str, int]
Run = dict[str, float]

DOCUMENTS = [f"d{number}" for number in range(14)]
# Where all grades are negative, pytrec_eval may never come back.
QRELS = st.dictionaries(
    st.sampled_from(DOCUMENTS), st.integers(-2, 4), min_size=1, max_size=10
).filter(lambda qrel: max(qrel.values()) >= 0)
RUNS = st.dictionaries(
    st.sampled_from(DOCUMENTS), st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, -1.0]), max_size=14
)


def ranking(run: Run) -> list[str]:
    """Order as trec_eval does: by score and then by document, both from the greatest down."""
    return sorted(run, key=lambda document: (run[document], document), reverse=True)


def ours(qrel: Qrel, run: Run) -> dict[str, MetricResult]:
    sample = Sample(retrieved_context_ids=ranking(run), reference_context_ids=qrel)
    return {name: metric.score(sample) for name, metric in METRICS.items()}


def theirs(qrel: Qrel, run: Run) -> dict[str, float]:
    evaluated: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(
        {"q": qrel}, ASKED
    ).evaluate({"q": run})
    return evaluated["q"]


def check(qrel: Qrel, run: Run) -> None:
    expected = theirs(qrel, run)
    assert expected.keys() == METRICS.keys()
    for name, result in ours(qrel, run).items():
        if any(grade > 0 for grade in qrel.values()):
            assert result.value == pytest.approx(expected[name], abs=1e-9), name
        else:  # trec_eval says 0, or leaves the query out
            assert (result.value, result.status) == (None, "undefined"), name
            assert expected[name] == 0, name


@pytest.mark.parametrize(
    ("qrel", "run"),
    [
        pytest.param({"d1": 1}, {"d1": 1.0}, id="one relevant, found"),
        pytest.param({"d1": 1}, {"d2": 1.0}, id="one relevant, missed"),
        pytest.param({"d1": 1}, {}, id="no results"),
        pytest.param({"d1": 1, "d2": 1, "d3": 0}, {"d3": 3.0, "d1": 2.0, "d2": 1.0}, id="binary"),
        pytest.param({"d1": 3, "d2": 2, "d3": 1}, {"d3": 3.0, "d2": 2.0, "d1": 1.0}, id="graded"),
        pytest.param({"d1": 3, "d2": 1}, {"d9": 3.0, "d8": 2.0, "d1": 1.0}, id="unjudged first"),
        pytest.param({"d1": 2, "d2": -1, "d3": 0}, {"d2": 3.0, "d3": 2.0, "d1": 1.0}, id="-1, 0"),
        pytest.param({"d1": 1, "d2": 1}, {"d1": 1.0, "d2": 1.0, "d3": 1.0}, id="all tied"),
        pytest.param({"d2": 1}, {"d10": 1.0, "d2": 1.0}, id="tied: d2 before d10, as text"),
        pytest.param({"d1": 0, "d2": -2}, {"d1": 1.0}, id="nothing relevant"),
        pytest.param(
            {f"d{n}": 1 for n in range(12)},
            {f"d{n}": float(-n) for n in range(14)},
            id="more relevant than any k",
        ),
    ],
)
def test_made_by_hand(qrel: Qrel, run: Run) -> None:
    check(qrel, run)


@settings(max_examples=150)
@given(QRELS, RUNS)
def test_at_random(qrel: Qrel, run: Run) -> None:
    check(qrel, run)


def test_binary_ids_as_a_list_are_grades_of_one() -> None:
    run = {"d3": 4.0, "d1": 3.0, "d9": 2.0, "d2": 1.0}
    sample = Sample(retrieved_context_ids=ranking(run), reference_context_ids=["d1", "d2", "d5"])
    expected = theirs({"d1": 1, "d2": 1, "d5": 1}, run)
    for name, metric in METRICS.items():
        assert metric.score(sample).value == pytest.approx(expected[name], abs=1e-9), name


def test_a_query_that_trec_eval_leaves_out_is_scored_here() -> None:
    evaluator = pytrec_eval.RelevanceEvaluator({"q": {"d1": 1}, "never run": {"d1": 1}}, ASKED)
    assert set(evaluator.evaluate({"q": {"d1": 1.0}, "not judged": {"d1": 1.0}})) == {"q"}
    assert {result.value for result in ours({"d1": 1}, {}).values()} == {0}
    assert {result.status for result in ours({}, {"d1": 1.0}).values()} == {"undefined"}
