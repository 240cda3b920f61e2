"""Data sets: any form of them, any engine, and no query that costs another."""

import asyncio
import json
from types import SimpleNamespace

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.schema import Document
from llamaindex_parts import Fixed, Judge, hits, index, node

from ctxeval import (
    ContextUtilization,
    InvalidArgumentError,
    InvalidSampleError,
    NonLLMContextRecall,
    References,
    Usage,
)
from ctxeval.testing import ScriptedLLM
from ctxeval_llamaindex import dataset_evaluation
from ctxeval_llamaindex.dataset_evaluation import aevaluate_dataset, evaluate_dataset
from ctxeval_llamaindex.llm import as_llm
from ctxeval_llamaindex.suppression import suppressed

QUERIES = {"q1": "One?", "q2": "Two?"}
RELEVANT = {"q1": ["a"], "q2": ["b", "z"]}
CORPUS = {"a": "text of a", "b": "text of b", "z": "text of z"}
ROWS = [
    {"id": "q1", "user_input": "One?", "reference_context_ids": ["a"]},
    {"id": "q2", "user_input": "Two?", "reference_context_ids": ["b", "z"]},
]


def run(way, *args, **options):
    if way == "sync":
        return evaluate_dataset(*args, **options)
    return asyncio.run(aevaluate_dataset(*args, **options))


WAYS = pytest.mark.parametrize("way", ["sync", "async"])


def json_file(path, content):
    path.write_text(json.dumps(content))
    return path


FORMS = {
    "an object": lambda p: SimpleNamespace(queries=QUERIES, corpus=CORPUS, relevant_docs=RELEVANT),
    "a dict": lambda p: {"queries": QUERIES, "relevant_docs": RELEVANT},
    "a JSON file": lambda p: json_file(
        p / "d.json", {"queries": QUERIES, "corpus": CORPUS, "relevant_docs": RELEVANT}
    ),
    "its path as text": lambda p: str(
        json_file(p / "d.json", {"queries": QUERIES, "relevant_docs": RELEVANT})
    ),
    "References": lambda p: References(ROWS),
    "a list of dicts": lambda p: ROWS,
    "a JSON file of rows": lambda p: json_file(p / "rows.json", ROWS),
}


@pytest.mark.parametrize("form", FORMS)
@WAYS
def test_any_form_of_a_data_set(way, form, tmp_path):
    result = run(way, Fixed("a", "b"), FORMS[form](tmp_path), ["id_based_context_recall", "mrr"])
    assert [(row.id, row.query, row.retrieved_ids, row.error) for row in result.rows] == [
        ("q1", "One?", ("a", "b"), None),
        ("q2", "Two?", ("a", "b"), None),
    ]
    values = [{name: r.value for name, r in row.results.items()} for row in result.rows]
    assert values == [
        {"id_based_context_recall": 1, "reciprocal_rank": 1},
        {"id_based_context_recall": 0.5, "reciprocal_rank": 0.5},
    ]
    assert result.means()["id_based_context_recall"] == (0.75, 2, 0, 0, 0)
    assert repr(result) == (
        "DatasetResult(2 queries: id_based_context_recall=0.750 of 2, reciprocal_rank=0.750 of 2)"
    )


@WAYS
def test_over_an_index_with_whatever_fits(way):
    chunks = index(node("cab", "cab", file="a.md"), node("bag", "bag"), node("hedge", "hedge"))
    dataset = {
        "queries": {1: "cab", 2: "hedge"},
        "relevant_docs": {1: ["cab"], 2: {"bag": 1, "hedge": 2}},
        "corpus": {"cab": "cab", "bag": "bag", "hedge": "hedge"},
    }
    result = run(way, chunks.as_retriever(similarity_top_k=1), dataset)
    first, second = ({name: one.value for name, one in row.results.items()} for row in result.rows)
    assert first["non_llm_context_recall"] == 1  # whose text is compared without its metadata
    assert first["ndcg@10"] == 1
    assert "non_llm_context_recall" not in second
    assert second["id_based_context_recall"] == 0.5


@WAYS
def test_of_fifty_queries_with_five_that_fail_none_is_lost(way):
    failing = {3, 11, 19, 27, 49}
    retriever = Fixed(
        by_question={
            f"Q{n}?": ConnectionError(f"away {n}") if n in failing else [f"n{n}"] for n in range(50)
        }
    )
    dataset = {
        "queries": {f"q{n}": f"Q{n}?" for n in range(50)},
        "relevant_docs": {f"q{n}": [f"n{n}"] for n in range(50)},
    }
    result = run(way, retriever, dataset, ["mrr", "recall@5"], concurrency=4)
    assert [row.id for row in result.rows] == [f"q{n}" for n in range(50)]
    assert {n for n, row in enumerate(result.rows) if row.error} == failing
    assert result.rows[3].error == "ConnectionError: away 3"
    assert [row.id for row in result.failed] == [f"q{n}" for n in sorted(failing)]
    for row in result.failed:
        assert {one.status for one in row.results.values()} == {"failed"}
        assert row.results["recall@5"].reason == row.error
        assert row.retrieved_ids == ()
    assert result.means() == {"reciprocal_rank": (1, 45, 0, 5, 0), "recall@5": (1, 45, 0, 5, 0)}
    assert repr(result).startswith(
        "DatasetResult(50 queries, 5 failed: reciprocal_rank=1.000 of 45"
    )


@WAYS
def test_what_is_not_scored_is_counted_apart(way):
    dataset = {
        "queries": {"none": "One?", "unknown": "Two?", "blank": " "},
        "relevant_docs": {"none": []},
    }
    result = run(way, Fixed("a"), dataset, "mrr")
    assert [row.results["reciprocal_rank"].status for row in result.rows] == [
        "undefined",
        "skipped",
        "failed",
    ]
    assert result.means()["reciprocal_rank"] == (None, 0, 1, 1, 1)
    assert "no text" in result.rows[2].error
    assert "reciprocal_rank=none of 0" in repr(result)


@WAYS
def test_judged_by_a_model_and_paid_once(way):
    model = Judge(ScriptedLLM(relevant={"text of a"}, supported={"True.": {"text of a"}}))
    dataset = [{"user_input": f"Q{n}?", "reference": "True."} for n in range(3)]
    names = ["context_precision", "context_recall", "context_relevance"]
    result = run(way, Fixed("x", "a"), dataset, names, llm=model)
    assert {name: mean.value for name, mean in result.means().items()} == {
        "context_precision": 0.5,
        "context_recall": 1,
        "context_relevance": 0.5,
    }
    assert result.usage() == Usage(requests=len(model.calls), unreported=len(model.calls))
    assert len(model.calls) == 6  # one per question for the reference, one for the question


@WAYS
def test_a_model_that_is_away_costs_no_other_metric(way):
    model = Judge(replies=[ConnectionError("no route")] * 9)
    dataset = [{"user_input": "Q?", "reference_context_ids": ["a"]}]
    row = run(way, Fixed("a"), dataset, ["context_relevance", "mrr"], llm=model).rows[0]
    assert row.error is None
    assert row.results["reciprocal_rank"].value == 1
    assert row.results["context_relevance"].status == "failed"
    assert "no route" in row.results["context_relevance"].reason


class FirstTwo(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        return nodes[:2]


class Reverse(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        assert query_bundle.query_str == "Q?"
        return nodes[::-1]


@WAYS
def test_postprocessors_in_their_order(way):
    dataset = [{"user_input": "Q?", "reference_context_ids": ["b"]}]
    for postprocessors, ids, value in (
        ([Reverse(), FirstTwo()], ("c", "b"), 0.5),
        ([FirstTwo(), Reverse()], ("b", "a"), 1),
        ([SimilarityPostprocessor(similarity_cutoff=0.4)], ("a", "b"), 0.5),
    ):
        result = run(way, Fixed("a", "b", "c"), dataset, "mrr", postprocessors=postprocessors)
        assert result.rows[0].retrieved_ids == ids
        assert result.rows[0].results["reciprocal_rank"].value == value


@WAYS
def test_scoring_is_marked_as_ctxevals_own_and_retrieving_is_not(way):
    marks = {"retrieving": [], "scoring": []}

    class Watched(Fixed):
        def _retrieve(self, query_bundle):
            marks["retrieving"].append(suppressed.get())
            return super()._retrieve(query_bundle)

    def similarity(reference, chunk):
        marks["scoring"].append(suppressed.get())
        return 1.0

    dataset = [{"user_input": "Q?", "reference_contexts": ["y"]}]
    run(way, Watched("a"), dataset, NonLLMContextRecall(similarity, 0.5))
    assert marks == {"retrieving": [False], "scoring": [True]}


class Streams(CustomQueryEngine):
    def custom_query(self, query_str):
        return StreamingResponse(iter(["an", "swer"]), source_nodes=hits("a"))

    async def acustom_query(self, query_str):
        async def tokens():
            for token in ("an", "swer"):
                yield token

        return AsyncStreamingResponse(tokens(), source_nodes=hits("a"))


class StreamsSynchronously(CustomQueryEngine):
    def custom_query(self, query_str):
        return StreamingResponse(iter(["an", "swer"]), source_nodes=hits("a"))


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (
            lambda: RetrieverQueryEngine.from_args(Fixed("a"), llm=MockLLM(max_tokens=2)),
            "text text",
        ),
        (Streams, "answer"),
        (StreamsSynchronously, "answer"),
    ],
)
@WAYS
def test_a_query_engine_with_its_answer(way, make, answer):
    metric = ContextUtilization(as_llm(Judge(ScriptedLLM(relevant={"text of a"}))))
    dataset = [{"user_input": "Q?", "reference_context_ids": ["a"]}]
    row = run(way, make(), dataset, [metric, "mrr"]).rows[0]
    assert row.error is None
    assert row.sample.response == answer
    assert {name: one.value for name, one in row.results.items()} == {
        "context_utilization": 1,
        "reciprocal_rank": 1,
    }


class GivesNothing(BaseQueryEngine):
    def __init__(self):
        super().__init__(callback_manager=None)

    def _get_prompt_modules(self):
        return {}

    def query(self, query):
        return None

    async def aquery(self, query):
        return None

    _query, _aquery = query, aquery


@WAYS
def test_an_engine_that_gives_no_response(way):
    dataset = [{"user_input": "Q?", "reference_context_ids": ["a"]}]
    row = run(way, GivesNothing(), dataset, "mrr").rows[0]
    assert "the response is None" in row.error
    assert row.results["reciprocal_rank"].status == "failed"


@WAYS
def test_documents_are_scored_too(way):
    retriever = Fixed(Document(id_="a", text="x"))
    result = run(way, retriever, [{"user_input": "Q?", "reference_context_ids": ["a"]}], "mrr")
    assert result.rows[0].results["reciprocal_rank"].value == 1


@WAYS
def test_matching_by_source_and_what_is_said_otherwise(way):
    retriever = Fixed(node("n1", source="doc-1"), node("n2", source="doc-2"))
    dataset = [{"user_input": "Q?", "reference_context_ids": ["doc-2"]}]
    matched = run(way, retriever, dataset, ["mrr", "recall@5"], id_from="source_id")
    assert matched.rows[0].results["reciprocal_rank"].value == 0.5
    assert matched.advice() == {}
    missed = run(way, retriever, dataset, ["mrr", "recall@5"])
    assert missed.rows[0].results["reciprocal_rank"].value == 0
    assert missed.advice() == {
        "no expected id is a node id, but 1 of 1 are source ids: give id_from='source_id'": 1
    }


UUID = "a3bb189e-8bf9-4f5e-ae0b-2f4d5d1c0d9"


@WAYS
def test_random_ids_are_named_where_nothing_ever_matched(way):
    questions = {f"Q{n}?": [f"{UUID}{n}"] for n in range(3)}
    dataset = {
        "queries": {str(n): f"Q{n}?" for n in range(3)},
        "relevant_docs": {str(n): [f"{UUID}{n + 6}"] for n in range(3)},
    }
    (advice, count), *_ = run(way, Fixed(by_question=questions), dataset, "mrr").advice().items()
    assert "random" in advice
    assert count == 3
    one_found = {**dataset, "relevant_docs": {**dataset["relevant_docs"], "0": [f"{UUID}0"]}}
    assert run(way, Fixed(by_question=questions), one_found, "mrr").advice() == {}


async def test_both_ways_in_a_running_loop():
    dataset = [{"user_input": "Q?", "reference_context_ids": ["a"]}]
    asynchronous = await aevaluate_dataset(Fixed("a"), dataset, "mrr")
    synchronous = evaluate_dataset(Fixed("a"), dataset, "mrr")
    assert asynchronous.means() == synchronous.means() == {"reciprocal_rank": (1, 1, 0, 0, 0)}


class Counting(Fixed):
    """Knows how many of its retrievals were under way at once."""

    def __init__(self):
        super().__init__("a")
        self.now = self.most = 0

    async def _aretrieve(self, query_bundle):
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(5):
            await asyncio.sleep(0)
        self.now -= 1
        return self._retrieve(query_bundle)


async def test_no_more_at_once_than_asked_for():
    dataset = [{"user_input": f"Q{n}?"} for n in range(20)]
    retriever = Counting()
    result = await aevaluate_dataset(retriever, dataset, "mrr", concurrency=3)
    assert retriever.most == 3
    assert [row.query for row in result.rows] == [f"Q{n}?" for n in range(20)]


@WAYS
def test_an_interrupt_is_not_swallowed(way):
    retriever = Fixed(by_question={"Q?": [KeyboardInterrupt]})
    dataset = [{"user_input": "Q?"}]

    def stop(query_bundle):
        raise KeyboardInterrupt

    retriever._retrieve = stop
    with pytest.raises(KeyboardInterrupt):
        run(way, retriever, dataset, "mrr")


@WAYS
def test_progress_is_shown_where_tqdm_is(way, capsys, monkeypatch):
    pytest.importorskip("tqdm")
    dataset = [{"user_input": f"Q{n}?"} for n in range(3)]
    run(way, Fixed("a"), dataset, "mrr", show_progress=True)
    assert "3/3" in capsys.readouterr().err
    run(way, Fixed("a"), dataset, "mrr")
    assert capsys.readouterr().err == ""

    def missing(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(dataset_evaluation, "import_module", missing)
    assert len(run(way, Fixed("a"), dataset, "mrr", show_progress=True).rows) == 3


def test_a_table():
    pd = pytest.importorskip("pandas")
    retriever = Fixed("a", by_question={"Two?": ValueError("bad")})
    frame = evaluate_dataset(
        retriever, {"queries": QUERIES, "relevant_docs": RELEVANT}, "mrr"
    ).to_pandas()
    assert list(frame.columns) == [
        "id",
        "query",
        "response",
        "retrieved_ids",
        "error",
        "reciprocal_rank",
        "reciprocal_rank status",
    ]
    assert frame["reciprocal_rank"][0] == 1
    assert pd.isna(frame["reciprocal_rank"][1])
    assert list(frame["reciprocal_rank status"]) == ["scored", "failed"]
    assert frame["error"][1] == "ValueError: bad"
    assert frame["reciprocal_rank"].mean() == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metrics": "ndgc@10"}, "did you mean"),
        ({"metrics": ["context_recall"]}, "judged by a model"),
        ({"retriever": index(node("a", "a"))}, r"give its \.as_retriever\(\)"),
        ({"retriever": "shop"}, "no retriever and no query engine"),
        ({"retriever": Streams(), "postprocessors": [Reverse()]}, "has its own"),
        ({"postprocessors": Reverse()}, "is no list of postprocessors"),
        ({"postprocessors": ["reverse"]}, "is no list of postprocessors"),
        ({"llm": 3}, "llm: a int is no model"),
        ({"dataset": {"queries": {"q": "Q?"}}}, "it has no relevant_docs"),
        ({"dataset": {"relevant_docs": {"q": ["a"]}}}, "it has no queries"),
        ({"concurrency": 0}, "no number of queries"),
        ({"id_from": "doc"}, "no place of an id"),
        ({"context_text": "text"}, "is unknown"),
        ({"dataset": []}, "holds no query"),
        ({"dataset": {"queries": {}, "relevant_docs": {}}}, "holds no query"),
        ({"dataset": {"queries": ["Q?"], "relevant_docs": {}}}, "its queries are a list"),
        ({"dataset": 7}, "is no list"),
    ],
)
@WAYS
def test_arguments_that_cannot_be(way, arguments, message):
    given = {"retriever": Fixed("a"), "dataset": ROWS, "metrics": "mrr", **arguments}
    asked = given["retriever"]
    with pytest.raises(InvalidArgumentError, match=message):
        run(way, given.pop("retriever"), given.pop("dataset"), given.pop("metrics"), **given)
    assert getattr(asked, "asked", []) == []


def test_a_malformed_query_is_named():
    dataset = {"queries": {"q1": "One?"}, "relevant_docs": {"q1": [""]}}
    with pytest.raises(InvalidSampleError, match=r"the query 'q1': reference_context_ids\[0\]"):
        evaluate_dataset(Fixed("a"), dataset, "mrr")


def test_a_file_that_is_broken_is_named(tmp_path):
    path = tmp_path / "d.json"
    path.write_text('{"queries": ')
    with pytest.raises(InvalidSampleError, match=r"d\.json, line 1: no JSON"):
        evaluate_dataset(Fixed("a"), path, "mrr")
