"""Which id of a node counts, and what is said where no expected one is found."""

import uuid

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.schema import Document, NodeWithScore
from llamaindex_parts import hits, index, node

from ctxeval import SpanRecall
from ctxeval_llamaindex.evaluator import ContextEvaluator
from ctxeval_llamaindex.nodes import node_id_of, text_of

NODE = node("n1", "alpha", source="doc-1", file="a.md", page=3, tags=["x"], empty="", flag=True)


@pytest.mark.parametrize(
    ("id_from", "id"),
    [
        ("node_id", "n1"),
        ("source_id", "doc-1"),
        ("metadata:file", "a.md"),
        ("metadata:page", "3"),
        (lambda node: f"{node.metadata['file']}#{node.metadata['page']}", "a.md#3"),
        (lambda node: 7, "7"),
        pytest.param("metadata:missing", "n1", id="no such key: the node id stands in"),
        pytest.param("metadata:empty", "n1", id="empty"),
        pytest.param("metadata:tags", "n1", id="a list is no id"),
        pytest.param("metadata:flag", "n1", id="a boolean is no id"),
        pytest.param(lambda node: None, "n1", id="the function knows none"),
    ],
)
def test_the_id_of_a_node(id_from, id):
    assert node_id_of(NODE, id_from) == id
    assert node_id_of(NodeWithScore(node=NODE, score=1.0), id_from) == id


def test_a_node_without_source_is_its_own():
    assert node_id_of(node("n1"), "source_id") == "n1"
    assert node_id_of(Document(id_="doc-1", text="x"), "source_id") == "doc-1"


def test_the_text_of_a_node():
    one = node("n1", "alpha", file="a.md", secret="s")
    one.excluded_llm_metadata_keys = ["secret"]
    assert text_of(one) == "file: a.md\n\nalpha"
    assert text_of(one, "none") == "alpha"
    assert text_of(NodeWithScore(node=one), "all") == "file: a.md\nsecret: s\n\nalpha"
    assert text_of(Document(id_="d")) == ""


SOURCES = hits(
    node("n1", source="doc-1", file="a.md"),
    node("n2", source="doc-1", file="a.md"),
    node("n3", source="doc-2", file="b.md"),
)


@pytest.mark.parametrize(
    ("id_from", "ids", "recall", "precision", "mrr"),
    [
        ("node_id", ["n1", "n2", "n3"], 0, 0, 0),
        ("source_id", ["doc-1", "doc-1", "doc-2"], 1, 1 / 2, 1 / 3),
        ("metadata:file", ["a.md", "a.md", "b.md"], 0, 0, 0),
        (lambda node: node.metadata["file"].replace("b.md", "doc-2"), None, 1, 1 / 2, 1 / 3),
    ],
)
def test_matching_by_another_id(id_from, ids, recall, precision, mrr):
    for metric, value in (
        ("id_based_context_recall", recall),
        ("id_based_context_precision", precision),
        ("mrr", mrr),
    ):
        evaluator = ContextEvaluator(metric, id_from=id_from)
        result = evaluator.evaluate_response("Q?", SOURCES, reference_ids=["doc-2"])
        assert result.score == value
        if ids:
            assert result.context_ids == ids


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        pytest.param("mrr", 1, id="rank 1"),
        pytest.param("precision@3", 1 / 3, id="one of three places"),
        pytest.param("average_precision", 1, id="1/1, over one expected"),
        pytest.param("ndcg", 1, id="the gain stands first"),
        pytest.param("id_based_context_precision", 1 / 2, id="one of two documents"),
    ],
)
def test_a_repeated_id_counts_at_its_first_rank(metric, value):
    evaluator = ContextEvaluator(metric, id_from="source_id")
    result = evaluator.evaluate_response("Q?", SOURCES, reference_ids=["doc-1"])
    assert result.score == value


@pytest.mark.parametrize(
    ("id_from", "expected", "advice"),
    [
        (
            "node_id",
            ["doc-1", "doc-9"],
            "no expected id is a node id, but 1 of 2 are source ids: give id_from='source_id'",
        ),
        (
            "node_id",
            ["a.md", "b.md"],
            "no expected id is a node id, but 2 of 2 are 'file' in the metadata: "
            "give id_from='metadata:file'",
        ),
        (
            "source_id",
            ["n3"],
            "no expected id is a source id, but 1 of 1 are node ids: give id_from='node_id'",
        ),
        (
            "metadata:file",
            ["doc-2"],
            "no expected id is a 'file' in the metadata, but 1 of 1 are source ids: "
            "give id_from='source_id'",
        ),
        (
            lambda node: "x",
            ["doc-2"],
            "no expected id is an id by the function given as id_from, but 1 of 1 are source ids: "
            "give id_from='source_id'",
        ),
        ("metadata:nope", ["zzz"], "3 of 3 nodes lack a 'nope' in the metadata"),
    ],
)
def test_ids_in_another_place_are_named(id_from, expected, advice):
    for metric in ("id_based_context_recall", "ndcg@10"):
        evaluator = ContextEvaluator(metric, id_from=id_from)
        result = evaluator.evaluate_response("Q?", SOURCES, reference_ids=expected)
        assert (result.score, result.invalid_result) == (0, False)
        assert result.metric_result.reason == advice
        assert advice in result.feedback


def test_node_ids_that_stand_in_are_told_where_they_are_found():
    evaluator = ContextEvaluator("id_based_context_recall", id_from="metadata:nope")
    result = evaluator.evaluate_response("Q?", SOURCES, reference_ids=["n1"])
    assert result.score == 1
    assert result.metric_result.reason == (
        "3 of 3 nodes lack a 'nope' in the metadata: their node ids stand in"
    )


@pytest.mark.parametrize(
    ("metric", "expected", "given"),
    [
        pytest.param("hit_rate@1", ["n1"], {}, id="one is found"),
        pytest.param("hit_rate@1", ["n9"], {}, id="a plain miss"),
        pytest.param("hit_rate@1", [], {}, id="none is expected"),
        pytest.param("non_llm_context_recall", ["doc-1"], {"reference_contexts": ["x"]}, id="text"),
    ],
)
def test_otherwise_nothing_is_said(metric, expected, given):
    evaluator = ContextEvaluator(metric)
    result = evaluator.evaluate_response("Q?", SOURCES, reference_ids=expected, **given)
    assert "id_from" not in result.feedback
    assert result.metric_result.reason in ("", "no id is expected")


def test_random_ids_are_named():
    splitter = TokenTextSplitter(chunk_size=32, chunk_overlap=0)
    document = Document(id_="doc-1", text=" ".join(f"bad{n}" for n in range(60)))
    first, second = (splitter.get_nodes_from_documents([document]) for _ in range(2))
    evaluator = ContextEvaluator("id_based_context_recall")
    found = index(*second).as_retriever(similarity_top_k=9).retrieve("bad")
    expected = [one.node_id for one in first]
    result = evaluator.evaluate_response("Q?", found, reference_ids=expected)
    assert result.score == 0
    assert "the retrieved ones are random" in result.metric_result.reason
    assert "id_func" in result.feedback
    by_ids = evaluator.evaluate("Q?", context_ids=result.context_ids, reference_ids=expected)
    assert by_ids.metric_result.reason == result.metric_result.reason
    stable = TokenTextSplitter(
        chunk_size=32, chunk_overlap=0, id_func=lambda n, doc: f"{doc.node_id}:{n}"
    ).get_nodes_from_documents([document])
    good = evaluator.evaluate_response("Q?", stable, reference_ids=["doc-1:0", "doc-1:1"])
    assert (good.score, good.metric_result.reason) == (1, "")


def test_places_in_documents_survive_another_parse():
    document = Document(id_="doc-1", text=" ".join(f"bad{n}" for n in range(60)))
    splitter = TokenTextSplitter(chunk_size=32, chunk_overlap=0)
    nodes = splitter.get_nodes_from_documents([document])
    expected = [{"document": "doc-1", "start": 0, "end": len(nodes[0].text)}]
    evaluator = ContextEvaluator(SpanRecall())
    for given, value in ((nodes, 1), (nodes[1:], 0)):
        result = evaluator.evaluate_response("Q?", given, reference_spans=expected)
        assert result.score == value
    without = evaluator.evaluate_response("Q?", hits("a"), reference_spans=expected)
    assert "it needs retrieved_spans" in without.invalid_reason


def test_ids_that_are_found_are_not_called_random():
    one, other = str(uuid.uuid4()), str(uuid.uuid4())
    result = ContextEvaluator("mrr").evaluate(context_ids=[other, one], reference_ids=[one])
    assert (result.score, result.metric_result.reason) == (0.5, "")
