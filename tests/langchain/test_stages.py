"""Retrievers inside of retrievers: a stage each, the outermost counts, ids come from inside."""

import pytest

pytest.importorskip("langchain_classic.retrievers")

from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
    MultiVectorRetriever,
    ParentDocumentRetriever,
    RePhraseQueryRetriever,
)
from langchain_classic.retrievers.document_compressors import LLMChainExtractor
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter
from small_chains import Echo, Fixed, Scripted, by_ainvoke, by_invoke, by_stream, rag, told

TWO, THREE = Fixed(ids=("a", "b")), Fixed(ids=("a", "b", "c"))


def asked(question, turn):
    return "first query\nsecond query"


class Reranker(BaseDocumentCompressor):
    """Turns the order round and keeps two; it drops the ids, as some rerankers do."""

    def compress_documents(self, documents, query, callbacks=None):
        return [
            Document(page_content=one.page_content, metadata={"relevance_score": 0.9 - rank / 10})
            for rank, one in enumerate(list(documents)[:0:-1])
        ]


def extracting(question, turn):
    return "fact a" if "fact a" in question else "only a part of it"


def parent_document():
    retriever = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(DeterministicFakeEmbedding(size=8)),
        docstore=InMemoryStore(),
        child_splitter=CharacterTextSplitter(separator=" ", chunk_size=8, chunk_overlap=0),
    )
    retriever.add_documents([Document("a large text", metadata={"source": "s"})], ids=["p"])
    return retriever


def multi_vector():
    summaries, texts = InMemoryVectorStore(DeterministicFakeEmbedding(size=8)), InMemoryStore()
    texts.mset([("a", Document(id="a", page_content="fact a"))])
    summaries.add_documents([Document("a summary", metadata={"doc_id": "a"})])
    return MultiVectorRetriever(vectorstore=summaries, docstore=texts, id_key="doc_id")


def compressed(compressor):
    return ContextualCompressionRetriever(base_retriever=THREE, base_compressor=compressor)


HASH = "text_hash"
# retriever; then per stage: name, query, ids, kind, the order of the stage around it
RETRIEVERS = {
    "multi query": (
        MultiQueryRetriever.from_llm(TWO, Scripted(reply=asked)),
        [
            ("MultiQueryRetriever", "q", "ab", "retrieve", None),
            ("Fixed", "first query", "ab", "retrieve", 0),
            ("Fixed", "second query", "ab", "retrieve", 0),
        ],
    ),
    "ensemble": (
        EnsembleRetriever(retrievers=[TWO, THREE], weights=[0.5, 0.5]),
        [
            ("EnsembleRetriever", "q", "abc", "retrieve", None),
            ("Fixed", "q", "ab", "retrieve", 0),
            ("Fixed", "q", "abc", "retrieve", 0),
        ],
    ),
    "merger": (
        MergerRetriever(retrievers=[TWO, THREE]),
        [
            ("MergerRetriever", "q", "aabbc", "retrieve", None),
            ("Fixed", "q", "ab", "retrieve", 0),
            ("Fixed", "q", "abc", "retrieve", 0),
        ],
    ),
    "reranker": (
        compressed(Reranker()),
        [
            ("ContextualCompressionRetriever", "q", "cb", "rerank", None),
            ("Fixed", "q", "abc", "retrieve", 0),
        ],
    ),
    "extractor": (
        compressed(LLMChainExtractor.from_llm(Scripted(reply=extracting))),
        [
            ("ContextualCompressionRetriever", "q", ["a", HASH, HASH], "retrieve", None),
            ("Fixed", "q", "abc", "retrieve", 0),
        ],
    ),
    "rephrase": (
        RePhraseQueryRetriever.from_llm(TWO, Scripted(reply=lambda question, turn: "rephrased")),
        [
            ("RePhraseQueryRetriever", "q", "ab", "retrieve", None),
            ("Fixed", "rephrased", "ab", "retrieve", 0),
        ],
    ),
    "parent document": (
        parent_document(),
        [("ParentDocumentRetriever", "q", [HASH], "retrieve", None)],
    ),
    "multi vector": (multi_vector(), [("MultiVectorRetriever", "q", "a", "retrieve", None)]),
}


def described(record):
    """Describe the stages; they ran at once, perhaps, so that inner ones come in any order."""
    return [
        (
            one.name,
            one.query,
            [chunk.id_source if chunk.id_source == HASH else chunk.id for chunk in one.chunks],
            one.kind,
            one.parent,
        )
        for one in record.retrievals
    ]


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke, by_stream])
@pytest.mark.parametrize("bare", [True, False], ids=["bare", "in a chain"])
@pytest.mark.parametrize("name", RETRIEVERS)
def test_stages(handler, name, bare, way):
    if name == "rephrase" and way is by_ainvoke:
        pytest.skip("it is not made for asynchronous code")
    retriever, stages = RETRIEVERS[name]
    way(retriever if bare else rag(retriever), ["q"], {"callbacks": [handler]})
    (record,) = handler.records
    outer, *inner = described(record)
    expected = [(name, query, list(ids), kind, around) for name, query, ids, kind, around in stages]
    assert outer == expected[0]
    assert sorted(inner) == sorted(expected[1:])
    assert [one.order for one in record.retrievals] == list(range(len(stages)))
    assert [[chunk.rank for chunk in one.chunks] for one in record.retrievals] == [
        list(range(len(one.chunks))) for one in record.retrievals
    ]
    assert all(one.latency >= 0 and one.error == "" for one in record.retrievals)
    assert record.chunks() == record.retrievals[0].chunks
    assert not record.pooled


def test_the_funnel_is_scored_stage_by_stage(make_handler):
    handler = make_handler(references=[{"user_input": "q", "reference_context_ids": ["c"]}])
    rag(compressed(Reranker())).invoke("q", {"callbacks": [handler]})
    (record,) = handler.records
    inner, outer = record.stages()
    assert (inner.name, outer.name) == ("Fixed", "ContextualCompressionRetriever")
    assert [inner.scores["reciprocal_rank"].value, outer.scores["reciprocal_rank"].value] == [
        1 / 3,
        1,
    ]
    assert record.scores["reciprocal_rank"].value == 1
    assert [chunk.score for chunk in outer.chunks] == [0.9, 0.8]


class Deep(BaseRetriever):
    """Reranks what an ensemble finds."""

    def _get_relevant_documents(self, query, *, run_manager):
        ensemble = EnsembleRetriever(retrievers=[TWO, THREE], weights=[0.5, 0.5])
        compressor = ContextualCompressionRetriever(
            base_retriever=ensemble, base_compressor=Reranker()
        )
        return compressor.invoke(query, config={"callbacks": run_manager.get_child()})


def test_a_stage_in_a_stage_in_a_stage(handler):
    Deep().invoke("q", config={"callbacks": [handler]})
    (record,) = handler.records
    assert [(one.name, one.parent) for one in record.retrievals] == [
        ("Deep", None),
        ("ContextualCompressionRetriever", 0),
        ("EnsembleRetriever", 1),
        ("Fixed", 2),
        ("Fixed", 2),
    ]
    assert [one.name for one in record.stages()] == [
        "Fixed",
        "Fixed",
        "EnsembleRetriever",
        "ContextualCompressionRetriever",
        "Deep",
    ]
    assert [(chunk.id, chunk.id_source) for chunk in record.chunks()] == [
        ("c", "document_id"),
        ("b", "document_id"),
    ]


def test_an_inner_retriever_that_fails(handler):
    class Away(Echo):
        def _get_relevant_documents(self, query, *, run_manager):
            raise ConnectionError("the index is away")

    ensemble = EnsembleRetriever(retrievers=[TWO, Away()], weights=[0.5, 0.5])
    with pytest.raises(ConnectionError):
        ensemble.invoke("q", config={"callbacks": [handler]})
    (record,) = handler.records
    assert record.status == "error"
    assert [(one.name, one.error) for one in record.retrievals] == [
        ("EnsembleRetriever", "ConnectionError: the index is away"),
        ("Fixed", ""),
        ("Away", "ConnectionError: the index is away"),
    ]
    assert told(record)[0] == "q"
