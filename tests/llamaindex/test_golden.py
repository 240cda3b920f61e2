"""LlamaIndex's own values: ours are the same, or the documentation says why not."""

import json
import re
from math import log2
from pathlib import Path

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY
from llama_index.core.schema import Document
from llamaindex_parts import Fixed

from ctxeval_llamaindex.dataset_evaluation import evaluate_dataset
from ctxeval_llamaindex.retrieval_metric import retrieval_metrics

ROOT = Path(__file__).parents[2]
CASES = json.loads((ROOT / "tests/golden/llamaindex_retrieval.json").read_text())["cases"]
TABLE = re.search(
    r"\| case \| LlamaIndex \| ctxeval \|.*?\n\|[-|]+\|\n((?:\|.*\n)+)",
    (ROOT / "docs/llamaindex.md").read_text(),
)

OURS = {
    "hit_rate": "hit_rate",
    "hit_rate granular": "id_based_context_recall",
    "mrr": "reciprocal_rank",
    "mrr granular": "reciprocal_rank",
    "precision": "id_based_context_precision",
    "recall": "id_based_context_recall",
    "ap": "average_precision",
    "ndcg": "ndcg",
}


def repeated(ids):
    return ids is not None and len(set(ids)) < len(ids)


def hits_of(case):
    return [one for one in case["retrieved"] or () if one in (case["expected"] or ())]


REASONS = {
    "nothing is retrieved": lambda c: c["retrieved"] == [] and bool(c["expected"]),
    "nothing is expected": lambda c: c["expected"] == [],
    "a list is None": lambda c: c["retrieved"] is None or c["expected"] is None,
    "a retrieved id is repeated": lambda c: repeated(c["retrieved"]),
    "an expected id is repeated": lambda c: repeated(c["expected"]),
    '1 is expected, "1" retrieved': lambda c: any(isinstance(i, int) for i in c["expected"] or ()),
    "`use_granular_mrr=True`": lambda c: c["granular_mrr"] and len(hits_of(c)) > 1,
    "the retriever gives a `Document`": lambda c: c["document"],
}
"""Which cases each row of the table in the documentation is about."""


def plain(case):
    given = case["input"]
    returned = given.get("retriever_returns")
    retrieved = given.get("retrieved_ids") if returned is None else [one["id"] for one in returned]
    granular = any(name.startswith("use_granular") for name in given.get("init", ()))
    return {
        "metric": case["metric"] + " granular" * granular,
        "expected": given["expected_ids"],
        "retrieved": retrieved,
        "granular_mrr": granular and case["metric"] == "mrr",
        "document": any(one["type"] == "Document" for one in returned or ()),
        "theirs": case["raises"] or case["value"],
    }


def ours(case):
    if case["document"]:
        dataset = {"queries": {"q": "Q?"}, "relevant_docs": {"q": case["expected"]}}
        retriever = Fixed(*(Document(id_=id, text="x") for id in case["retrieved"]))
        row = evaluate_dataset(retriever, dataset, OURS[case["metric"]]).rows[0]
        return row.results[OURS[case["metric"]]].value
    (metric,) = retrieval_metrics(OURS[case["metric"]])
    result = metric.compute("Q?", case["expected"], case["retrieved"])
    return result.metadata["status"] if result.score is None else result.score


def described():
    rows = [line.strip("| \n").split(" | ") for line in TABLE[1].splitlines()]
    return {row[0]: row for row in rows}


@pytest.mark.parametrize(
    "case", [pytest.param(plain(case), id=f"{n}-{case['note']}") for n, case in enumerate(CASES)]
)
def test_equal_or_explained(case):
    value = ours(case)
    reasons = [reason for reason, applies in REASONS.items() if applies(case)]
    if isinstance(case["theirs"], float) and not isinstance(value, str) and value is not None:
        same = value == pytest.approx(case["theirs"], abs=1e-12)
    else:
        same = False
    assert same or reasons
    if reasons and not same:
        says = [described()[reason][2] for reason in reasons]
        if isinstance(value, str):
            assert any(value in one for one in says)
        elif case["retrieved"] == []:
            assert value == 0
            assert any(one == "0" for one in says)


def test_each_documented_difference_has_a_case_and_the_other_way_round():
    assert list(described()) == list(REASONS)
    for applies in REASONS.values():
        different = [c for c in map(plain, CASES) if applies(c) and ours(c) != c["theirs"]]
        assert different


@pytest.mark.parametrize(
    ("metric", "expected", "retrieved", "value"),
    [
        pytest.param("ndcg", "a", "aax", 1, id="the one gain stands first"),
        pytest.param("id_based_context_recall", "ab", "aaa", 1 / 2, id="one of two"),
        pytest.param("average_precision", "ab", "aaa", 1 / 2, id="(1/1) / 2"),
        pytest.param("ndcg", "ab", "aaa", 1 / (1 + 1 / log2(3)), id="1 / (1 + 1/log2 3)"),
        pytest.param("id_based_context_recall", "aa", "ax", 1, id="one of one"),
        pytest.param("ndcg", "aa", "ax", 1, id="one gain is all there is"),
        pytest.param("average_precision", "aab", "aab", (1 + 2 / 3) / 2, id="(1/1 + 2/3) / 2"),
        pytest.param("reciprocal_rank", "ab", "xaxb", 1 / 2, id="the first hit alone"),
        pytest.param("reciprocal_rank", [1], ["1"], 1, id="1 is the id 1"),
    ],
)
def test_what_ours_is_instead(metric, expected, retrieved, value):
    (made,) = retrieval_metrics(metric)
    assert made.compute("Q?", [*expected], [*retrieved]).score == pytest.approx(value, abs=1e-15)


def test_repeats_never_raise_ours_above_one():
    above = [c for c in map(plain, CASES) if isinstance(c["theirs"], float) and c["theirs"] > 1]
    assert len(above) > 3
    assert all(0 <= ours(case) <= 1 for case in above)


@pytest.mark.parametrize("case", [pytest.param(c, id=c["note"]) for c in CASES])
def test_the_installed_framework_still_does_so(case):
    """So that a release which changes a definition is noticed, and the table with it."""
    given = case["input"]
    metric = METRIC_REGISTRY[case["metric"]](**given.get("init", {}))

    def value():
        if "retriever_returns" in given:
            nodes = [Document(id_=one["id"], text="x") for one in given["retriever_returns"]]
            evaluator = RetrieverEvaluator(metrics=[metric], retriever=Fixed(*nodes))
            return evaluator.evaluate("Q?", given["expected_ids"]).metric_vals_dict
        return metric.compute("Q?", given["expected_ids"], given["retrieved_ids"]).score

    if case["raises"]:
        with pytest.raises(ValueError, match="must be"):
            value()
    else:
        assert value() == pytest.approx(case["value"], abs=1e-12)
