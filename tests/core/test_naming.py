from __future__ import annotations

from typing import Any

import pytest

import ctxeval
from ctxeval import (
    NDCG,
    AveragePrecision,
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    ContextUtilization,
    HitRate,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    InvalidArgumentError,
    Metric,
    MissingFieldError,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    PrecisionAtK,
    RecallAtK,
    ReciprocalRank,
    Sample,
)
from ctxeval.naming import MetricSet, metric_by_name, resolve_metrics
from ctxeval.testing import ScriptedLLM

LLM = ScriptedLLM()


@pytest.mark.parametrize(
    ("name", "kind", "k", "judge"),
    [
        ("context_precision", ContextPrecision, None, "llm"),
        ("context_utilization", ContextUtilization, None, "llm"),
        ("context_recall", ContextRecall, None, "llm"),
        ("context_relevance", ContextRelevance, None, "llm"),
        (
            "non_llm_context_precision_with_reference",
            NonLLMContextPrecisionWithReference,
            None,
            "text",
        ),
        ("non_llm_context_recall", NonLLMContextRecall, None, "text"),
        ("id_based_context_precision", IDBasedContextPrecision, None, "id"),
        ("id_based_context_recall", IDBasedContextRecall, None, "id"),
        ("hit_rate@5", HitRate, 5, "id"),
        ("hit_rate", HitRate, None, "id"),
        ("hit_rate@5[text]", HitRate, 5, "text"),
        ("reciprocal_rank", ReciprocalRank, None, "id"),
        ("reciprocal_rank@10", ReciprocalRank, 10, "id"),
        ("reciprocal_rank[llm]", ReciprocalRank, None, "llm"),
        ("precision@3", PrecisionAtK, 3, "id"),
        ("recall@20", RecallAtK, 20, "id"),
        ("ndcg@10", NDCG, 10, "id"),
        ("ndcg", NDCG, None, "id"),
        ("average_precision@10", AveragePrecision, 10, "id"),
        ("average_precision[retrieved]", AveragePrecision, None, "id"),
        ("average_precision@7[retrieved]", AveragePrecision, 7, "id"),
    ],
)
def test_a_metric_by_its_name(name: str, kind: type[Metric], k: int | None, judge: str) -> None:
    metric = metric_by_name(name, LLM)
    assert type(metric) is kind
    assert (metric.name, metric.judge.name) == (name, judge)
    assert getattr(metric, "k", None) == k
    assert getattr(metric, "normalize", None) == (
        None if kind is not AveragePrecision else "retrieved" if "[" in name else "gold"
    )


@pytest.mark.parametrize(
    ("short", "name"),
    [
        ("non_llm_context_precision", "non_llm_context_precision_with_reference"),
        ("mrr", "reciprocal_rank"),
        ("mrr@10", "reciprocal_rank@10"),
        ("mrr@10[text]", "reciprocal_rank@10[text]"),
        ("hit_rate@5[id]", "hit_rate@5"),
    ],
)
def test_other_names(short: str, name: str) -> None:
    assert metric_by_name(short).name == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("context_recal", "did you mean 'context_recall'", id="a letter is missing"),
        pytest.param("Context_Recall", "did you mean 'context_recall'", id="capitals"),
        pytest.param("MRR", "did you mean 'mrr'?", id="capitals of the short name"),
        pytest.param("ndgc@10", "did you mean 'ndcg@10'", id="exchanged letters"),
        pytest.param("hit_rate@five", "did you mean 'hit_rate@10'?", id="no number"),
        pytest.param("hit_rate@-1", "did you mean 'hit_rate@10'?", id="a negative number"),
        pytest.param("faithfulness", "it is one of average_precision@10, ", id="nothing near"),
        pytest.param("", "it is one of average_precision@10, ", id="empty"),
        pytest.param("hit_rate@0", "k: 0 is no number of ranks", id="k=0"),
        pytest.param("precision", "k: PrecisionAtK needs one", id="precision without k"),
        pytest.param("recall[text]", "k: RecallAtK needs one", id="recall without k"),
        pytest.param("ndcg[vector]", "'vector': it is one of id, text, llm", id="unknown judge"),
        pytest.param("ndcg[retrieved]", "'retrieved': it is one of id, text, llm", id="only of AP"),
        pytest.param("context_recall", "give llm=ctxeval.llm_factory(", id="no model"),
        pytest.param("ndcg@5[llm]", "give llm=ctxeval.llm_factory(", id="no model as judge"),
    ],
)
def test_a_name_that_is_none(name: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        metric_by_name(name)
    assert message in str(raised.value)
    with pytest.raises(InvalidArgumentError):
        ctxeval.score({}, ["hit_rate@1", name])


def names(metrics: Any, llm: Any = None) -> list[str]:
    return [metric.name for metric in resolve_metrics(metrics, llm)]


def test_one_or_several_as_objects_or_by_name() -> None:
    metric = HitRate(3)
    for given in (metric, [metric], iter([metric])):
        assert resolve_metrics(given) == [metric]
    assert names("ndcg@3") == ["ndcg@3"]
    assert names(("ndcg@3", metric, "context_recall"), LLM) == [
        "ndcg@3",
        "hit_rate@3",
        "context_recall",
    ]


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        pytest.param([], "the list is empty", id="none"),
        pytest.param(["ndcg", NDCG()], "two are named 'ndcg': set the .name", id="twice"),
        pytest.param(["mrr", "reciprocal_rank"], "two are named 'reciprocal_rank'", id="synonyms"),
        pytest.param([HitRate], "HitRate is a class: give HitRate(…)", id="a class in a list"),
        pytest.param(HitRate, "HitRate is a class: give HitRate(…)", id="a class"),
        pytest.param([None], "None is no metric and no metric's name", id="None in a list"),
        pytest.param(None, "None is no metric and no list of them", id="None"),
        pytest.param(7, "7 is no metric and no list of them", id="a number"),
        pytest.param({"ndcg": 10}, "{'ndcg': 10} is no metric and no list", id="a mapping"),
        pytest.param([["ndcg"]], "['ndcg'] is no metric and no metric's name", id="nested"),
    ],
)
def test_what_is_no_metric(metrics: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        resolve_metrics(metrics)
    assert str(raised.value).startswith("metrics: ")
    assert message in str(raised.value)


def test_a_name_may_be_set_so_that_two_differ() -> None:
    strict = NonLLMContextRecall(threshold=0.9)
    strict.name = "strict_recall"
    sample = {"retrieved_contexts": ["abcd"], "reference_contexts": ["abce"]}
    results = ctxeval.score(sample, [strict, NonLLMContextRecall()])
    assert {name: result.value for name, result in results.items()} == {
        "strict_recall": 0.0,
        "non_llm_context_recall": 1.0,
    }
    assert results["strict_recall"].metric == "strict_recall"


BY_ID = [
    "id_based_context_precision",
    "id_based_context_recall",
    "reciprocal_rank",
    "ndcg@10",
]
BY_TEXT = ["non_llm_context_precision_with_reference", "non_llm_context_recall"]
IDS = {"retrieved_context_ids": ["a"], "reference_context_ids": ["a"]}
TEXTS = {"retrieved_contexts": ["a"], "reference_contexts": ["a"]}
ASKED = {"user_input": "q", "retrieved_contexts": ["a"]}


@pytest.mark.parametrize(
    ("fields", "llm", "expected"),
    [
        pytest.param({}, LLM, [], id="nothing"),
        pytest.param(IDS, None, BY_ID, id="ids"),
        pytest.param(TEXTS, None, BY_TEXT, id="texts"),
        pytest.param({**IDS, **TEXTS}, None, BY_ID + BY_TEXT, id="ids and texts"),
        pytest.param({"retrieved_context_ids": ["a"]}, None, [], id="retrieved ids only"),
        pytest.param({"reference_context_ids": ["a"]}, None, [], id="expected ids only"),
        pytest.param(
            {"retrieved_context_ids": [], "reference_context_ids": []}, None, BY_ID, id="empty ids"
        ),
        pytest.param(ASKED | {"reference": "r", "response": "s"}, None, [], id="no model"),
        pytest.param(ASKED, LLM, ["context_relevance"], id="a question: relevance"),
        pytest.param(
            ASKED | {"reference": "r"},
            LLM,
            ["context_precision", "context_recall", "context_relevance"],
            id="a reference: precision and recall",
        ),
        pytest.param(
            ASKED | {"response": "s"},
            LLM,
            ["context_relevance", "context_utilization"],
            id="a response: utilization",
        ),
        pytest.param(
            ASKED | {"reference_claims": ["r"]},
            LLM,
            ["context_recall", "context_relevance"],
            id="claims: recall",
        ),
        pytest.param(
            {**IDS, **TEXTS, "user_input": "q", "reference": "r", "response": "s"},
            LLM,
            [
                *BY_ID,
                *BY_TEXT,
                "context_precision",
                "context_recall",
                "context_relevance",
                "context_utilization",
            ],
            id="everything",
        ),
        pytest.param({"retrieved_contexts": ["a"], "reference": "r"}, LLM, [], id="no question"),
    ],
)
def test_auto_takes_what_the_sample_has_the_fields_for(
    fields: dict[str, Any], llm: ScriptedLLM | None, expected: list[str]
) -> None:
    chosen = [metric.name for metric in MetricSet("auto", llm).of(Sample(**fields))]
    assert sorted(chosen) == sorted(expected)
    if expected:
        assert set(ctxeval.score(fields, llm=llm)) == set(expected)
    else:
        with pytest.raises(MissingFieldError, match="nothing can be scored: give"):
            ctxeval.score(fields, llm=llm)


def test_fixed_metrics_are_those_of_any_sample() -> None:
    fixed = MetricSet(["ndcg@3", "hit_rate"])
    assert [metric.name for metric in fixed.of(Sample())] == ["ndcg@3", "hit_rate"]
    assert fixed.of(Sample()) is fixed.of(Sample(**IDS))
