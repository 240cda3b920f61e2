"""Which retriever ran inside of which, where LangChain is not told, and where it only looks so."""

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("langchain_core")

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel
from small_chains import (
    WAYS,
    Broken,
    Echo,
    by_ainvoke,
    by_invoke,
    by_stream,
    echoed,
    rag,
    told,
)


def inner(query):
    return Echo(prefix="inner").invoke(query)


class Hides(BaseRetriever):
    """Calls another retriever without passing its run manager on."""

    def _get_relevant_documents(self, query, *, run_manager):
        return inner(query)[1:]


class HidesTwo(Hides):
    async def _aget_relevant_documents(self, query, *, run_manager):
        found = await asyncio.gather(
            Echo(prefix="inner").ainvoke(query), Echo(prefix="inner").ainvoke(query)
        )
        return found[0][1:]


class HidesAChain(Hides):
    def _get_relevant_documents(self, query, *, run_manager):
        chain = RunnableLambda(lambda text: text) | Echo(prefix="inner")
        return chain.invoke(query)[1:]


class HidesDeeper(Hides):
    def _get_relevant_documents(self, query, *, run_manager):
        return Hides().invoke(query)


def nested(record):
    return [(one.name, one.parent) for one in record.retrievals]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("retriever", "stages"),
    [
        pytest.param(Hides, [("Hides", None), ("Echo", 0)], id="another"),
        pytest.param(HidesAChain, [("HidesAChain", None), ("Echo", 0)], id="a chain"),
        pytest.param(
            HidesDeeper, [("HidesDeeper", None), ("Hides", 0), ("Echo", 1)], id="two levels"
        ),
    ],
)
def test_a_retriever_that_hides_another_in_a_chain(handler, retriever, stages, way):
    way(rag(retriever()), ["q"], {"callbacks": [handler]})
    (record,) = handler.records
    assert nested(record) == stages
    assert [chunk.id for chunk in record.chunks()] == ["inner2-q"]


def test_a_retriever_that_hides_two_at_once(handler):
    by_ainvoke(rag(HidesTwo()), ["q"], {"callbacks": [handler]})
    assert nested(handler.records[0]) == [("HidesTwo", None), ("Echo", 0), ("Echo", 0)]


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke, by_stream])
def test_a_bare_retriever_hides_the_other_altogether(handler, way):
    way(Hides(), ["q"], {"callbacks": [handler]})
    assert nested(handler.records[0]) == [("Hides", None)]


def in_turn(question):
    return [one.id for name in "ab" for one in Echo(prefix=name).invoke(question)]


async def at_once(question):
    found = await asyncio.gather(*(Echo(prefix=name).ainvoke(question) for name in "ab"))
    return [one.id for documents in found for one in documents]


async def in_tasks(question):
    first = asyncio.create_task(Echo(prefix="a").ainvoke(question))
    second = asyncio.create_task(Echo(prefix="b").ainvoke(question))
    return await first, await second


NOT_NESTED = {
    "in turn": (RunnableLambda(in_turn), WAYS),
    "at once": (RunnableLambda(in_turn, afunc=at_once), [by_ainvoke]),
    "in tasks": (RunnableLambda(in_turn, afunc=in_tasks), [by_ainvoke]),
    "in parallel": (RunnableParallel(a=Echo(prefix="a"), b=Echo(prefix="b")), WAYS),
    "after one that failed": (
        Broken().with_fallbacks([Echo(prefix="a")]) | (lambda found: Echo(prefix="b").invoke("q")),
        [by_invoke, by_ainvoke],
    ),
}


@pytest.mark.parametrize(
    ("chain", "way"),
    [
        pytest.param(chain, way, id=f"{name}-{way.__name__}")
        for name, (chain, ways) in NOT_NESTED.items()
        for way in ways
    ],
)
def test_retrievers_beside_each_other_are_not_nested(handler, chain, way):
    way(chain, ["q"], {"callbacks": [handler]})
    (record,) = handler.records
    assert record.question == "q"
    assert {one.parent for one in record.retrievals} == {None}
    assert sorted(chunk.id for chunk in record.chunks()) == ["a1-q", "a2-q", "b1-q", "b2-q"]
    assert record.pooled


class Hanging(Echo):
    async def _aget_relevant_documents(self, query, *, run_manager):
        await asyncio.Event().wait()


@pytest.mark.parametrize("asked_next", [Echo, rag])
def test_a_question_after_a_retrieval_that_was_given_up_in_the_same_task(make_handler, asked_next):
    """A cancelled retriever's end is never told; what follows is not inside of it."""
    handler = make_handler()

    async def ask():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await Hanging().ainvoke("first", config={"callbacks": [handler]})
        await asked_next().ainvoke("q", {"callbacks": [handler]})

    asyncio.run(ask())
    assert [told(record)[3] for record in handler.records] == [[echoed("q")]]
    handler.close()
    assert [(record.question, record.status) for record in handler.records] == [
        ("first", "abandoned"),
        ("q", "ok"),
    ]


def test_a_question_after_a_retrieval_that_was_interrupted(make_handler):
    handler = make_handler()
    with contextlib.suppress(KeyboardInterrupt):
        Broken(error=KeyboardInterrupt()).invoke("first", config={"callbacks": [handler]})
    Echo().invoke("q", config={"callbacks": [handler]})
    assert [told(record)[3] for record in handler.records] == [[echoed("q")]]


@pytest.mark.parametrize("way", [by_invoke, by_stream, by_ainvoke])
def test_the_same_question_again_while_a_stream_of_it_is_abandoned(make_handler, way):
    handler = make_handler()
    config = {"callbacks": [handler]}
    stream = rag().stream("q", config)
    next(stream)
    way(rag(), ["q"], config)
    assert [told(one) for one in handler.records] == [("q", "answer to q", "ok", [echoed("q")])]
    stream.close()
    assert [record.status for record in handler.records] == ["incomplete", "ok"]


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
def test_a_thread_of_ones_own_is_a_query_of_its_own(handler, way):
    """It has none of the context, so that nothing tells what it is part of."""

    def in_a_thread(question):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(Echo().invoke, question, {"callbacks": [handler]}).result()

    way(RunnableLambda(in_a_thread), ["q"], {"callbacks": [handler]})
    assert [told(record) for record in handler.records] == [("q", None, "ok", [echoed("q")])]
