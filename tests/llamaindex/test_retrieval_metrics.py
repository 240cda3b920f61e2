"""Our metrics inside LlamaIndex's `RetrieverEvaluator`."""

import math

import pytest

pytest.importorskip("llama_index.core")

from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.evaluation.retrieval import metrics as framework
from llama_index.core.schema import Document, ImageNode
from llamaindex_parts import Fixed, Judge, index, node

import ctxeval_llamaindex
from ctxeval import (
    NDCG,
    ContextRelevance,
    InvalidArgumentError,
    InvalidSampleError,
    NonLLMContextRecall,
    NotScoredError,
    SpanRecall,
)
from ctxeval_llamaindex import retrieval_metric
from ctxeval_llamaindex.llm import as_llm
from ctxeval_llamaindex.retrieval_metric import REGISTERED, register, retrieval_metrics


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """Give each test a registry of its own."""
    own = dict(framework.METRIC_REGISTRY)
    for module in (framework, retrieval_metric):
        monkeypatch.setattr(module, "METRIC_REGISTRY", own)
    return own


def test_a_star_import_gives_the_functions():
    names: dict = {}
    exec("from ctxeval_llamaindex import *", names)
    assert names["retrieval_metrics"] is retrieval_metrics
    assert all(callable(names[name]) for name in ctxeval_llamaindex.__all__)


def test_each_configuration_stands_under_its_own_name():
    evaluator = RetrieverEvaluator(
        metrics=retrieval_metrics(["ndcg@1", "ndcg@2", NDCG(), "mrr"]), retriever=Fixed("x", "a")
    )
    found = evaluator.evaluate("Q?", expected_ids=["a"])
    dcg = 1 / math.log2(3)
    assert found.metric_vals_dict == {
        "ndcg@1": 0,
        "ndcg@2": pytest.approx(dcg),
        "ndcg": pytest.approx(dcg),
        "reciprocal_rank": 0.5,
    }
    metadata = found.metric_dict["reciprocal_rank"].metadata
    assert metadata["status"] == "scored"
    assert [chunk["value"] for chunk in metadata["verdicts"]["chunks"]] == [False, True]


async def test_over_an_index():
    retriever = index(node("cab", "cab"), node("bag", "bag")).as_retriever(similarity_top_k=1)
    evaluator = RetrieverEvaluator(metrics=retrieval_metrics("hit_rate@1"), retriever=retriever)
    assert evaluator.evaluate("bag", ["bag"]).metric_vals_dict == {"hit_rate@1": 1}
    found = await evaluator.aevaluate("cab", ["bag"])
    assert found.metric_vals_dict == {"hit_rate@1": 0}


def test_an_empty_retrieval_is_zero():
    evaluator = RetrieverEvaluator(metrics=retrieval_metrics(), retriever=Fixed())
    found = evaluator.evaluate("Q?", expected_ids=["a"])
    assert found.metric_vals_dict == dict.fromkeys(REGISTERED, 0)
    assert {float(one) for one in found.metric_dict.values()} == {0}


def test_nothing_expected_is_no_number_and_the_framework_carries_it():
    evaluator = RetrieverEvaluator(metrics=retrieval_metrics("ndcg@10"), retriever=Fixed("a"))
    found = evaluator.evaluate("Q?", expected_ids=[])
    assert found.metric_vals_dict == {"ndcg@10": None}
    metadata = found.metric_dict["ndcg@10"].metadata
    assert (metadata["status"], metadata["reason"]) == ("undefined", "no id is expected")
    assert '"score":null' in found.model_dump_json()
    assert "None" in str(found)
    with pytest.raises(NotScoredError, match=r"ndcg@10 is undefined: no id is expected"):
        float(found.metric_dict["ndcg@10"])


def test_texts():
    metric = NonLLMContextRecall(threshold=1.0)
    evaluator = RetrieverEvaluator(
        metrics=retrieval_metrics([metric, "recall@5"]), retriever=Fixed(node("a", "alpha"))
    )
    found = evaluator.evaluate("Q?", expected_ids=["a"], expected_texts=["alpha", "beta"])
    assert found.metric_vals_dict == {"non_llm_context_recall": 0.5, "recall@5": 1.0}
    without = evaluator.evaluate("Q?", expected_ids=["a"])
    assert without.metric_vals_dict == {"non_llm_context_recall": None, "recall@5": 1.0}


@given(
    st.lists(st.sampled_from("abcd"), max_size=6),
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=4),
)
def test_always_a_number_and_never_above_one(retrieved, expected):
    for metric in retrieval_metrics():
        value = metric.compute("Q?", expected, retrieved).score
        assert 0 <= value <= 1


@given(st.lists(st.sampled_from("abcd"), unique=True, min_size=1, max_size=4))
def test_what_is_expected_in_full_is_exactly_one(ids):
    metrics = retrieval_metrics(["id_based_context_recall", "ndcg", "average_precision", "mrr"])
    assert [metric.compute("Q?", ids, ids).score for metric in metrics] == [1, 1, 1, 1]


def test_random_ids_are_named():
    one, other = (f"a3bb189e-8bf9-4f5e-ae0b-2f4d5d1c0d9{n}" for n in (1, 2))
    (metric,) = retrieval_metrics("mrr")
    assert "random" in metric.compute("Q?", [one], [other]).metadata["reason"]
    assert metric.compute("Q?", [one], [other, one]).metadata["reason"] == ""


def test_a_broken_id_raises_what_is_no_runtime_error():
    (metric,) = retrieval_metrics("mrr")
    with pytest.raises(InvalidSampleError, match="'' is no id"):
        metric.compute("Q?", [""], ["a"])
    assert not issubclass(InvalidSampleError, RuntimeError)


def test_what_has_no_place_here():
    with pytest.raises(InvalidArgumentError, match="judged by a model"):
        retrieval_metrics(ContextRelevance(as_llm(Judge())))
    with pytest.raises(InvalidArgumentError, match="judged by span"):
        retrieval_metrics(SpanRecall())
    with pytest.raises(InvalidArgumentError, match="did you mean 'ndcg@10'"):
        retrieval_metrics(["ndgc@10"])
    with pytest.raises(InvalidArgumentError, match="two are named"):
        retrieval_metrics(["mrr", "reciprocal_rank"])


def test_registered_by_name(registry):
    theirs = dict(registry)
    assert register() == list(REGISTERED)
    assert register() == list(REGISTERED)
    assert {name: registry[name] for name in theirs} == theirs
    evaluator = RetrieverEvaluator.from_metric_names(
        ["ndcg@10", "hit_rate@10", "mrr"], retriever=Fixed("x", "a")
    )
    found = evaluator.evaluate("Q?", expected_ids=["a"]).metric_vals_dict
    assert found == {"ndcg@10": 1 / math.log2(3), "hit_rate@10": 1, "mrr": 0.5}
    assert registry["ndcg@10"].metric_name == "ndcg@10"


def test_names_of_others_are_taken_only_when_asked(registry):
    theirs = registry["ndcg"]
    with pytest.raises(InvalidArgumentError, match=r"ndcg stands for another .* 'ndcg@10'"):
        register(["ndcg", "mrr"])
    assert registry["ndcg"] is theirs
    assert "reciprocal_rank" not in registry
    assert register(["ndcg"], overwrite=True) == ["ndcg"]
    assert register(["ndcg"]) == ["ndcg"]
    found = RetrieverEvaluator.from_metric_names(["ndcg"], retriever=Fixed()).evaluate("Q?", ["a"])
    assert found.metric_vals_dict == {"ndcg": 0}


@pytest.mark.parametrize("returned", [Document(id_="a", text="x"), ImageNode(id_="a")])
def test_what_the_framework_itself_can_read(returned):
    evaluator = RetrieverEvaluator(metrics=retrieval_metrics("mrr"), retriever=Fixed(returned))
    if isinstance(returned, Document):
        with pytest.raises(ValueError, match="must be a TextNode"):
            evaluator.evaluate("Q?", ["a"])
    else:
        assert evaluator.evaluate("Q?", ["a"]).metric_vals_dict == {"reciprocal_rank": 1}
