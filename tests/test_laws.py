"""Laws that hold for every metric. A new metric is one line in ROWS."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    JudgeError,
    LLMJudge,
    Metric,
    MetricResult,
    MissingFieldError,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    NotScoredError,
    PrecisionAtK,
    RecallAtK,
    ReciprocalRank,
    Sample,
    Span,
    SpanIoU,
    SpanPrecision,
    SpanPrecisionOmega,
    SpanRecall,
    TextJudge,
)
from ctxeval.metrics import RankMetric
from ctxeval.naming import metric_by_name
from ctxeval.testing import ScriptedLLM

IDS = ("retrieved_context_ids", "reference_context_ids")
TEXTS = ("retrieved_contexts", "reference_contexts")
SPANS = ("retrieved_spans", "reference_spans")
REFERENCE = ("user_input", "retrieved_contexts", "reference")
RESPONSE = ("user_input", "retrieved_contexts", "response")
QUESTION = ("user_input", "retrieved_contexts")


@dataclass(frozen=True)
class Row:
    """What is to be known of a metric.

    Attributes:
        name: The name it goes by.
        make: Makes it; those without a model have no use for the argument.
        needs: The fields that it needs, and no others.
        rank_blind: Does the order of what was retrieved change nothing?
        noise_costs: Does one more irrelevant chunk at the end lower it?
    """

    name: str
    make: Callable[[ScriptedLLM], Metric]
    needs: tuple[str, ...]
    rank_blind: bool = False
    noise_costs: bool = False


def free(metric: type[Metric], *args: Any, **options: Any) -> Callable[[ScriptedLLM], Metric]:
    return lambda llm: metric(*args, **options)


def by_text(metric: type[RankMetric], k: int) -> Callable[[ScriptedLLM], Metric]:
    return lambda llm: metric(k, judge=TextJudge())


def by_model(metric: type[RankMetric], k: int) -> Callable[[ScriptedLLM], Metric]:
    return lambda llm: metric(k, judge=LLMJudge(llm))


RETRIEVED_AP = free(AveragePrecision, normalize="retrieved")
ROWS = [
    Row("context_precision", ContextPrecision, REFERENCE),
    Row("context_utilization", ContextUtilization, RESPONSE),
    Row("context_recall", ContextRecall, REFERENCE, rank_blind=True),
    Row("context_relevance", ContextRelevance, QUESTION, rank_blind=True, noise_costs=True),
    Row(
        "non_llm_context_precision_with_reference", free(NonLLMContextPrecisionWithReference), TEXTS
    ),
    Row("non_llm_context_recall", free(NonLLMContextRecall), TEXTS, rank_blind=True),
    Row(
        "id_based_context_precision",
        free(IDBasedContextPrecision),
        IDS,
        rank_blind=True,
        noise_costs=True,
    ),
    Row("id_based_context_recall", free(IDBasedContextRecall), IDS, rank_blind=True),
    Row("hit_rate", free(HitRate), IDS, rank_blind=True),
    Row("hit_rate@3", free(HitRate, 3), IDS),
    Row("hit_rate@3[text]", by_text(HitRate, 3), TEXTS),
    Row("reciprocal_rank", free(ReciprocalRank), IDS),
    Row("reciprocal_rank@3", free(ReciprocalRank, 3), IDS),
    Row("reciprocal_rank@3[llm]", by_model(ReciprocalRank, 3), REFERENCE),
    Row("precision@3", free(PrecisionAtK, 3), IDS),
    Row("precision@3[text]", by_text(PrecisionAtK, 3), TEXTS),
    Row("recall@3", free(RecallAtK, 3), IDS),
    Row("recall@3[text]", by_text(RecallAtK, 3), TEXTS),
    Row("recall@3[llm]", by_model(RecallAtK, 3), REFERENCE),
    Row("ndcg", free(NDCG), IDS),
    Row("ndcg@3", free(NDCG, 3), IDS),
    Row("ndcg@3[text]", by_text(NDCG, 3), TEXTS),
    Row("ndcg@3[llm]", by_model(NDCG, 3), REFERENCE),
    Row("average_precision", free(AveragePrecision), IDS),
    Row("average_precision@3", free(AveragePrecision, 3), IDS),
    Row("average_precision[retrieved]", RETRIEVED_AP, IDS),
    Row("average_precision@3[text]", by_text(AveragePrecision, 3), TEXTS),
    Row("span_recall", free(SpanRecall), SPANS, rank_blind=True),
    Row("span_precision", free(SpanPrecision), SPANS, rank_blind=True, noise_costs=True),
    Row("span_iou", free(SpanIoU), SPANS, rank_blind=True, noise_costs=True),
]
every_metric = pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS])
every_need = pytest.mark.parametrize(
    ("row", "field"),
    [pytest.param(row, field, id=f"{row.name}, {field}") for row in ROWS for field in row.needs],
)


def rows(wanted: Callable[[Row], bool]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "row", [pytest.param(row, id=row.name) for row in ROWS if wanted(row)]
    )


def calls_model(row: Row) -> bool:
    return "user_input" in row.needs


def is_ranked(row: Row) -> bool:
    return isinstance(row.make(ScriptedLLM()), RankMetric)


# Documents are numbers. Their texts share no letter, and each supports one claim.
DOCUMENTS = range(8)
RETRIEVED = st.lists(st.sampled_from(DOCUMENTS), max_size=7)
EXPECTED = st.lists(st.sampled_from(DOCUMENTS), min_size=1, max_size=5, unique=True)


def text_of(document: int) -> str:
    return "abcdefgh"[document] * 9


def claim_of(document: int) -> str:
    return f"Claim {document}."


def fields_of(row: Row, retrieved: Sequence[int], expected: Sequence[int]) -> dict[str, Any]:
    """Tell of a retrieval in the fields that the metric needs, and in no others."""
    claims = " ".join(map(claim_of, expected))
    known = {
        "user_input": "Which?" if expected else " ",
        "reference": claims,
        "response": claims,
        "retrieved_contexts": [text_of(document) for document in retrieved],
        "reference_contexts": [text_of(document) for document in expected],
        "retrieved_context_ids": [f"d{document}" for document in retrieved],
        "reference_context_ids": [f"d{document}" for document in expected],
        "retrieved_spans": [Span("d", 10 * document, 10 * document + 7) for document in retrieved],
        "reference_spans": [Span("d", 10 * document, 10 * document + 7) for document in expected],
    }
    return {field: known[field] for field in row.needs}


def model_for(expected: Sequence[int]) -> ScriptedLLM:
    return ScriptedLLM(
        relevant={text_of(document) for document in expected},
        supported={claim_of(document): {text_of(document)} for document in expected},
    )


def scored(row: Row, retrieved: Sequence[int], expected: Sequence[int]) -> MetricResult:
    return row.make(model_for(expected)).score(fields_of(row, retrieved, expected))


def value_of(row: Row, retrieved: Sequence[int], expected: Sequence[int]) -> float:
    return float(scored(row, retrieved, expected))


def test_the_table_holds_every_public_metric() -> None:
    public = {
        value
        for value in (getattr(ctxeval, name) for name in ctxeval.__all__)
        if isinstance(value, type) and issubclass(value, Metric) and value is not Metric
    }
    public.remove(SpanPrecisionOmega)  # it says something of a chunking, not of a retrieval
    assert {type(row.make(ScriptedLLM())) for row in ROWS} == public


@every_metric
def test_goes_by_its_name(row: Row) -> None:
    llm = ScriptedLLM()
    made = row.make(llm)
    named = metric_by_name(row.name, llm)
    assert made.name == named.name == row.name
    assert type(named) is type(made)
    assert named.signature == made.signature


@every_metric
@settings(max_examples=30)
@given(RETRIEVED, EXPECTED)
def test_lies_between_0_and_1(row: Row, retrieved: list[int], expected: list[int]) -> None:
    result = scored(row, retrieved, expected)
    assert type(result.value) is float
    assert 0 <= result.value <= 1
    assert result.bounds == (result.value, result.value)
    assert (result.status, result.reason, result.metric) == ("scored", "", row.name)


@every_metric
def test_a_perfect_retrieval_is_exactly_1(row: Row) -> None:
    assert value_of(row, [0, 1, 2], [0, 1, 2]) == 1
    assert value_of(row, [2, 0, 1], [0, 1, 2]) == 1


@every_metric
def test_a_useless_retrieval_is_exactly_0(row: Row) -> None:
    assert value_of(row, [3, 4, 5], [0, 1, 2]) == 0


@every_metric
def test_nothing_retrieved_is_0_and_costs_no_call(row: Row) -> None:
    llm = model_for([0, 1])
    result = row.make(llm).score(fields_of(row, [], [0, 1]))
    assert (result.value, result.status, result.bounds) == (0.0, "scored", (0.0, 0.0))
    assert llm.calls == []


@every_metric
@pytest.mark.parametrize(
    "retrieved", [pytest.param([0], id="some retrieved"), pytest.param([], id="none retrieved")]
)
def test_nothing_expected_is_undefined_and_costs_no_call(row: Row, retrieved: list[int]) -> None:
    llm = model_for([])
    metric = row.make(llm)
    fields = fields_of(row, retrieved, [])
    for result in (metric.score(fields), *metric.batch_score([fields])):
        assert (result.value, result.status, result.bounds) == (None, "undefined", None)
        assert result.reason
        with pytest.raises(NotScoredError, match="undefined"):
            float(result)
    assert llm.calls == []


@every_need
def test_a_missing_field_is_named(row: Row, field: str) -> None:
    llm = model_for([0])
    metric = row.make(llm)
    complete = fields_of(row, [0], [0])
    lacking = {name: value for name, value in complete.items() if name != field}
    with pytest.raises(MissingFieldError, match=field) as raised:
        metric.score(lacking)
    assert row.name in str(raised.value)
    skipped, scored = metric.batch_score([lacking, complete])
    also_skipped = ctxeval.score(lacking, [metric])[row.name]
    for result in (skipped, also_skipped):
        assert (result.value, result.status) == (None, "skipped")
        assert field in result.reason
        with pytest.raises(NotScoredError, match=field):
            float(result)
    assert scored.value is not None


@every_need
def test_an_explicit_none_is_a_missing_field(row: Row, field: str) -> None:
    with pytest.raises(MissingFieldError, match=field):
        row.make(model_for([0])).score({**fields_of(row, [0], [0]), field: None})


@every_metric
def test_all_ways_of_asking_agree(row: Row) -> None:
    llm = model_for([0, 1])
    metric = row.make(llm)
    fields = fields_of(row, [0, 3, 1, 4], [0, 1])
    metric.score(fields)  # a model's verdicts are kept: from now on they cost the same, nothing
    first = metric.score(fields)
    assert metric.score(**fields) == first
    assert metric.score(Sample(**fields)) == first
    assert metric.batch_score([fields, Sample(**fields)]) == [first, first]
    assert ctxeval.score(fields, metric) == {row.name: first}
    assert ctxeval.score(fields, row.name, llm) == {row.name: first}


@every_metric
async def test_asynchronous_ways_of_asking_agree(row: Row) -> None:
    llm = model_for([0, 1])
    metric = row.make(llm)
    fields = fields_of(row, [0, 3, 1, 4], [0, 1])
    await metric.ascore(fields)
    first = await metric.ascore(fields)
    assert first.value is not None
    assert await metric.abatch_score([fields, fields]) == [first, first]
    assert await ctxeval.ascore(fields, [metric]) == {row.name: first}
    assert first == metric.score(fields)


@every_metric
@settings(max_examples=20)
@given(RETRIEVED, EXPECTED, st.randoms(use_true_random=False))
def test_the_order_of_the_reference_changes_nothing(
    row: Row, retrieved: list[int], expected: list[int], random: Any
) -> None:
    shuffled = random.sample(expected, len(expected))
    assert value_of(row, retrieved, shuffled) == value_of(row, retrieved, expected)


@rows(lambda row: row.rank_blind)
@settings(max_examples=20)
@given(RETRIEVED, EXPECTED, st.randoms(use_true_random=False))
def test_the_order_of_the_retrieved_changes_nothing(
    row: Row, retrieved: list[int], expected: list[int], random: Any
) -> None:
    shuffled = random.sample(retrieved, len(retrieved))
    assert value_of(row, shuffled, expected) == value_of(row, retrieved, expected)


@rows(lambda row: not row.rank_blind)
def test_a_relevant_chunk_beyond_the_third_place_is_worth_less(row: Row) -> None:
    late = value_of(row, [4, 5, 6, 0], [0])
    assert late < value_of(row, [0, 4, 5, 6], [0])


@every_metric
@settings(max_examples=20)
@given(
    st.lists(st.sampled_from(DOCUMENTS), min_size=2, max_size=7, unique=True), EXPECTED, st.data()
)
def test_a_relevant_chunk_that_moves_up_never_lowers_it(
    row: Row, retrieved: list[int], expected: list[int], data: st.DataObject
) -> None:
    rank = data.draw(st.integers(0, len(retrieved) - 2))
    upper, lower = sorted(retrieved[rank : rank + 2], key=lambda document: document in expected)
    worse = [*retrieved[:rank], upper, lower, *retrieved[rank + 2 :]]
    better = [*retrieved[:rank], lower, upper, *retrieved[rank + 2 :]]
    assert value_of(row, worse, expected) <= value_of(row, better, expected)


@every_metric
@settings(max_examples=20)
@given(st.lists(st.sampled_from(range(7)), max_size=6), st.sets(st.sampled_from(range(7))))
def test_an_irrelevant_chunk_at_the_end(row: Row, retrieved: list[int], others: set[int]) -> None:
    expected = [0, *sorted(others - {0})]
    before = value_of(row, retrieved, expected)
    after = value_of(row, [*retrieved, 7], expected)
    assert after < before if row.noise_costs and before else after == before


@rows(is_ranked)
@settings(max_examples=20)
@given(st.lists(st.sampled_from(range(4)), max_size=7), st.sets(st.sampled_from(range(4))))
def test_a_rank_metric_credits_a_chunk_once(
    row: Row, retrieved: list[int], others: set[int]
) -> None:
    expected = sorted(others | {0})
    seen: set[int] = set()
    blanked = [7 if d in seen or seen.add(d) else d for d in retrieved]
    assert value_of(row, retrieved, expected) == value_of(row, blanked, expected)


@rows(lambda row: row.needs == IDS)
@settings(max_examples=20)
@given(RETRIEVED, EXPECTED)
def test_ids_agree_as_numbers_and_as_text(
    row: Row, retrieved: list[int], expected: list[int]
) -> None:
    metric = row.make(ScriptedLLM())
    as_numbers = metric.score(retrieved_context_ids=retrieved, reference_context_ids=expected)
    as_text = metric.score(
        retrieved_context_ids=[str(document) for document in retrieved],
        reference_context_ids=[str(document) for document in expected],
    )
    mixed = metric.score(
        retrieved_context_ids=[float(document) for document in retrieved],
        reference_context_ids={str(document): 1 for document in expected},
    )
    assert as_numbers == as_text == mixed
    assert as_numbers.value == value_of(row, retrieved, expected)


@every_metric
@pytest.mark.parametrize(
    ("retrieved", "expected", "status"),
    [
        pytest.param([0, 3, 1], [0, 1, 2], "scored", id="scored"),
        pytest.param([], [0], "scored", id="nothing retrieved"),
        pytest.param([0], [], "undefined", id="undefined"),
    ],
)
def test_a_result_can_be_kept_and_sent(
    row: Row, retrieved: list[int], expected: list[int], status: str
) -> None:
    result = scored(row, retrieved, expected)
    assert result.status == status
    for again in (
        pickle.loads(pickle.dumps(result)),
        copy.copy(result),
        copy.deepcopy(result),
        MetricResult.from_json(result.to_json()),
        MetricResult.from_dict(json.loads(json.dumps(result.to_dict()))),
    ):
        assert again == result
        assert again.to_dict() == result.to_dict()


@rows(calls_model)
def test_a_model_without_reply_raises_directly_and_fails_in_a_batch(row: Row) -> None:
    llm = ScriptedLLM(replies=itertools.repeat(JudgeError("the endpoint is down")))
    metric = row.make(llm)
    fields = fields_of(row, [0, 1], [0])
    with pytest.raises(JudgeError, match="the endpoint is down"):
        metric.score(fields)
    for result in (*metric.batch_score([fields]), ctxeval.score(fields, metric)[row.name]):
        assert (result.value, result.status) == (None, "failed")
        assert "the endpoint is down" in result.reason


@rows(calls_model)
def test_a_blank_chunk_is_irrelevant_without_a_call(row: Row) -> None:
    llm = model_for([0])
    fields = fields_of(row, [0], [0]) | {"retrieved_contexts": [" ", "\n"]}
    assert row.make(llm).score(fields).value == 0
    assert llm.calls == []


@pytest.mark.parametrize("name", ["context_recall", "recall@3[llm]"])
def test_claims_stand_in_for_the_reference(name: str) -> None:
    metric = metric_by_name(name, model_for([0, 1]))
    fields = {"user_input": "Which?", "retrieved_contexts": [text_of(0)]}
    claims = [claim_of(0), claim_of(1)]
    assert metric.score(**fields, reference_claims=claims).value == 0.5
    assert metric.score(**fields, reference_claims=[]).status == "undefined"
