"""One question leaves one record, whatever shape the application has and however it is called."""

import asyncio
from typing import NamedTuple

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core import Settings, StorageContext
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.query_engine import (
    CitationQueryEngine,
    CustomQueryEngine,
    RouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.response_synthesizers import TreeSummarize
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
)
from llama_index.core.schema import IndexNode, NodeRelationship, RelatedNodeInfo
from llama_index.core.storage.docstore import SimpleDocumentStore
from llamaindex_captures import (
    CORE,
    Model,
    capturing,
    engine,
    ids,
    stages,
    sub_questions_about,
    synthesizer,
    tool,
)
from llamaindex_parts import Fixed, hits, index, node

QUESTION = "Who?"


@pytest.fixture(autouse=True)
def default_model(monkeypatch):
    monkeypatch.setattr(Settings, "_llm", Model())


class Pick(BaseSelector):
    picks: tuple = (0,)

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass

    def _select(self, choices, query):
        return SelectorResult(
            selections=[SingleSelection(index=one, reason="told") for one in self.picks]
        )

    async def _aselect(self, choices, query):
        return self._select(choices, query)


class ByHand(CustomQueryEngine):
    retriever: Fixed

    def custom_query(self, query_str):
        found = self.retriever.retrieve(f"rewritten {query_str}")
        return f"by hand: {found[0].text}"


def fusion(**options):
    return QueryFusionRetriever(
        [Fixed("a", "b"), Fixed("b", "c")],
        llm=Model(),
        **{"num_queries": 1, "similarity_top_k": 3, "mode": "simple", **options},
    )


def recursive():
    root = Fixed(IndexNode(id_="i", text="summary", index_id="inner"), "o")
    return RecursiveRetriever("root", retriever_dict={"root": root, "inner": Fixed("c", "d")})


def merging():
    kids = [node("k0"), node("k1")]
    parent = node("p")
    for kid in kids:
        kid.relationships[NodeRelationship.PARENT] = RelatedNodeInfo(node_id="p")
    parent.relationships[NodeRelationship.CHILD] = [
        RelatedNodeInfo(node_id=kid.node_id) for kid in kids
    ]
    store = SimpleDocumentStore()
    store.add_documents([parent, *kids])
    return AutoMergingRetriever(Fixed(*kids), StorageContext.from_defaults(docstore=store))


def router(*picks):
    selector = Pick()
    selector.picks = picks
    return RouterQueryEngine(
        selector=selector,
        query_engine_tools=[tool("t", "a", "b"), tool("u", "b", "c")],
        summarizer=TreeSummarize(llm=Model()),
    )


def sub_question(**options):
    return sub_questions_about(engine("a", "b"), engine("b", "c"), **options)


class Shape(NamedTuple):
    """An engine or retriever, and what its record holds."""

    make: object
    stages: list
    chunks: str
    answer: str | None = f"answer to {QUESTION}"


def in_query(*retrievals, prompt, inputs=("of 0",)):
    return [*retrievals, ("prompt", "synthesizer", list(prompt), *inputs)]


FUSED = [
    ("retrieve", "QueryFusionRetriever", ["a", "b", "c"]),
    ("retrieve", "Fixed", ["a", "b"], "in 0"),
    ("retrieve", "Fixed", ["b", "c"], "in 0"),
]
SHAPES = {
    "retriever": Shape(lambda: Fixed("a", "b"), [("retrieve", "Fixed", ["a", "b"])], "ab", None),
    "engine": Shape(
        lambda: engine("a", "b"), in_query(("retrieve", "Fixed", ["a", "b"]), prompt="ab"), "ab"
    ),
    "engine with a postprocessor": Shape(
        lambda: engine("a", "b", "c", keep=("c", "a")),
        in_query(
            ("retrieve", "Fixed", ["a", "b", "c"]),
            ("rerank", "Keep", ["c", "a"], "of 0"),
            prompt="ca",
            inputs=("of 1",),
        ),
        "ca",
    ),
    "engine whose postprocessor keeps nothing": Shape(
        lambda: engine("a", keep=("z",)),
        in_query(
            ("retrieve", "Fixed", ["a"]),
            ("rerank", "Keep", [], "of 0"),
            prompt="",
            inputs=("of 1",),
        ),
        "",
        "Empty Response",
    ),
    "vector index": Shape(
        lambda: index(node("a", "a"), node("b", "b")).as_query_engine(
            llm=Model(), similarity_top_k=1
        ),
        in_query(("retrieve", "VectorIndexRetriever", ["b"]), prompt="b"),
        "b",
    ),
    "transformed question": Shape(
        lambda: TransformQueryEngine(engine("a"), HyDEQueryTransform(llm=Model())),
        in_query(("retrieve", "Fixed", ["a"]), prompt="a"),
        "a",
    ),
    "fusion": Shape(fusion, FUSED, "abc", None),
    "fusion in an engine": Shape(
        lambda: engine(fusion(use_async=False)), in_query(*FUSED, prompt="abc"), "abc"
    ),
    "recursive": Shape(
        recursive,
        [
            ("retrieve", "RecursiveRetriever", ["c", "d", "o"]),
            ("retrieve", "Fixed", ["i", "o"], "in 0"),
            ("retrieve", "Fixed", ["c", "d"], "in 0"),
        ],
        "cdo",
        None,
    ),
    "auto-merging": Shape(
        merging,
        [
            ("retrieve", "AutoMergingRetriever", ["p"]),
            ("retrieve", "Fixed", ["k0", "k1"], "in 0"),
        ],
        "p",
        None,
    ),
    "router to one": Shape(
        lambda: router(0), in_query(("retrieve", "Fixed", ["a", "b"]), prompt="ab"), "ab"
    ),
    "router to both": Shape(
        lambda: router(0, 1),
        [
            *in_query(("retrieve", "Fixed", ["a", "b"]), prompt="ab"),
            *in_query(("retrieve", "Fixed", ["b", "c"]), prompt="bc", inputs=("of 2",)),
        ],
        "abc",
    ),
    "sub-questions": Shape(
        lambda: sub_question(use_async=False),
        [
            *in_query(("retrieve", "Fixed", ["a", "b"]), prompt="ab"),
            *in_query(("retrieve", "Fixed", ["b", "c"]), prompt="bc", inputs=("of 2",)),
        ],
        "abc",
    ),
    "engine by hand": Shape(
        lambda: ByHand(retriever=Fixed("a", "b")),
        [("retrieve", "Fixed", ["a", "b"])],
        "ab",
        "by hand: text of a",
    ),
}


def by_call(asked):
    call = asked.query if hasattr(asked, "query") else asked.retrieve
    call(QUESTION)


def by_await(asked):
    async def ask():
        call = asked.aquery if hasattr(asked, "aquery") else asked.aretrieve
        await call(QUESTION)

    asyncio.run(ask())


@pytest.mark.parametrize("way", [by_call, by_await])
@pytest.mark.parametrize("name", SHAPES)
def test_a_shape(name, way):
    if name == "router to both" and way is by_await and CORE < (0, 14, 9):
        pytest.skip("the engines run in a thread that knows nothing of the query around them")
    shape = SHAPES[name]
    asked = shape.make()
    with capturing() as handler:
        way(asked)
    (record,) = handler.records
    assert (record.question, record.status) == (QUESTION, "ok")
    assert record.answer == shape.answer
    assert stages(record) == shape.stages
    assert [chunk.id for chunk in record.chunks()] == list(shape.chunks)
    assert {chunk.id_source for one in record.retrievals for chunk in one.chunks} <= {"node_id"}
    assert all(chunk.text for one in record.retrievals for chunk in one.chunks)


def test_what_a_retriever_was_asked():
    with capturing() as handler:
        ByHand(retriever=Fixed("a")).query(QUESTION)
        sub_question(use_async=False).query(QUESTION)
    by_hand, sub = handler.records
    assert [one.query for one in by_hand.retrievals] == [f"rewritten {QUESTION}"]
    asked = [one.query for one in sub.retrievals if one.kind == "retrieve"]
    assert asked == [f"0: {QUESTION}", f"1: {QUESTION}"]


def test_sub_questions_at_the_same_time():
    with capturing() as handler:
        sub_question(use_async=True).query(QUESTION)
    (record,) = handler.records
    prompts = [one for one in record.retrievals if one.kind == "prompt"]
    assert sorted("".join(ids(one)) for one in prompts) == ["ab", "bc"]
    for one in prompts:
        (order,) = one.inputs
        assert ids(record.retrievals[order]) == ids(one)
        assert record.retrievals[order].query == one.query
    assert sorted(chunk.id for chunk in record.chunks()) == ["a", "b", "c"]


def test_an_engine_behind_a_node():
    """Its answer takes the node's place: what the outer retriever gave is no document."""
    behind = IndexNode(id_="i", text="summary", index_id="inner", obj=engine("c", "d"))
    with capturing() as handler:
        Fixed(behind, "o").retrieve(QUESTION)
    (record,) = handler.records
    outer, inner, prompt = record.retrievals
    assert [ids(inner), inner.parent, prompt.parent] == [["c", "d"], outer.order, outer.order]
    assert [chunk.text for chunk in outer.chunks] == [f"answer to {QUESTION}", "text of o"]
    assert record.chunks() == outer.chunks
    assert record.stages() == [inner, prompt, outer]


def test_citations():
    """Its synthesizer is given new nodes, whose ids are new too in the newest versions."""
    with capturing() as handler:
        CitationQueryEngine.from_args(index(node("a")), llm=Model()).query(QUESTION)
    (record,) = handler.records
    assert stages(record)[0] == ("retrieve", "VectorIndexRetriever", ["a"])
    assert [chunk.id for chunk in record.chunks()] == ["a"]


def test_a_retriever_that_calls_what_it_overrides_counts_once():
    class Logged(Fixed):
        def retrieve(self, str_or_query_bundle):
            return super().retrieve(str_or_query_bundle)

    with capturing() as handler:
        Logged("a").retrieve(QUESTION)
    assert stages(handler.records[0]) == [("retrieve", "Logged", ["a"])]


def test_a_reranking_retriever():
    class Second(Fixed):
        def _retrieve(self, query_bundle):
            return Fixed("a", "b", "c").retrieve(query_bundle)[1:]

    with capturing() as handler:
        Second().retrieve(QUESTION)
    outer, inner = handler.records[0].retrievals
    assert (outer.kind, ids(outer), inner.kind, ids(inner)) == (
        "rerank",
        ["b", "c"],
        "retrieve",
        ["a", "b", "c"],
    )


def test_the_synthesizer_may_be_given_more_than_the_model_is_shown():
    with capturing() as handler:
        for mode in ("no_text", "context_only", "generation", "tree_summarize", "accumulate"):
            engine("a", "b", response_mode=mode).query(QUESTION)
    assert [ids(record.retrievals[-1]) for record in handler.records] == [["a", "b"]] * 5
    assert {record.retrievals[-1].kind for record in handler.records} == {"prompt"}


def test_nodes_that_were_never_retrieved_are_no_chunks():
    class Noted(CustomQueryEngine):
        def custom_query(self, query_str):
            found = Fixed("a", "b").retrieve(query_str)
            note = hits(node("note", "what was said before"))
            return str(synthesizer().synthesize(query_str, [*note, *found]))

    with capturing() as handler:
        Noted().query(QUESTION)
    (record,) = handler.records
    assert [chunk.id for chunk in record.chunks()] == ["a", "b"]
