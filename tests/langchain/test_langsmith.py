"""Metrics in `langsmith.evaluate`, run locally, and by openevals' calling convention."""

from __future__ import annotations

import asyncio
import json
import uuid
from datetime import UTC, datetime

import pytest

pytest.importorskip("langchain_core")

import langsmith
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langsmith.schemas import Example

from ctxeval import (
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    ContextUtilization,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    InvalidArgumentError,
    NonLLMContextRecall,
    ReciprocalRank,
)
from ctxeval.testing import ScriptedLLM
from ctxeval_langchain.langsmith import as_langsmith_evaluator

pytestmark = pytest.mark.filterwarnings("ignore:'upload_runs' parameter is in beta")

RECALL = as_langsmith_evaluator(IDBasedContextRecall())
EXPECTED = {"reference_ids": ["d2", "d4"]}
D1, D2 = (Document(id=f"d{n}", page_content=f"fact {n}") for n in (1, 2))
FACT_2 = ScriptedLLM(relevant={"fact 2"}, supported={"Fact two.": {"fact 2"}})


def judged(kind, llm=FACT_2):
    return as_langsmith_evaluator(kind(llm))


# What is read from the outputs. Of d2 and d4, d2 is found: 1/2.


@pytest.mark.parametrize("key", ["contexts", "documents", "context", "retrieved_contexts"])
@pytest.mark.parametrize(
    "found",
    [
        pytest.param([D1, D2], id="Documents"),
        pytest.param([{"id": "d1", "page_content": "fact 1"}, {"id": "d2"}], id="dicts"),
        pytest.param([{"id": "d1", "text": "fact 1"}, D2], id="a mixture"),
        pytest.param([dumpd(D1), dumpd(D2)], id="serialised by LangChain"),
        pytest.param([D1.model_dump(), D2.model_dump()], id="serialised by pydantic"),
        pytest.param((D1, D2), id="a tuple"),
        pytest.param(D2, id="one alone"),
        pytest.param({"documents": [D1, D2]}, id="within a dict"),
        pytest.param([D2, "fact 3"], id="one without an id"),
    ],
)
def test_finds_the_ids(key, found):
    feedback = RECALL(outputs={key: found}, reference_outputs=EXPECTED)
    assert (feedback["key"], feedback["score"]) == ("id_based_context_recall", 0.5)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(["fact 1", "fact 2"], id="texts"),
        pytest.param([D1, D2], id="Documents"),
        pytest.param([{"text": "fact 1"}, {"page_content": "fact 2"}], id="dicts"),
    ],
)
def test_finds_the_texts(found):
    relevance = judged(ContextRelevance)
    assert relevance(inputs={"question": "Q?"}, outputs={"contexts": found})["score"] == 0.5


@pytest.mark.parametrize("inputs", ["Q?", {"question": "Q?"}, {"input": "Q?"}, {"anything": "Q?"}])
def test_finds_the_question(inputs):
    llm = ScriptedLLM(relevant=lambda question, _: question == "Q?")
    feedback = judged(ContextRelevance, llm)(inputs=inputs, outputs={"contexts": ["a"]})
    assert feedback["score"] == 1.0


@pytest.mark.parametrize(
    "expected",
    [
        "Fact two.",
        {"reference": "Fact two."},
        {"answer": "Fact two."},
        {"reference_claims": ["Fact two."]},
    ],
)
def test_finds_the_reference(expected):
    recall = judged(ContextRecall)
    feedback = recall(inputs="Q?", outputs={"contexts": ["fact 2"]}, reference_outputs=expected)
    assert feedback["score"] == 1.0


@pytest.mark.parametrize("answer", ["It is so.", AIMessage("It is so.")])
def test_finds_the_answer(answer):
    utilization = judged(ContextUtilization)
    outputs = {"contexts": ["fact 2"], "answer": answer}
    assert utilization(inputs="Q?", outputs=outputs)["score"] == 1.0


def test_takes_the_context_as_openevals_gives_it():
    relevance = judged(ContextRelevance)
    feedback = relevance(inputs="Q?", outputs="It is so.", context={"documents": ["fact 2"]})
    assert feedback["score"] == 1.0


def test_takes_expected_texts():
    recall = as_langsmith_evaluator(NonLLMContextRecall())
    given = {"reference_contexts": ["fact 2", "something else altogether"]}
    assert recall(outputs={"contexts": ["fact 2"]}, reference_outputs=given)["score"] == 0.5


def test_takes_ids_alone():
    feedback = RECALL(outputs={"retrieved_ids": ["d2"]}, reference_outputs=EXPECTED)
    assert feedback["score"] == 0.5


# Where there is no number, there is none: neither 0 nor NaN.


@pytest.mark.parametrize(
    ("evaluator", "outputs", "expected", "status", "comment"),
    [
        pytest.param(
            RECALL, {"documents": [D1]}, None, "skipped", "reference_context_ids", id="no reference"
        ),
        pytest.param(
            RECALL, {"answer": "a"}, EXPECTED, "skipped", "retrieved_context_ids", id="no contexts"
        ),
        pytest.param(
            RECALL, {"contexts": ["a"]}, EXPECTED, "skipped", "retrieved_context_ids", id="no ids"
        ),
        pytest.param(
            RECALL, {"documents": [D1]}, {"reference_ids": []}, "undefined", "no id", id="none exp."
        ),
        pytest.param(
            RECALL, {"documents": 7}, EXPECTED, "failed", "the contexts are a int", id="no list"
        ),
        pytest.param(
            RECALL, {"documents": [7]}, EXPECTED, "failed", "a context is a int", id="no document"
        ),
        pytest.param(
            RECALL, {"documents": [D1]}, {"reference_ids": "d2"}, "failed", "one string", id="a str"
        ),
        pytest.param(
            judged(ContextPrecision),
            {"documents": [{"id": "d1"}]},
            {"reference": "R."},
            "skipped",
            "retrieved_contexts",
            id="no texts",
        ),
        pytest.param(
            judged(ContextPrecision, ScriptedLLM(replies=[ConnectionError("away")])),
            {"contexts": ["a"]},
            {"reference": "R."},
            "failed",
            "away",
            id="the judge is away",
        ),
    ],
)
def test_says_why_there_is_no_score(evaluator, outputs, expected, status, comment):
    feedback = evaluator(inputs="Q?", outputs=outputs, reference_outputs=expected)
    assert feedback["score"] is None
    assert feedback["metadata"]["status"] == status
    assert comment in feedback["comment"]


def test_without_a_question_nothing_is_judged():
    feedback = judged(ContextRelevance)(outputs={"contexts": ["a"]})
    assert (feedback["score"], feedback["metadata"]["status"]) == (None, "skipped")


def test_nothing_retrieved_is_nothing_found():
    assert RECALL(outputs={"documents": []}, reference_outputs=EXPECTED)["score"] == 0.0


def test_says_what_is_no_metric():
    with pytest.raises(InvalidArgumentError, match="metric"):
        as_langsmith_evaluator("context_recall")


def test_shows_the_verdicts_cut_short():
    text = "x" * 1000
    llm = ScriptedLLM(relevant={text})
    feedback = judged(ContextRelevance, llm)(inputs="Q?", outputs={"contexts": ["no", text]})
    metadata = feedback["metadata"]
    assert [verdict["value"] for verdict in metadata["chunks"]] == [False, True]
    assert metadata["chunks"][1]["text"] == "x" * 99 + "…"
    assert metadata["bounds"] == [0.5, 0.5]
    assert metadata["signature"].startswith("context_relevance/1 llm(")
    assert feedback["comment"].splitlines()[0] == "- no: by script"
    assert len(json.dumps(feedback)) < 2000


# In LangSmith, run locally.


class Kb(BaseRetriever):
    ids: tuple = ("d1", "d2")

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(id=id, page_content=f"fact {id[1:]}") for id in self.ids]


class Away(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        raise ConnectionError("the index is away")


def example(outputs=EXPECTED):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ids = {"id": uuid.UUID(int=1), "dataset_id": uuid.UUID(int=2)}
    return Example(**ids, inputs={"question": "Q?"}, outputs=outputs, created_at=now)


SENDS_NOTHING = langsmith.Client(
    "http://127.0.0.1:9", api_key="x", tracing_sampling_rate=0, auto_batch_tracing=False
)


def evaluate(target, *evaluators, outputs=EXPECTED, by="evaluate"):
    """Give key, score and comment of every feedback."""

    options = {
        "data": [example(outputs)],
        "evaluators": evaluators,
        "upload_results": False,
        "client": SENDS_NOTHING,
    }

    async def arows():
        async def atarget(inputs: dict) -> dict:
            return await asyncio.to_thread(target, inputs)

        return [row async for row in await langsmith.aevaluate(atarget, **options)]

    (row,) = langsmith.evaluate(target, **options) if by == "evaluate" else asyncio.run(arows())
    results = row["evaluation_results"]["results"]
    return {result.key: (result.score, result.comment) for result in results}


BY = pytest.mark.parametrize("by", ["evaluate", "aevaluate"])


@BY
def test_in_langsmith(by):
    def target(inputs: dict) -> dict:
        return {"answer": "a", "documents": Kb().invoke(inputs["question"])}

    metrics = [IDBasedContextPrecision(), IDBasedContextRecall(), ReciprocalRank()]
    metrics.append(ContextRelevance(FACT_2))
    feedback = evaluate(target, *map(as_langsmith_evaluator, metrics), by=by)
    assert {key: score for key, (score, _) in feedback.items()} == {
        "id_based_context_precision": 0.5,
        "id_based_context_recall": 0.5,
        "reciprocal_rank": 0.5,
        "context_relevance": 0.5,
    }


def test_in_langsmith_without_a_value():
    feedback = evaluate(lambda inputs: {"answer": "a"}, RECALL)
    score, comment = feedback["id_based_context_recall"]
    assert score is None
    assert "retrieved_context_ids" in comment


def answers(retriever):
    """Make an application that shows its answer alone."""
    chain = retriever | RunnableLambda(lambda documents: {"answer": f"{len(documents)} found"})
    return lambda inputs: chain.invoke(inputs["question"])


class Reranking(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return Kb(ids=("d4", "d5")).invoke(query, {"callbacks": run_manager.get_child()})[:1]


def failing_first(inputs: dict) -> dict:
    def attempt(_):
        Kb(ids=("d4",)).invoke("Q?")
        raise ConnectionError("away")

    chain = RunnableLambda(attempt).with_fallbacks([RunnableLambda(lambda _: Kb().invoke("Q?"))])
    chain.invoke("Q?")
    return {"answer": "a"}


def failing_last(inputs: dict) -> dict:
    RunnableLambda(lambda _: Kb().invoke("Q?") and 1 / 0).invoke("Q?")


def two_searches(inputs: dict) -> dict:
    return {"answer": str([kb.invoke("Q?") for kb in (Kb(), Kb(ids=("d1", "d4")))])}


@langsmith.traceable(run_type="retriever")
def own_retriever(query):
    return [{"page_content": "fact 2", "type": "Document", "metadata": {"id": "d2"}}]


@BY
@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(answers(Kb()), 0.5, id="a chain: d2 of d2, d4"),
        pytest.param(answers(Reranking()), 0.5, id="a reranker: d4 alone"),
        pytest.param(failing_first, 0.5, id="a fallback: not the first attempt's d4"),
        pytest.param(failing_last, 0.5, id="a failed application: what it searched before"),
        pytest.param(two_searches, 1.0, id="two searches: d2 and d4"),
        pytest.param(lambda inputs: {"n": len(own_retriever("Q?"))}, 0.5, id="@traceable"),
        pytest.param(lambda inputs: {"documents": [D1, D2]}, None, id="no retriever run"),
    ],
)
def test_walks_the_run(target, expected, by):
    evaluator = as_langsmith_evaluator(IDBasedContextRecall(), walk_run=True)
    score, comment = evaluate(target, evaluator, by=by)["id_based_context_recall"]
    assert score == expected
    if expected is None:
        assert "no retriever run" in comment


def test_walking_finds_question_and_reference():
    recall = as_langsmith_evaluator(ContextRecall(FACT_2), walk_run=True)
    expected = {"answer": "Fact two."}
    assert evaluate(answers(Kb()), recall, outputs=expected)["context_recall"][0] == 1.0
    assert FACT_2.documents[-1]["question"] == "Q?"


def test_a_failed_search_is_no_empty_one():
    def target(inputs: dict) -> dict:
        try:
            Away().invoke("Q?")
        except ConnectionError:
            return {"answer": "I don't know."}

    evaluator = as_langsmith_evaluator(IDBasedContextRecall(), walk_run=True)
    score, comment = evaluate(target, evaluator)["id_based_context_recall"]
    assert score is None
    assert "the index is away" in comment
