"""The evaluator: its results, its reasons, and the places where LlamaIndex takes one."""

import asyncio
import pickle

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core import Settings
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import BatchEvalRunner
from llama_index.core.evaluation.base import EvaluationResult
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine, RetryQueryEngine
from llama_index.core.schema import MetadataMode, QueryBundle
from llamaindex_parts import Fixed, Judge, hits, index, node

from ctxeval import (
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    CtxEvalError,
    IDBasedContextRecall,
    InvalidArgumentError,
    NonLLMContextRecall,
)
from ctxeval.testing import ScriptedLLM
from ctxeval_llamaindex.evaluation_result import ContextEvaluationResult
from ctxeval_llamaindex.evaluator import ContextEvaluator
from ctxeval_llamaindex.llm import as_llm
from ctxeval_llamaindex.suppression import suppressed

RUNNER_WARNS = pytest.mark.filterwarnings("ignore:asyncio_module:DeprecationWarning")


def judge(*relevant, **options):
    return as_llm(Judge(ScriptedLLM(relevant=set(relevant), **options)))


async def both(evaluator, *args, **kwargs):
    """Evaluate by both ways, which must agree but for what a kept verdict costs."""
    result = evaluator.evaluate(*args, **kwargs)
    other = await evaluator.aevaluate(*args, **kwargs)
    assert other.verdicts == result.verdicts
    without = {"metric_result"}
    assert other.model_dump(exclude=without) == result.model_dump(exclude=without)
    return result


async def test_texts_and_ids():
    evaluator = ContextEvaluator("id_based_context_recall", threshold=0.6)
    result = await both(
        evaluator,
        "Q?",
        "A.",
        ["x", "y"],
        context_ids=["n1", 2],
        reference="R",
        reference_contexts=["r", "s", "t"],
        reference_ids=["n1", "2", "n3"],
        sleep_time_in_seconds=0,
    )
    assert isinstance(result, EvaluationResult)
    assert (result.query, result.response, result.contexts) == ("Q?", "A.", ["x", "y"])
    assert (result.context_ids, result.context_scores) == (["n1", "2"], None)
    assert result.score == 2 / 3
    assert result.passing is True
    assert result.invalid_reason is None
    assert result.feedback == (
        "id_based_context_recall is 0.667, the threshold 0.6\n"
        "+ n1\n+ 2\n- n3: no chunk with this id was retrieved"
    )


@pytest.mark.parametrize(
    ("threshold", "passing"), [(0, True), (0.5, True), (0.51, False), (1, False)]
)
def test_the_threshold_includes_itself(threshold, passing):
    evaluator = ContextEvaluator(IDBasedContextRecall(), threshold=threshold)
    result = evaluator.evaluate(context_ids=["a"], reference_ids=["a", "b"])
    assert (result.score, result.passing) == (0.5, passing)


@pytest.mark.parametrize(
    ("metric", "given", "score"),
    [
        (
            "non_llm_context_recall",
            {"contexts": ["abc"], "reference_contexts": ["abc", "xyz"]},
            0.5,
        ),
        ("ndcg@2", {"context_ids": ["a", "b"], "reference_ids": {"a": 1, "b": 0}}, 1.0),
        ("mrr", {"context_ids": ["a", "b"], "reference_context_ids": ["b"]}, 0.5),
        ("hit_rate@3", {"context_ids": [], "reference_ids": ["b"]}, 0.0),
    ],
)
async def test_metrics_by_name(metric, given, score):
    assert (await both(ContextEvaluator(metric), **given)).score == score


async def test_a_model_judges():
    script = ScriptedLLM(relevant={"useful"}, supported={"One.": {"useful"}})
    llm = Judge(script)
    given = {"reference": "One. Two.", "contexts": ["idle", "useful"], "query": "Q?"}
    for metric in ("context_precision", ContextPrecision(as_llm(llm))):
        result = await both(ContextEvaluator(metric, llm=llm), **given)
        assert result.score == 0.5
        assert [verdict.value for verdict in result.verdicts.chunks] == [False, True]
    recall = await both(ContextEvaluator(ContextRecall(as_llm(llm))), **given)
    assert recall.score == 0.5
    assert recall.metric_result.verdicts.units[0].matched == (1,)


@pytest.mark.parametrize(
    ("metric", "context_text", "text"),
    [
        (ContextRelevance, None, "file: a.md\n\nalpha"),
        (ContextRelevance, "none", "alpha"),
        (NonLLMContextRecall, None, "alpha"),
        (NonLLMContextRecall, "llm", "file: a.md\n\nalpha"),
        (NonLLMContextRecall, MetadataMode.LLM, "file: a.md\n\nalpha"),
    ],
)
def test_which_text_of_a_node(metric, context_text, text):
    made = metric(judge()) if metric is ContextRelevance else metric()
    evaluator = ContextEvaluator(made, context_text=context_text)
    response = Response("A.", hits(node("n", "alpha", file="a.md")))
    result = evaluator.evaluate_response("Q?", response, reference_contexts=["alpha"])
    assert result.contexts == [text]


IDS = ContextEvaluator("id_based_context_recall")


@pytest.mark.parametrize(
    ("evaluator", "given", "status", "reason"),
    [
        pytest.param(
            IDS, {"query": "Q?"}, "skipped", "it needs context_ids and reference_ids", id="no ids"
        ),
        pytest.param(
            IDS, {"context_ids": ["a"]}, "skipped", "it needs reference_ids", id="nothing expected"
        ),
        pytest.param(
            ContextEvaluator("context_recall", llm=judge()),
            {"contexts": ["a"]},
            "skipped",
            "it needs query and reference",
            id="no reference",
        ),
        pytest.param(
            IDS,
            {"context_ids": ["a"], "reference_ids": []},
            "undefined",
            "no id is expected",
            id="nothing is expected",
        ),
        pytest.param(
            IDS,
            {"context_ids": ["a", None], "reference_ids": ["a"]},
            "failed",
            "context_ids[1]: None is no id",
            id="a broken id",
        ),
        pytest.param(
            IDS,
            {"contexts": ["x", "y"], "context_ids": ["a"], "reference_ids": ["a"]},
            "failed",
            "they run in parallel",
            id="lists of two lengths",
        ),
        pytest.param(
            ContextEvaluator(NonLLMContextRecall(lambda a, b: 1 / 0, 0.5)),
            {"contexts": ["x"], "reference_contexts": ["y"]},
            "failed",
            "ZeroDivisionError",
            id="a similarity that raises",
        ),
        pytest.param(
            ContextEvaluator("context_relevance", llm=Judge(replies=[KeyError("gone")] * 9)),
            {"query": "Q?", "contexts": ["x"]},
            "failed",
            "Judge failed: KeyError: 'gone'",
            id="a model that raises",
        ),
    ],
)
async def test_no_score_is_an_invalid_result(evaluator, given, status, reason):
    for result in (evaluator.evaluate(**given), await evaluator.aevaluate(**given)):
        assert result.invalid_result
        assert result.score is None
        assert result.passing is False
        assert result.metric_result.status == status
        assert reason in result.invalid_reason
        assert reason in result.feedback
        assert result.query == given.get("query")


@pytest.mark.parametrize(
    "reply", ["fb [RESULT] 8", "[RESULT] 4", "", "1.2.3", '{"verdicts": 8}', '{"verdicts": [7]}']
)
async def test_what_a_judge_says_off_the_menu_is_no_score(reply):
    evaluator = ContextEvaluator("context_relevance", llm=Judge(replies=[reply] * 9))
    result = await evaluator.aevaluate("Q?", contexts=["x"])
    assert (result.score, result.invalid_result, result.passing) == (None, True, False)
    assert result.metric_result.status == "failed"
    assert result.invalid_reason


def test_a_function_of_the_node_that_raises():
    evaluator = ContextEvaluator("mrr", id_from=lambda node: node.metadata["file"])
    result = evaluator.evaluate_response("Q?", Response("A.", hits("a")), reference_ids=["a"])
    assert (result.invalid_result, result.response) == (True, "A.")
    assert "KeyError: 'file'" in result.invalid_reason


def test_the_result_goes_through_json_and_pickle():
    result = IDS.evaluate("Q?", context_ids=["a"], reference_ids=["a", "b"])
    for copied in (
        ContextEvaluationResult.model_validate_json(result.model_dump_json()),
        ContextEvaluationResult(**result.model_dump()),
        pickle.loads(pickle.dumps(result)),
    ):
        assert copied == result
        assert copied.verdicts.units[1].value is False


async def test_a_query_may_be_a_bundle():
    bundle = QueryBundle("Q?", custom_embedding_strs=["q"])
    result = await both(
        ContextEvaluator("mrr"), query=bundle, context_ids=["a"], reference_ids=["a"]
    )
    assert (result.query, result.score) == ("Q?", 1.0)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"reference_ids": "a"}, "reference_ids: 'a' is one string"),
        ({"context_ids": ["a"], "contexts": []}, "contexts has 0, context_ids has 1"),
        ({"query": 3}, "query: 3 is a int"),
    ],
)
def test_faults_are_told_by_the_names_of_the_arguments(given, reason):
    result = ContextEvaluator("mrr").evaluate(**given)
    assert result.invalid_result
    assert reason in result.invalid_reason
    assert "retrieved_" not in result.invalid_reason
    assert "reference_context_ids" not in result.invalid_reason


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "ndgc@10"}, "did you mean"),
        ({"metric": "context_recall"}, "judged by a model"),
        ({"metric": IDBasedContextRecall}, "is no metric"),
        ({"metric": ["mrr"]}, "is no metric"),
        ({"metric": "mrr", "threshold": 1.5}, "not within 0 and 1"),
        ({"metric": "mrr", "threshold": "0.5"}, "is no number"),
        ({"metric": "mrr", "id_from": "doc_id"}, "no place of an id"),
        ({"metric": "mrr", "id_from": "metadata:"}, "no place of an id"),
        ({"metric": "mrr", "context_text": "text"}, "context_text: 'text' is unknown"),
        ({"metric": "mrr", "llm": "gpt-5-mini"}, "llm: a str is no model"),
        ({"metric": "context_recall", "llm": 3}, "llm: a int is no model"),
    ],
)
def test_arguments_that_cannot_be(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        ContextEvaluator(**arguments)
    assert isinstance(caught.value, CtxEvalError)
    assert not isinstance(caught.value, RuntimeError)


def test_prompts_are_the_metrics_own():
    evaluator = ContextEvaluator("mrr")
    assert evaluator.get_prompts() == {}
    evaluator.update_prompts({"x": "y"})
    assert evaluator.get_prompts() == {}


# Where LlamaIndex takes an evaluator.

FAILING = {3, 11, 19, 27, 49}


@RUNNER_WARNS
async def test_of_a_batch_none_is_lost():
    runner = BatchEvalRunner({"recall": IDS, "mrr": ContextEvaluator("mrr")}, workers=8)
    responses = [None if n in FAILING else Response("A.", hits(f"n{n}", "x")) for n in range(50)]
    results = await runner.aevaluate_responses(
        queries=[f"Q{n}?" for n in range(50)],
        responses=responses,
        reference_ids=[[f"n{n}", "z"] for n in range(50)],
    )
    for name, value in (("recall", 0.5), ("mrr", 1.0)):
        assert len(results[name]) == 50
        assert [r.query for r in results[name]] == [f"Q{n}?" for n in range(50)]
        assert {n for n, r in enumerate(results[name]) if r.invalid_result} == FAILING
        assert {r.score for r in results[name]} == {None, value}


@RUNNER_WARNS
def test_a_batch_of_texts_with_lists_for_one_evaluator():
    runner = BatchEvalRunner({"recall": IDS, "relevance": relevance("x1")}, workers=2)
    results = runner.evaluate_response_strs(
        queries=["Q0?", "Q1?", "Q2?"],
        response_strs=["A0", "A1", "A2"],
        contexts_list=[["x0"], ["x1"], ["x2"]],
        recall={
            "context_ids": [["n0"], ["n1"], ["n2"]],
            "reference_ids": [["n0"], {"n1": 0}, ["n1", "n2"]],
        },
    )
    assert [r.score for r in results["recall"]] == [1.0, None, 0.5]
    assert [r.score for r in results["relevance"]] == [0.0, 1.0, 0.0]
    assert [r.response for r in results["relevance"]] == ["A0", "A1", "A2"]


def relevance(*relevant):
    return ContextEvaluator(ContextRelevance(judge(*relevant)))


@RUNNER_WARNS
def test_an_evaluator_works_on_one_loop_after_another():
    evaluator = relevance("x0", "x3")

    def run(first):
        runner = BatchEvalRunner({"e": evaluator}, workers=1)
        job = runner.aevaluate_response_strs(
            queries=["Q?"] * 3,
            response_strs=["A."] * 3,
            contexts_list=[[f"x{n}"] for n in range(first, first + 3)],
        )
        return [result.score for result in asyncio.run(job)["e"]]

    assert [run(0), run(3)] == [[1, 0, 0], [1, 0, 0]]


@RUNNER_WARNS
async def test_a_batch_asks_a_query_engine_over_an_index():
    chunks = index(node("cab", "cab"), node("bag", "bag"), node("hedge", "hedge"))
    engine = chunks.as_query_engine(llm=MockLLM(max_tokens=2), similarity_top_k=1)
    results = await BatchEvalRunner({"hit": ContextEvaluator("hit_rate@1")}).aevaluate_queries(
        engine, queries=["bag", "hedge"], reference_ids=[["bag"], ["cab"]]
    )
    assert [r.score for r in results["hit"]] == [1.0, 0.0]
    assert [r.context_ids for r in results["hit"]] == [["bag"], ["hedge"]]
    assert results["hit"][0].context_scores[0] == pytest.approx(1)


class Second(Fixed):
    """Finds idle nodes for the first question, useful ones from then on."""

    def _retrieve(self, query_bundle):
        self.nodes = ["idle"] if not self.asked else ["useful"]
        return super()._retrieve(query_bundle)


@pytest.mark.parametrize("way", ["query", "aquery"])
async def test_a_retrying_engine_asks_again_with_the_feedback(way, monkeypatch):
    monkeypatch.setattr(Settings, "_llm", MockLLM(max_tokens=2))
    retriever = Second()
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(max_tokens=2))
    retrying = RetryQueryEngine(engine, relevance("text of useful"))
    response = getattr(retrying, way)("Q?")
    response = await response if way == "aquery" else response
    assert [one.node_id for one in response.source_nodes] == ["useful"]
    assert len(retriever.asked) == 2
    assert "context_relevance is 0.000, the threshold 0.5" in retriever.asked[1]


async def test_synchronously_in_a_running_loop():
    result = relevance("x").evaluate("Q?", contexts=["x", "y"])
    assert result.score == 0.5


class Heard(BaseEventHandler):
    log: list

    @classmethod
    def class_name(cls):
        return "Heard"

    def handle(self, event, **kwargs):
        self.log.append((event.class_name(), suppressed.get()))


@pytest.fixture
def heard():
    handler = Heard(log=[])
    get_dispatcher().add_event_handler(handler)
    yield handler.log
    get_dispatcher().event_handlers.remove(handler)


async def test_a_similarity_runs_marked_too():
    marks = []

    def similarity(reference, chunk):
        marks.append(suppressed.get())
        return 1.0

    evaluator = ContextEvaluator(NonLLMContextRecall(similarity, 0.5))
    await both(evaluator, contexts=["x"], reference_contexts=["y"])
    assert set(marks) == {True}
    assert len(marks) == 2


async def test_judging_is_no_query_and_its_events_are_marked(heard):
    await both(relevance("x"), "Q?", contexts=["x"])
    assert {name for name, _ in heard} == {"LLMChatStartEvent", "LLMChatEndEvent"}
    assert {mark for _, mark in heard} == {True}
    heard.clear()
    Fixed("a").retrieve("Q?")
    assert heard == [("RetrievalStartEvent", False), ("RetrievalEndEvent", False)]
