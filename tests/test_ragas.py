"""Moving over from Ragas is a changed import: the older names, calls and documented values."""

import pytest

from ctxeval import MetricResult, NotScoredError, ragas
from ctxeval.testing import ScriptedLLM

PARIS = "Paris is the capital of France."
TOWER = "The Eiffel Tower is one of the most famous landmarks in Paris."
IDS = {
    "retrieved_context_ids": ["doc_1", "doc_2", "doc_3", "doc_4"],
    "reference_context_ids": ["doc_1", "doc_4", "doc_5", "doc_6"],
}
QUESTION = "Where is the Eiffel Tower located?"
ANSWER = "The Eiffel Tower is located in Paris."
BRAZIL = "The Brandenburg Gate is located in Berlin."


def judged(*contexts, **fields):
    return ragas.SingleTurnSample(user_input=QUESTION, retrieved_contexts=contexts, **fields)


def scripted():
    return ScriptedLLM(relevant={ANSWER}, supported={ANSWER: {PARIS}})


CASES = [
    pytest.param(
        lambda: ragas.LLMContextRecall(llm=scripted()),
        judged(PARIS, response=ANSWER, reference=ANSWER),
        1.0,
        id="recall by a model: the one claim is supported",
    ),
    pytest.param(
        ragas.NonLLMContextRecall,
        ragas.SingleTurnSample(retrieved_contexts=[PARIS], reference_contexts=[PARIS, TOWER]),
        0.5,
        id="recall by text: one of two",
    ),
    pytest.param(
        ragas.IDBasedContextRecall,
        ragas.SingleTurnSample(**{**IDS, "retrieved_context_ids": ["doc_1", "doc_2", "doc_3"]}),
        0.25,
        id="recall by id: one of four",
    ),
    pytest.param(
        lambda: ragas.LLMContextPrecisionWithReference(llm=scripted()),
        judged(ANSWER, BRAZIL, reference=ANSWER),
        1.0,
        id="precision with a reference: relevant first",
    ),
    pytest.param(
        lambda: ragas.ContextPrecisionWithReference(llm=scripted()),
        judged(BRAZIL, ANSWER, reference=ANSWER),
        0.5,
        id="precision with a reference: relevant second",
    ),
    pytest.param(
        lambda: ragas.LLMContextPrecisionWithoutReference(llm=scripted()),
        judged(ANSWER, BRAZIL, response=ANSWER),
        1.0,
        id="precision without a reference: relevant first",
    ),
    pytest.param(
        lambda: ragas.ContextPrecisionWithoutReference(llm=scripted()),
        judged(BRAZIL, ANSWER, response=ANSWER),
        0.5,
        id="precision without a reference: relevant second",
    ),
    pytest.param(
        lambda: ragas.ContextUtilization(llm=scripted()),
        judged(BRAZIL, ANSWER, response=ANSWER),
        0.5,
        id="utilization: relevant second",
    ),
    pytest.param(
        ragas.NonLLMContextPrecisionWithReference,
        ragas.SingleTurnSample(retrieved_contexts=[ANSWER], reference_contexts=[PARIS, TOWER]),
        1.0,
        id="precision by text: similar enough to the second reference",
    ),
    pytest.param(
        ragas.IDBasedContextPrecision,
        ragas.SingleTurnSample(**IDS),
        0.5,
        id="precision by id: two of four",
    ),
]


@pytest.mark.parametrize(("make", "sample", "expected"), CASES)
async def test_the_documented_values_by_the_older_call(make, sample, expected):
    assert await make().single_turn_ascore(sample) == expected
    assert make().single_turn_score(sample) == expected


@pytest.mark.parametrize(("make", "sample", "expected"), CASES)
async def test_the_documented_values_by_the_newer_call(make, sample, expected):
    fields = {name: value for name, value in sample if value is not None and name != "metadata"}
    result = await make().ascore(**fields)
    assert isinstance(result, MetricResult)
    assert result.value == expected


def test_the_older_names():
    llm = scripted()
    named = {
        ragas.LLMContextPrecisionWithReference: "llm_context_precision_with_reference",
        ragas.LLMContextPrecisionWithoutReference: "llm_context_precision_without_reference",
        ragas.LLMContextRecall: "context_recall",
        ragas.ContextPrecisionWithReference: "context_precision_with_reference",
        ragas.ContextPrecisionWithoutReference: "context_precision_without_reference",
        ragas.ContextPrecision: "context_precision",
        ragas.ContextUtilization: "context_utilization",
    }
    assert {metric(llm=llm).name for metric in named} == set(named.values())


@pytest.mark.parametrize(
    "measure", [ragas.DistanceMeasure.JARO, "jaro", "Jaro"], ids=["enum", "name", "capital"]
)
def test_measures_by_enum_and_by_name_with_one_threshold(measure):
    metric = ragas.NonLLMContextRecall(distance_measure=measure)
    # Jaro of abcd and abxy is 2/3, which 0.5 lets pass
    assert (
        metric.single_turn_score({"retrieved_contexts": ["abcd"], "reference_contexts": ["abxy"]})
        == 1
    )


async def test_no_number_is_an_error_never_nan():
    sample = ragas.SingleTurnSample(retrieved_context_ids=["a"], reference_context_ids=[])
    with pytest.raises(NotScoredError, match="no id is expected"):
        await ragas.IDBasedContextRecall().single_turn_ascore(sample)


def test_fields_of_other_metrics_are_kept_as_metadata():
    sample = ragas.SingleTurnSample(user_input="q", persona_name="p", rubrics={"a": "b"})
    assert sample.metadata == {"persona_name": "p", "rubrics": {"a": "b"}}


def test_a_sample_of_another_library_is_taken_by_its_fields():
    class Foreign:
        def model_dump(self, exclude_none):
            return {**IDS, "query_style": "plain"}

    assert ragas.IDBasedContextPrecision().single_turn_score(Foreign()) == 0.5
