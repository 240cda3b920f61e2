"""Direct searches of a vector store, seen by the handler and by LangChain's own tracer."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("numpy")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.tracers.context import collect_runs
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore, VectorStoreRetriever

from ctxeval import InvalidArgumentError
from ctxeval_langchain import CtxEvalCallbackHandler
from ctxeval_langchain.search import traced_search

# LangChain's tracers of before 1.1 use what pydantic deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The `copy` method is deprecated")

SEARCHES = {
    "search": {"search_type": "similarity"},
    "similarity_search": {},
    "similarity_search_with_score": {},
    "similarity_search_with_relevance_scores": {},
    "max_marginal_relevance_search": {"fetch_k": 3},
}
WITH_SCORES = [name for name in SEARCHES if name.endswith(("score", "scores"))]


class Store(InMemoryVectorStore):
    """LangChain's own, with relevance scores, which that one lacks."""

    def _select_relevance_score_fn(self):
        return lambda score: (1 + score) / 2


def made(kind=Store):
    store = kind(DeterministicFakeEmbedding(size=8))
    store.add_documents(
        [Document(id=f"d{n}", page_content=f"fact {n}", metadata={"n": n}) for n in range(4)]
    )
    return store


@pytest.fixture
def store():
    return made()


@pytest.fixture
def handler():
    handler = CtxEvalCallbackHandler()
    handler.raise_error = True
    return handler


def by_invoke(do, ado, handler):
    return RunnableLambda(do).invoke("fact 2", {"callbacks": [handler]})


def by_ainvoke(do, ado, handler):
    return asyncio.run(RunnableLambda(ado).ainvoke("fact 2", {"callbacks": [handler]}))


def by_ainvoke_of_sync(do, ado, handler):
    return asyncio.run(RunnableLambda(do).ainvoke("fact 2", {"callbacks": [handler]}))


WAYS = pytest.mark.parametrize("way", [by_invoke, by_ainvoke, by_ainvoke_of_sync])


def documents(found):
    return [one[0] if isinstance(one, tuple) else one for one in found]


@WAYS
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_in_a_chain(store, handler, way, name):
    traced, options = traced_search(store), {"k": 2, **SEARCHES[name]}

    async def asearch(query):
        return await getattr(traced, f"a{name}")(query, **options)

    found = way(lambda query: getattr(traced, name)(query, **options), asearch, handler)
    plain = getattr(store, name)("fact 2", **options)
    assert found == plain

    (record,) = handler.records
    assert record.question == "fact 2"
    (retrieval,) = record.retrievals
    assert (retrieval.query, retrieval.name, retrieval.parent) == ("fact 2", "Store", None)
    assert [chunk.id for chunk in retrieval.chunks] == [one.id for one in documents(plain)]
    if name in WITH_SCORES:
        assert [chunk.score for chunk in retrieval.chunks] == [score for _, score in plain]
    assert [one.metadata for one in documents(found)] == [
        {"n": int(one.id[1])} for one in documents(plain)
    ]


@WAYS
def test_the_run_stands_below_the_surrounding_one(store, way):
    traced = traced_search(store)
    with collect_runs() as runs:
        way(traced.similarity_search, traced.asimilarity_search, CtxEvalCallbackHandler())
    (root,) = runs.traced_runs
    (child,) = root.child_runs
    assert (child.run_type, child.name) == ("retriever", "Store")
    assert child.parent_run_id == root.id
    assert not child.child_runs
    assert len(child.outputs["documents"]) == 4


def test_passes_on_tags_and_metadata(store):
    traced = traced_search(store)
    with collect_runs() as runs:
        RunnableLambda(traced.similarity_search).invoke("q", {"tags": ["t"], "metadata": {"m": 1}})
    (child,) = runs.traced_runs[0].child_runs
    assert child.tags == ["t"]
    assert child.extra["metadata"]["m"] == 1


def test_outside_of_any_run_a_search_is_a_run_of_its_own(store):
    with collect_runs() as runs:
        traced_search(store).similarity_search("q")
    (root,) = runs.traced_runs
    assert root.run_type == "retriever"


@pytest.mark.parametrize("how", ["positional", "keyword"])
def test_the_query_may_be_a_keyword(store, handler, how):
    traced = traced_search(store)

    def search(query):
        given = {"query": query} if how == "keyword" else {}
        return traced.similarity_search(*([] if given else [query]), k=1, **given)

    assert by_invoke(search, None, handler) == store.similarity_search("fact 2", k=1)
    assert handler.records[0].retrievals[0].query == "fact 2"


@WAYS
def test_an_error_is_the_stores_own_and_is_noted(handler, way):
    failure = ConnectionError("the index is away")

    class Broken(Store):
        def similarity_search(self, query, k=4, **kwargs):
            raise failure

        async def asimilarity_search(self, query, k=4, **kwargs):
            raise failure

    traced = traced_search(made(Broken))
    with pytest.raises(ConnectionError) as caught:
        way(traced.similarity_search, traced.asimilarity_search, handler)
    assert caught.value is failure
    (record,) = handler.records
    assert record.retrievals[0].error == "ConnectionError: the index is away"


ODD = [
    pytest.param(None, id="None"),
    pytest.param([], id="nothing"),
    pytest.param([("text", 0.5)], id="a text with a score"),
    pytest.param([(Document("a"), 0.5, [0.1])], id="a vector besides"),
    pytest.param([()], id="an empty tuple"),
    pytest.param([(Document("a"), None)], id="no score"),
]


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_result_is_left_alone(handler, odd):
    class Odd(Store):
        def similarity_search_with_score(self, query, k=4, **kwargs):
            return odd

    traced = traced_search(made(Odd))
    assert by_invoke(traced.similarity_search_with_score, None, handler) is odd
    assert len(handler.records) == 1


# Retrievers that search a wrapped store.


class Direct(BaseRetriever):
    """A retriever of one's own that searches a store directly."""

    store: VectorStore

    def _get_relevant_documents(self, query, *, run_manager):
        return self.store.similarity_search(query, k=2)


class AsyncDirect(Direct):
    async def _aget_relevant_documents(self, query, *, run_manager):
        return await self.store.asimilarity_search(query, k=2)


def as_retriever(store):
    return store.as_retriever(search_kwargs={"k": 2})


def as_scoring_retriever(store):
    options = {"k": 2, "score_threshold": 0.0}
    return store.as_retriever(search_type="similarity_score_threshold", search_kwargs=options)


def retriever_of(store):
    return VectorStoreRetriever(vectorstore=store, search_kwargs={"k": 2})


def direct(store):
    return Direct(store=store)


def async_direct(store):
    return AsyncDirect(store=store)


@pytest.mark.parametrize("in_chain", [True, False], ids=["in a chain", "bare"])
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize(
    "make", [as_retriever, as_scoring_retriever, retriever_of, direct, async_direct]
)
def test_a_retriever_counts_once(store, handler, make, way, in_chain):
    retriever = make(traced_search(store))
    if in_chain:
        retriever = RunnableLambda(lambda query: query) | retriever
    config = {"callbacks": [handler]}
    if way == "invoke":
        found = retriever.invoke("fact 2", config)
    else:
        found = asyncio.run(retriever.ainvoke("fact 2", config))
    (record,) = handler.records
    assert sum(one.outermost for one in record.retrievals) == 1
    assert [chunk.id for chunk in record.chunks()] == [one.id for one in found]


@pytest.mark.parametrize("make", [as_retriever, as_scoring_retriever])
def test_as_retriever_is_one_run(store, make):
    with collect_runs() as runs:
        (RunnableLambda(lambda query: query) | make(traced_search(store))).invoke("fact 2")
    assert [run.run_type for run in runs.traced_runs[0].child_runs] == ["chain", "retriever"]


def test_a_tool_that_searches(store, handler):
    traced = traced_search(store)

    @tool
    def look_up(query: str) -> str:
        """Look it up."""
        return traced.similarity_search(query, k=1)[0].page_content

    chain = RunnableLambda(lambda query: look_up.invoke({"query": query}))
    assert chain.invoke("fact 2", {"callbacks": [handler]}) == "fact 2"
    (record,) = handler.records
    assert [one.parent for one in record.retrievals] == [None]


# The wrapper stands in for the store.


def test_is_taken_for_the_store(store):
    traced = traced_search(store)
    assert isinstance(traced, Store)
    assert traced.__class__ is Store
    assert inspect.iscoroutinefunction(traced.asimilarity_search)
    assert inspect.signature(traced.similarity_search) == inspect.signature(store.similarity_search)
    assert set(dir(store)) == set(dir(traced))
    assert repr(store) in repr(traced)


def test_everything_else_is_the_stores(store):
    traced = traced_search(store)
    assert traced.store is store.store
    assert traced.embeddings is store.embeddings
    traced.label = "mine"
    assert store.label == "mine"
    del traced.label
    assert not hasattr(store, "label")
    assert traced.add_texts(["new"], ids=["d9"]) == ["d9"]
    assert store.get_by_ids(["d9"])[0].page_content == "new"
    traced.delete(["d9"])
    asyncio.run(traced.adelete(["d0"]))
    assert store.get_by_ids(["d0", "d9"]) == []
    with pytest.raises(AttributeError, match="no_such"):
        traced.no_such  # noqa: B018
    assert type(traced.from_texts(["a"], store.embeddings)) is Store


@pytest.mark.parametrize("wrong", [None, "store", made().as_retriever()])
def test_says_what_is_no_vector_store(wrong):
    with pytest.raises(InvalidArgumentError, match="VectorStore"):
        traced_search(wrong)


def test_the_store_itself_stays_untraced(store, handler):
    traced_search(store)
    by_invoke(store.similarity_search, None, handler)
    assert handler.records == []


def test_wrapping_twice_is_wrapping_once(store, handler):
    traced = traced_search(traced_search(store))
    by_invoke(traced.similarity_search, None, handler)
    assert len(handler.records[0].retrievals) == 1


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_a_copy_is_traced_too(handler, copied):
    twin = copied(traced_search(made(InMemoryVectorStore)))
    by_invoke(twin.similarity_search, None, handler)
    assert len(handler.records) == 1


@pytest.mark.filterwarnings("ignore:Using SHA-1")
def test_documents_can_be_indexed_through_it(store):
    manager = InMemoryRecordManager("test")
    manager.create_schema()
    new = [Document("new", metadata={"source": "s"})]
    done = index(new, manager, traced_search(store))
    assert done["num_added"] == 1
    assert "new" in [one["text"] for one in store.store.values()]
