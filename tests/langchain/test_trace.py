"""`trace()` captures what runs in its block and in what the block began, and nothing else."""

import contextlib
import gc
import threading
import weakref

import pytest

pytest.importorskip("langchain_core")

from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.tracers import context as tracers
from small_chains import WAYS, Echo, by_ainvoke, by_invoke, echoed, rag, told

from ctxeval import InvalidArgumentError, NonLLMContextRecall, Recorder, trace
from ctxeval_langchain import CtxEvalCallbackHandler
from ctxeval_langchain.install import install

ANSWERED = ("q", "answer to q", "ok", [echoed("q")])
RETRIEVED = ("q", None, "ok", [echoed("q")])


def summaries(recorder):
    return [told(record) for record in recorder.records]


@pytest.mark.parametrize("way", WAYS)
def test_a_chain_in_a_block(way):
    with trace() as t:
        way(rag(), ["q"], {})
    rag().invoke("outside")
    assert summaries(t) == [ANSWERED]


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
def test_inner_calls_without_configuration_are_parts(way):
    async def asks(question):
        found = await Echo().ainvoke(question)
        return f"{len(found)}"

    chain = RunnableLambda(lambda question: f"{len(Echo().invoke(question))}", afunc=asks)
    with trace() as t:
        way(chain, ["q"], {})
    assert summaries(t) == [("q", "2", "ok", [echoed("q")])]


def test_parallel_steps_are_parts():
    with trace() as t:
        RunnableParallel(a=Echo(prefix="a"), b=Echo(prefix="b")).invoke("q")
    (record,) = t.records
    assert sorted(one[0] for one in told(record)[3]) == ["Echo", "Echo"]


def test_of_nested_blocks_the_inner_one_captures():
    with trace() as outer:
        Echo().invoke("before")
        with trace() as inner:
            Echo().invoke("q")
        Echo().invoke("after")
    assert [record.question for record in outer.records] == ["before", "after"]
    assert summaries(inner) == [RETRIEVED]


def test_a_block_that_fails_ends_as_well():
    with contextlib.suppress(ZeroDivisionError), trace() as t:
        raise ZeroDivisionError
    Echo().invoke("q")
    assert t.records == []


def test_a_handler_of_ones_own_inside_of_a_block(handler):
    with trace() as t:
        rag().invoke("q", {"callbacks": [handler]})
    assert summaries(t) == summaries(handler) == [ANSWERED]


def test_a_handler_with_the_blocks_recorder_makes_one_record():
    recorder = Recorder()
    with trace(recorder=recorder):
        rag().invoke("q", {"callbacks": [CtxEvalCallbackHandler(recorder)]})
    assert summaries(recorder) == [ANSWERED]


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
def test_a_retriever_that_hides_another(way):
    class Hides(Echo):
        def _get_relevant_documents(self, query, *, run_manager):
            return Echo(prefix="inner").invoke(query)[1:]

    with trace() as t:
        way(Hides(), ["q"], {})
    (record,) = t.records
    assert [(one.name, one.parent) for one in record.retrievals] == [("Hides", None), ("Echo", 0)]
    assert [chunk.id for chunk in record.chunks()] == ["inner2-q"]


def test_what_scoring_calls_is_not_captured():
    def looks_up(one, other):
        return len(Echo().invoke(one)) / 2

    metric = NonLLMContextRecall(distance_measure=looks_up, threshold=0.5)
    references = [{"user_input": "q", "reference_contexts": ["another text"]}]
    with trace(metrics=[metric], references=references) as t:
        rag().invoke("q")
        assert t.flush(10)
    assert summaries(t) == [ANSWERED]
    assert t.records[0].scores["non_llm_context_recall"].value == 1


def test_nothing_outlives_its_block():
    with trace() as t:
        rag().invoke("q")
        t.flush(10)
    recorder = weakref.ref(t)
    del t
    for _ in range(20):  # the worker lets go of it when it looks again
        gc.collect()
        if recorder() is None:
            break
        threading.Event().wait(0.1)
    assert recorder() is None


def test_an_adapter_that_is_installed_twice_captures_once():
    with trace():
        pass
    before = list(tracers._configure_hooks)
    install(lambda: None)
    with trace() as t:
        rag().invoke("q")
    assert tracers._configure_hooks == before
    assert summaries(t) == [ANSWERED]


def test_an_interrupted_graph_is_one_query_over_two_calls():
    pytest.importorskip("langgraph.graph")
    from langgraph.types import Command, interrupt
    from small_graphs import as_dict, retrieve, with_memory

    def asks(state):
        return {"answer": interrupt("may I?")}

    app, config = with_memory(retrieve, asks)(), {"configurable": {"thread_id": "1"}}
    with trace() as t:
        app.invoke(as_dict("q"), config)
        app.invoke(Command(resume="yes"), config)
    assert summaries(t) == [("q", "yes", "ok", [echoed("q")])]


def test_a_recorder_and_its_options_exclude_each_other():
    with (
        pytest.raises(InvalidArgumentError, match="metrics"),
        trace(recorder=Recorder(), metrics=[]),
    ):
        pass
