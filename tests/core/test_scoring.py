from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

import ctxeval
from ctxeval import (
    EmbeddingSimilarity,
    HitRate,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    IdJudge,
    InvalidArgumentError,
    InvalidSampleError,
    NonLLMContextPrecision,
    NonLLMContextRecall,
    RecallAtK,
    Sample,
    TextJudge,
    Verdicts,
)
from ctxeval.testing import ScriptedLLM

SAMPLE = Sample(
    user_input="Which?",
    retrieved_contexts=["abcd", "wxyz"],
    retrieved_context_ids=[1, 2],
    reference_contexts=["abce", "mnop"],
    reference_context_ids=[1, 3],
)


class Counting:
    """A measure that counts its calls."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []

    def __call__(self, reference: str, chunk: str) -> float:
        self.pairs.append((reference, chunk))
        return float(reference[:3] == chunk[:3])


def broken_embedding(texts: Sequence[str]) -> list[list[float]]:
    raise ConnectionError("no route to the embedding server")


def too_much(reference: str, chunk: str) -> float:
    return 2.0


def values(results: dict[str, Any]) -> dict[str, float | None]:
    return {name: result.value for name, result in results.items()}


def test_a_dict_by_name_in_the_order_given() -> None:
    results = ctxeval.score(SAMPLE, ["ndcg@1", IDBasedContextRecall(), "non_llm_context_recall"])
    assert list(results) == ["ndcg@1", "id_based_context_recall", "non_llm_context_recall"]
    assert values(results) == {
        "ndcg@1": 1.0,
        "id_based_context_recall": 0.5,
        "non_llm_context_recall": 0.5,
    }


@pytest.mark.parametrize(
    ("measure", "reason"),
    [
        pytest.param(
            EmbeddingSimilarity(broken_embedding),
            "ConnectionError: no route to the embedding server",
            id="an embedding function that raises",
        ),
        pytest.param(too_much, "returned 2.0", id="a measure that returns 2.0"),
        pytest.param(
            EmbeddingSimilarity(lambda texts: [[1.0]]),
            "it must return one vector per text",
            id="too few vectors",
        ),
    ],
)
def test_one_metric_s_failure_does_not_cost_another(measure: Any, reason: str) -> None:
    failing = NonLLMContextPrecision(measure, threshold=0.5)
    also_failing = RecallAtK(1, judge=TextJudge(measure, 0.5))
    results = ctxeval.score(SAMPLE, [failing, HitRate(), also_failing, NonLLMContextRecall()])
    for metric in (failing, also_failing):
        assert (results[metric.name].value, results[metric.name].status) == (None, "failed")
        assert reason in results[metric.name].reason
    assert results["hit_rate"].value == 1
    assert results["non_llm_context_recall"].value == 0.5


def test_a_direct_call_lets_the_users_exception_through() -> None:
    with pytest.raises(ConnectionError):
        NonLLMContextRecall(EmbeddingSimilarity(broken_embedding), 0.5).score(SAMPLE)
    with pytest.raises(InvalidArgumentError, match=r"returned 2\.0 for 'abce' and 'abcd'"):
        NonLLMContextRecall(too_much, 0.5).score(SAMPLE)


def test_one_sample_s_failure_does_not_cost_another() -> None:
    def picky(reference: str, chunk: str) -> float:
        if "bad" in chunk:
            raise KeyError(chunk)
        return 1.0

    samples = [
        Sample(retrieved_contexts=[text], reference_contexts=["abc"])
        for text in ("good", "bad", "also good")
    ]
    first, second, third = NonLLMContextRecall(picky, 0.5).batch_score(samples)
    assert (first.value, third.value) == (1, 1)
    assert (second.status, second.reason) == ("failed", "KeyError: 'bad'")


class BrokenJudge(IdJudge):
    signature = "broken"
    shared_by = ("broken",)

    def judge(self, *args: Any, **options: Any) -> Verdicts:
        raise OSError("the judge is out")


def test_a_judge_that_raises_fails_its_own_metrics_only() -> None:
    results = ctxeval.score(SAMPLE, [HitRate(1, judge=BrokenJudge()), HitRate(2)])
    assert (results["hit_rate@1"].status, results["hit_rate@2"].value) == ("failed", 1.0)
    assert results["hit_rate@1"].reason == "OSError: the judge is out"


def test_text_metrics_share_their_verdicts() -> None:
    measure = Counting()
    metrics = [
        NonLLMContextPrecision(measure, 0.5),
        NonLLMContextRecall(measure, 0.5),
        RecallAtK(1, judge=TextJudge(measure, 0.5)),
    ]
    results = ctxeval.score(SAMPLE, metrics)
    assert values(results) == {
        "non_llm_context_precision_with_reference": 1.0,
        "non_llm_context_recall": 0.5,
        "recall@1[text]": 0.5,
    }
    assert len(measure.pairs) == len(set(measure.pairs)) <= 4


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda measure: TextJudge(measure, 0.75), id="another threshold"),
        pytest.param(lambda measure: TextJudge(Counting(), 0.5), id="another measure"),
    ],
)
def test_text_metrics_that_differ_do_not_share(other: Any) -> None:
    measure = Counting()
    metrics = [NonLLMContextRecall(measure, 0.5), RecallAtK(1, judge=other(measure))]
    results = ctxeval.score(SAMPLE, metrics)
    one, two = (results[metric.name].verdicts for metric in metrics)
    assert one is not two


def test_id_metrics_share_their_verdicts() -> None:
    results = ctxeval.score(SAMPLE, [IDBasedContextPrecision(), HitRate(2), "ndcg@10"])
    assert len({id(result.verdicts) for result in results.values()}) == 1


def test_a_batch_keeps_its_order_whatever_becomes_of_each() -> None:
    results = HitRate(1).batch_score(
        [
            {"retrieved_context_ids": ["a"], "reference_context_ids": ["a"]},
            {"retrieved_context_ids": ["a"]},
            {"retrieved_context_ids": ["a"], "reference_context_ids": []},
            {"retrieved_context_ids": [], "reference_context_ids": ["a"]},
            {"retrieved_context_ids": ["b"], "reference_context_ids": {"a": 1, "b": 0}},
        ]
    )
    assert [(result.value, result.status) for result in results] == [
        (1.0, "scored"),
        (None, "skipped"),
        (None, "undefined"),
        (0.0, "scored"),
        (0.0, "scored"),
    ]


def test_an_empty_batch_and_a_generator() -> None:
    assert HitRate(1).batch_score([]) == []
    assert len(HitRate(1).batch_score(sample for sample in [SAMPLE, SAMPLE])) == 2


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        pytest.param(
            [{}, {"user_inputs": "q"}],
            r"^samples\[1\]: unknown field 'user_inputs': did you mean 'user_input'",
            id="an unknown field",
        ),
        pytest.param(
            [{}, {}, {"retrieved_contexts": "abc"}],
            r"^samples\[2\]: retrieved_contexts: 'abc' is one string",
            id="a string for a list",
        ),
        pytest.param([7], r"^samples\[0\]: 7 is a int: give a Sample", id="no sample"),
        pytest.param(SAMPLE, "give a list of samples$", id="one sample"),
        pytest.param({"user_input": "q"}, "give a list of samples$", id="one dict"),
        pytest.param("samples.jsonl", "give a list of samples$", id="a path"),
        pytest.param(None, "^samples: None is no list", id="None"),
    ],
)
async def test_an_error_in_a_batch_names_the_sample(samples: Any, message: str) -> None:
    with pytest.raises(InvalidSampleError, match=message):
        HitRate(1).batch_score(samples)
    with pytest.raises(InvalidSampleError, match=message):
        await HitRate(1).abatch_score(samples)


async def test_works_inside_a_running_loop() -> None:
    llm = ScriptedLLM(relevant={"abcd"})
    assert values(ctxeval.score(SAMPLE, "context_relevance", llm)) == {"context_relevance": 0.5}
    alike = await asyncio.gather(
        *(ctxeval.ascore(SAMPLE, ["context_relevance", "hit_rate@1"], llm) for _ in range(3))
    )
    assert all(values(one) == {"context_relevance": 0.5, "hit_rate@1": 1.0} for one in alike)


def test_metrics_by_one_model_and_purpose_share_their_calls() -> None:
    llm = ScriptedLLM(relevant={"abcd"}, supported={"The first.": {"abcd"}})
    sample = SAMPLE.model_copy(update={"reference": "The first."})
    results = ctxeval.score(sample, ["context_precision", "context_recall"], llm)
    assert values(results) == {"context_precision": 1.0, "context_recall": 1.0}
    assert len(llm.calls) == 1
    assert results["context_precision"].usage is results["context_recall"].usage
