"""What of a node becomes a chunk, as it was when it was retrieved."""

import asyncio
import math

import pytest

pytest.importorskip("llama_index.core")

import numpy as np
from llama_index.core import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.postprocessor import LLMRerank, MetadataReplacementPostProcessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import Document, ImageNode, IndexNode, NodeWithScore, TextNode
from llamaindex_captures import CORE, Keep, Model, capturing, engine, ids
from llamaindex_parts import Fixed, Letters, hits, index, node

from ctxeval import Span


def chunks_of(*nodes, **options):
    with capturing(**options) as handler:
        Fixed(*nodes).retrieve("q")
    return handler.records[0].chunks()


def test_a_node():
    given = node("a", "some text", source="doc", page=3)
    given.start_char_idx, given.end_char_idx = 10, 19
    (chunk,) = chunks_of(given)
    assert (chunk.rank, chunk.id, chunk.id_source) == (0, "a", "node_id")
    assert (chunk.text, chunk.score) == ("some text", 1)
    assert chunk.span == Span("doc", 10, 19)
    assert chunk.metadata == {"page": 3, "source_id": "doc"}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param(Document(id_="a", text="whole"), "whole", id="document"),
        pytest.param(IndexNode(id_="a", text="summary", index_id="i"), "summary", id="index node"),
        pytest.param(ImageNode(id_="a", image_url="https://x.org/i.png"), "", id="image"),
        pytest.param(TextNode(id_="a", text="t", metadata={"k": "v"}), "t", id="without metadata"),
    ],
)
def test_kinds_of_nodes(given, text):
    (chunk,) = chunks_of(given)
    assert (chunk.id, chunk.text, chunk.span) == ("a", text, None)


@pytest.mark.parametrize(
    ("score", "captured"),
    [(None, None), (0.5, 0.5), (np.float32(0.5), 0.5), (math.nan, None), (math.inf, None)],
)
def test_scores(score, captured):
    class Scores(Fixed):
        def _retrieve(self, query_bundle):
            made = NodeWithScore(node=node("a"))
            made.score = score
            return [made]

    with capturing() as handler:
        Scores().retrieve("q")
    assert handler.records[0].chunks()[0].score == captured


@pytest.mark.parametrize(
    ("start", "end", "source"),
    [(None, 5, "doc"), (0, None, "doc"), (5, 0, "doc"), (-1, 5, "doc"), (0, 5, "")],
)
def test_no_place_where_it_is_not_known(start, end, source):
    given = node("a", source=source)
    given.start_char_idx, given.end_char_idx = start, end
    assert chunks_of(given)[0].span is None


class TestIds:
    @pytest.mark.parametrize(
        ("id_key", "id", "place"),
        [
            (None, "a", "node_id"),
            ("node_id", "a", "node_id"),
            ("source_id", "doc", "source_id"),
            ("metadata:file", "f.md", "metadata:file"),
            ("file", "f.md", "metadata:file"),
            ("page", "3", "metadata:page"),
            ("missing", "a", "node_id"),
            ("empty", "a", "node_id"),
            ("many", "a", "node_id"),
            (lambda one: f"{one.metadata['file']}:{one.ref_doc_id}", "f.md:doc", "id_key"),
            (lambda one: None, "a", "node_id"),
        ],
    )
    def test_where_they_stand(self, id_key, id, place):
        given = node("a", source="doc", file="f.md", page=3, empty="", many=["x"])
        (chunk,) = chunks_of(given, id_key=id_key)
        assert (chunk.id, chunk.id_source) == (id, place)
        if place != "node_id":
            assert chunk.metadata["node_id"] == "a"

    def test_a_node_without_source_has_no_source_id(self):
        (chunk,) = chunks_of(node("a"), id_key="source_id")
        assert (chunk.id, chunk.id_source) == ("a", "node_id")

    def test_a_node_without_any_id_is_named_by_its_text(self):
        given = node("a", "some text")
        given.id_ = ""
        (chunk,) = chunks_of(given)
        assert chunk.id_source == "text_hash"

    def test_a_function_sees_the_node_as_it_was(self):
        class Changes(Keep):
            def _postprocess_nodes(self, nodes, query_bundle=None):
                for one in nodes:
                    one.node.metadata["file"] = "changed"
                return nodes

        asked = engine(Fixed(node("a", file="f.md")), node_postprocessors=[Changes(ids=())])
        with capturing(id_key=lambda one: one.metadata["file"]) as handler:
            asked.query("q")
        assert [ids(one) for one in handler.records[0].retrievals] == [
            ["f.md"],
            ["changed"],
            ["changed"],
        ]

    def test_ids_of_documents_are_told_where_nodes_were_expected(self):
        """Two parses of a document give its nodes different ids; the document's stays."""
        document = Document(id_="doc", text=" ".join(f"word{n}" for n in range(100)))
        parser = TokenTextSplitter(chunk_size=64, chunk_overlap=0)
        first, second = (parser.get_nodes_from_documents([document]) for _ in range(2))
        assert {one.node_id for one in first}.isdisjoint(one.node_id for one in second)
        references = [{"user_input": "q", "reference_context_ids": ["doc"]}]
        found = VectorStoreIndex(nodes=second, embed_model=Letters()).as_retriever()
        with capturing(references=references) as handler:
            found.retrieve("q")
        assert handler.recorder.advice == [
            "in 1 queries no expected id was captured, but the chunks' metadata 'source_id' holds "
            "some: give id_key='source_id'"
        ]
        with capturing(references=references, id_key="source_id") as handler:
            found.retrieve("q")
        (record,) = handler.records
        assert record.scores["id_based_context_recall"].value == 1
        assert record.chunks()[0].span.document == "doc"


class TestSnapshot:
    """Later steps change scores and texts in place."""

    def test_a_reranker_that_sets_scores(self):
        class Rescores(Keep):
            def _postprocess_nodes(self, nodes, query_bundle=None):
                for one in nodes:
                    one.score = -1.0
                    one.node.metadata["seen"] = True
                return nodes[:1]

        with capturing() as handler:
            engine("a", "b", node_postprocessors=[Rescores(ids=())]).query("q")
        found, ranked, prompt = handler.records[0].retrievals
        assert [(c.id, c.score, dict(c.metadata)) for c in found.chunks] == [
            ("a", 1, {}),
            ("b", 0.5, {}),
        ]
        for stage in (ranked, prompt):
            assert [(c.id, c.score, dict(c.metadata)) for c in stage.chunks] == [
                ("a", -1, {"seen": True})
            ]

    def test_a_fusion_that_sets_scores(self):
        fusion = QueryFusionRetriever(
            [Fixed("a", "b")], llm=Model(), num_queries=1, mode="reciprocal_rerank", use_async=False
        )
        with capturing() as handler:
            fusion.retrieve("q")
        outer, inner = handler.records[0].retrievals
        assert [chunk.score for chunk in inner.chunks] == [1, 0.5]
        assert [chunk.score for chunk in outer.chunks] == [1 / 60, 1 / 61]

    def test_a_window_in_the_place_of_the_text(self):
        asked = index(node("a", "a", window="what stands around a")).as_query_engine(
            llm=Model(),
            similarity_top_k=1,
            node_postprocessors=[MetadataReplacementPostProcessor(target_metadata_key="window")],
        )
        with capturing() as handler:
            asked.query("a")
        texts = [one.chunks[0].text for one in handler.records[0].retrievals]
        assert texts == ["a", "what stands around a", "what stands around a"]
        assert {one.chunks[0].id for one in handler.records[0].retrievals} == {"a"}

    def test_what_an_application_does_to_the_list(self):
        with capturing() as handler:
            found = Fixed("a", "b").retrieve("q")
            found[0].node.metadata["later"] = True
            found[0].node.text = "later"
            found.clear()
        (first, _) = handler.records[0].chunks()
        assert (first.text, dict(first.metadata)) == ("text of a", {})


class Ranks(Model):
    def complete(self, prompt, formatted=False, **kwargs):
        if "Relevance:" in prompt:
            return (
                super()
                .complete("")
                .model_copy(update={"text": "Doc: 2, Relevance: 9\nDoc: 1, Relevance: 5\n"})
            )
        return super().complete(prompt)


@pytest.mark.parametrize("way", ["query", "aquery"])
def test_a_reranker_without_events(way):
    """And without a span in asynchronous code: the synthesizer's nodes tell of it."""
    asked = engine("a", "b", node_postprocessors=[LLMRerank(llm=Ranks(), top_n=1)])
    with capturing() as handler:
        asked.query("q") if way == "query" else asyncio.run(asked.aquery("q"))
    (record,) = handler.records
    assert ids(record.retrievals[0]) == ["a", "b"]
    assert (record.retrievals[-1].kind, ids(record.retrievals[-1])) == ("prompt", ["b"])
    ranked = [ids(one) for one in record.retrievals if one.kind == "rerank"]
    assert ranked == [["b"]] if way == "query" else ranked in ([], [["b"]])
    assert [chunk.id for chunk in record.chunks()] == ["b"]


tell = get_dispatcher(__name__).event


class Telling(Keep):
    """Has events in all ways, and a span only in the synchronous one, as some of LlamaIndex's."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        tell(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=1, model_name="m"))
        kept = super()._postprocess_nodes(nodes, query_bundle)
        tell(ReRankEndEvent(nodes=kept))
        return kept

    async def _apostprocess_nodes(self, nodes, query_bundle=None):
        tell(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=1, model_name="m"))
        await asyncio.sleep(0)
        kept = [one for one in nodes if one.node_id in self.ids]
        tell(ReRankEndEvent(nodes=kept))
        return kept


@pytest.mark.parametrize("way", ["query", "aquery"])
def test_a_reranker_that_tells_by_events(way):
    asked = engine("a", "b", node_postprocessors=[Telling(ids=("b",))])

    async def gathered():
        await asyncio.gather(*(asked.aquery(f"q{n}") for n in range(5)))

    with capturing() as handler:
        [asked.query(f"q{n}") for n in range(5)] if way == "query" else asyncio.run(gathered())
    assert len(handler.records) == 5
    for record in handler.records:
        retrieved, reranked, prompt = record.stages()
        assert (retrieved.kind, reranked.kind, prompt.kind) == ("retrieve", "rerank", "prompt")
        assert (ids(reranked), reranked.query, reranked.inputs) == (["b"], record.question, (0,))
        assert prompt.inputs == (1,)
    assert not handler.errors


@pytest.mark.parametrize("way", ["retrieve", "aretrieve"])
def test_the_ids_that_a_retriever_really_returned(way):
    """Older cores leave out what has the same text, newer ones what has the same id."""
    repeats = Fixed(*(node(id, "the same", source=s) for id, s in ("aA", "bB", "cB", "aA")))
    with capturing() as handler:
        found = repeats.retrieve("q") if way == "retrieve" else asyncio.run(repeats.aretrieve("q"))
    assert ids(handler.records[0].retrievals[0]) == [one.node_id for one in found]
    if CORE >= (0, 14, 19):
        assert [one.node_id for one in found] == ["a", "b", "c"]


def test_what_is_no_list():
    class Lazy(Fixed):
        def retrieve(self, str_or_query_bundle):
            return iter(hits("a"))

    with capturing() as handler:
        assert [one.node_id for one in Lazy().retrieve("q")] == ["a"]
    (stage,) = handler.records[0].retrievals
    assert stage.error == "it returned list_iterator: let it return a list of nodes"


def test_what_is_no_node(caplog):
    """A retriever of the user's may return anything; that is counted, and the query goes on."""
    from ctxeval_llamaindex.handler import CtxEvalEventHandler

    class Odd(Fixed):
        def retrieve(self, str_or_query_bundle):
            return ["a text"]

    handler = CtxEvalEventHandler().install()
    try:
        assert Odd().retrieve("q") == ["a text"]
        assert handler.errors == {"TypeError": 1}
        assert "a hook failed" in caplog.text
        (record,) = handler.records
        assert record.retrievals[0].error == "what it returned could not be read"
        assert len(handler.taker) == 0
    finally:
        handler.close(10)


@pytest.mark.filterwarnings("ignore:Call to deprecated method get_doc_id:DeprecationWarning")
def test_a_query_engine_of_an_index_over_documents():
    documents = [Document(id_=id, text=f"{id} {id}") for id in "ab"]
    made = VectorStoreIndex.from_documents(
        documents, embed_model=Letters(), transformations=[TokenTextSplitter()]
    )
    asked = made.as_query_engine(llm=Model(), similarity_top_k=1)
    assert isinstance(asked, RetrieverQueryEngine)
    with capturing(id_key="source_id") as handler:
        asked.query("b")
    (record,) = handler.records
    assert [chunk.id for chunk in record.chunks()] == ["b"]
    assert record.chunks()[0].span == Span("b", 0, 3)
