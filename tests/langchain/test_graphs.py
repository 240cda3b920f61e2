"""Graphs: a question stays one over all nodes, whatever the state is and whatever is tried."""

import dataclasses
import itertools

import pytest

pytest.importorskip("langgraph.graph")

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, RetryPolicy
from pydantic import BaseModel
from small_chains import WAYS, Echo, by_ainvoke, by_invoke, by_stream, echoed, rag, told
from small_graphs import State, answer, as_dict, graph, retrieve

QUESTIONS = ["what is 1?", "what is 2?"]


class ObjectState(BaseModel):
    question: str
    answer: str = ""


@dataclasses.dataclass
class DataState:
    question: str = ""
    answer: str = ""


def answer_object(state):
    return {"answer": rag().invoke(state.question)}


def reply(state):
    return {"messages": [AIMessage(rag().invoke(state["messages"][-1].content))]}


def as_messages(question):
    before = [HumanMessage("hello"), AIMessage("hello to you")]
    return {"messages": [*before, HumanMessage(question)]}


@task
def look_up(question):
    return Echo().invoke(question)


@entrypoint()
def functional(question):
    return f"{len(look_up(question).result())} documents"


GRAPHS = {
    "dict state": (lambda: graph(State, retrieve, answer), as_dict),
    "pydantic state": (
        lambda: graph(ObjectState, answer_object),
        lambda q: ObjectState(question=q),
    ),
    "dataclass state": (lambda: graph(DataState, answer_object), lambda q: DataState(question=q)),
    "messages": (lambda: graph(MessagesState, reply), as_messages),
    "messages in short": (lambda: graph(MessagesState, reply), lambda q: {"messages": q}),
    "a graph as a node": (
        lambda: graph(State, _named("inner", graph(State, retrieve, answer))),
        as_dict,
    ),
}


def _named(name, runnable):
    def node(state):
        return runnable.invoke(state)

    node.__name__ = name
    return node


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("make", "given"), GRAPHS.values(), ids=GRAPHS)
def test_one_record_a_question(handler, make, given, way):
    way(make(), [given(question) for question in QUESTIONS], {"callbacks": [handler]})
    assert sorted(map(told, handler.records)) == [
        (question, f"answer to {question}", "ok", [echoed(question)]) for question in QUESTIONS
    ]


@pytest.mark.parametrize("way", WAYS)
def test_functional_api(handler, way):
    way(functional, QUESTIONS, {"callbacks": [handler]})
    assert sorted(map(told, handler.records)) == [
        (question, "2 documents", "ok", [echoed(question)]) for question in QUESTIONS
    ]


@pytest.mark.parametrize("way", [by_invoke, by_stream, by_ainvoke])
def test_a_node_that_is_tried_again(handler, way):
    attempts = itertools.count()

    def tries(state):
        context = Echo(prefix=f"try{next(attempts)}-").invoke(state["question"])
        if len(context[0].id.split("try0")) > 1:
            raise ConnectionError("away")
        return {"context": context, "answer": "A"}

    tried = graph(State, tries, policy=RetryPolicy(initial_interval=0, jitter=False))
    way(tried, [as_dict("q")], {"callbacks": [handler]})
    assert [told(record) for record in handler.records] == [
        ("q", "A", "ok", [("Echo", "q", ["try1-1-q", "try1-2-q"])])
    ]


@pytest.mark.parametrize("way", [by_invoke, by_stream, by_ainvoke])
def test_a_hand_over_to_another_graph_is_no_interruption(handler, way):
    def hands_over(state):
        found = Echo().invoke(state["question"])
        return Command(graph=Command.PARENT, goto="answer", update={"context": found})

    made = StateGraph(State)
    made.add_node("inner", graph(State, hands_over))
    made.add_node("answer", answer)
    made.add_edge(START, "inner")
    way(made.compile(), [as_dict("q")], {"callbacks": [handler]})
    assert [told(record) for record in handler.records] == [
        ("q", "answer to q", "ok", [echoed("q")])
    ]


def test_the_answer_to_an_earlier_question_is_not_this_ones(handler):
    def retrieves_only(state):
        Echo().invoke(state["messages"][-1].content)
        return {}

    app = graph(MessagesState, retrieves_only)
    app.invoke(as_messages("q"), {"callbacks": [handler]})
    assert [told(one) for one in handler.records] == [("q", None, "ok", [echoed("q")])]
