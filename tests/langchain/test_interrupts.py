"""Interrupts: question and answer come in several runs of a graph, and are one record."""

import gc
import itertools
import operator
import weakref
from typing import Annotated, TypedDict

import pytest

pytest.importorskip("langgraph.graph")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.types import Command, interrupt
from small_chains import Echo, by_ainvoke, by_invoke, by_stream, echoed, told
from small_graphs import answer, as_dict, retrieve, with_memory

from ctxeval import Recorder, trace
from ctxeval_langchain import CtxEvalCallbackHandler
from ctxeval_langchain.interrupts import Interrupted

QUESTIONS = ["what is 1?", "what is 2?"]


def asks(state):
    return {"answer": f"{interrupt('may I answer?')}, answer to {state['question']}"}


def asks_after_retrieving(state):
    return {**retrieve(state), **asks(state)}


def asks_first(state):
    interrupt("may I look it up?")
    return {**retrieve(state), "answer": f"yes, answer to {state['question']}"}


@task
def look_up(question):
    return Echo().invoke(question)


@entrypoint(checkpointer=InMemorySaver())
def asks_functionally(question):
    look_up(question).result()
    return f"{interrupt('may I answer?')}, answer to {question}"


YES = Command(resume="yes")


def answers_yes(state):
    return {"answer": f"yes, {answer(state)['answer']}"}


INTERRUPTED = {
    "between nodes": (with_memory(retrieve, asks), as_dict("q"), [YES]),
    "in a node that retrieved": (with_memory(asks_after_retrieving), as_dict("q"), [YES]),
    "before the retrieval": (with_memory(asks_first), as_dict("q"), [YES]),
    "functional": (lambda: asks_functionally, "q", [YES]),
    "twice": (with_memory(asks_first, asks), as_dict("q"), [YES, YES]),
    "at a breakpoint": (
        with_memory(retrieve, answers_yes, interrupt_before=["answers_yes"]),
        as_dict("q"),
        [None],
    ),
}


@pytest.mark.parametrize("way", [by_invoke, by_stream, by_ainvoke])
@pytest.mark.parametrize(("make", "given", "resumed"), INTERRUPTED.values(), ids=INTERRUPTED)
def test_an_interrupted_question_is_answered_when_it_is_resumed(
    handler, way, make, given, resumed, request
):
    app = make()
    config = {"callbacks": [handler], "configurable": {"thread_id": request.node.name}}
    way(app, [given], {**config, "metadata": {"ctxeval_id": "7"}})
    assert all(record.answer is None for record in handler.records)
    asked = [record.id for record in handler.records]
    for command in resumed:
        way(app, [command], config)
    (record,) = handler.records
    assert told(record) == ("q", "yes, answer to q", "ok", [echoed("q")])
    assert record.metadata == {"ctxeval_id": "7"}
    assert asked in ([], [record.id])


@pytest.mark.parametrize("nodes", [[retrieve, asks], [asks_after_retrieving]])
def test_an_interrupted_question_has_no_answer_yet(handler, nodes):
    app = with_memory(*nodes)()
    config = {"callbacks": [handler], "configurable": {"thread_id": "1"}}
    app.invoke(as_dict("q"), config)
    assert [told(one) for one in handler.records] == [("q", None, "incomplete", [echoed("q")])]


def test_another_question_on_an_interrupted_thread_is_its_own(handler):
    app = with_memory(retrieve, asks)()
    config = {"callbacks": [handler], "configurable": {"thread_id": "1"}}
    for question in QUESTIONS:
        app.invoke(as_dict(question), config)
    app.invoke(YES, config)
    assert [(one.question, one.status) for one in handler.records] == [
        (QUESTIONS[0], "incomplete"),
        (QUESTIONS[1], "ok"),
    ]


def test_a_graph_that_goes_on_after_its_failure(handler):
    attempts = itertools.count()

    def fails_once(state):
        found = retrieve(state)
        if next(attempts) == 0:
            raise ConnectionError("away")
        return {**found, **answer(state)}

    app = with_memory(fails_once)()
    config = {"callbacks": [handler], "configurable": {"thread_id": "1"}}
    with pytest.raises(ConnectionError):
        app.invoke(as_dict("q"), config)
    assert [told(one) for one in handler.records] == [("q", None, "error", [echoed("q")])]
    app.invoke(None, config)
    assert [told(one) for one in handler.records] == [("q", "answer to q", "ok", [echoed("q")])]


@pytest.mark.parametrize("way", [by_invoke, by_stream, by_ainvoke])
def test_a_graph_that_is_resumed_with_another_handler_of_the_same_recorder(make_handler, way):
    """As a server does, that makes a handler for each request."""
    app = with_memory(retrieve, asks)()
    recorder = Recorder()
    for given in (as_dict("q"), YES):
        config = {"callbacks": [make_handler(recorder)], "configurable": {"thread_id": "1"}}
        way(app, [given], config)
    assert [told(one) for one in recorder.records] == [
        ("q", "yes, answer to q", "ok", [echoed("q")])
    ]
    assert recorder.without_retrieval == 0


def test_a_graph_that_is_resumed_in_another_block_with_the_same_recorder():
    app = with_memory(retrieve, asks)()
    recorder = Recorder()
    config = {"configurable": {"thread_id": "1"}}
    with trace(recorder=recorder):
        app.invoke(as_dict("q"), config)
    with trace(recorder=recorder):
        app.invoke(YES, config)
    assert [told(one)[:3] for one in recorder.records] == [("q", "yes, answer to q", "ok")]


def test_a_graph_that_is_asked_by_a_handler_and_resumed_in_a_block(make_handler):
    app = with_memory(retrieve, asks)()
    handler = make_handler()
    config = {"configurable": {"thread_id": "1"}}
    app.invoke(as_dict("q"), {**config, "callbacks": [handler]})
    with trace(recorder=handler.recorder):
        app.invoke(YES, config)
    assert [told(one)[:3] for one in handler.records] == [("q", "yes, answer to q", "ok")]


def test_another_recorder_cannot_join_what_it_has_not_seen(make_handler):
    app = with_memory(retrieve, asks)()
    first, second = make_handler(), make_handler()
    for handler, given in ((first, as_dict("q")), (second, YES)):
        app.invoke(given, {"callbacks": [handler], "configurable": {"thread_id": "1"}})
    assert [one.status for one in first.records] == ["incomplete"]
    assert second.records == []
    assert second.without_retrieval == 1


def test_a_recorder_takes_what_it_remembers_of_interrupts_along():
    app = with_memory(retrieve, asks)()
    recorder = Recorder()
    handler = CtxEvalCallbackHandler(recorder)
    app.invoke(as_dict("q"), {"callbacks": [handler], "configurable": {"thread_id": "1"}})
    assert recorder.flush(10)
    gone = weakref.ref(recorder)
    kept = weakref.ref(Interrupted.of(recorder))
    del handler, recorder, app
    gc.collect()
    assert (gone(), kept()) == (None, None)


def test_each_of_several_questions_may_be_interrupted_and_resumed(handler):
    graphs, types = pytest.importorskip("langgraph.graph"), pytest.importorskip("langgraph.types")

    def one(state):
        found = retrieve(state)
        for n in range(2):
            interrupt(f"{state['question']} {n}")
        return {**found, **answer(state)}

    graph = graphs.StateGraph(Several)
    graph.add_node("one", one)
    graph.add_conditional_edges(
        graphs.START, lambda state: [types.Send("one", as_dict(q)) for q in state["all"]], ["one"]
    )
    app = graph.compile(checkpointer=InMemorySaver())
    config = {"callbacks": [handler], "configurable": {"thread_id": "1"}}
    given = {"all": QUESTIONS}
    seen = []
    for _ in range(3):
        stopped = app.invoke(given, config).get("__interrupt__", ())
        given = Command(resume={one.id: "yes" for one in stopped})
        seen.append([(one.id, one.question, one.status) for one in handler.records])
    first, second, last = seen
    assert first == second == [(id, question, "incomplete") for id, question, _ in last]
    assert [told(one) for one in handler.records] == [
        (question, f"answer to {question}", "ok", [echoed(question)]) for question in QUESTIONS
    ]


class Several(TypedDict, total=False):
    all: list
    answer: Annotated[str, lambda before, after: f"{before} {after}"]
    context: Annotated[list, operator.add]
