"""Small graphs for the tests of the LangChain adapter."""

import itertools
from typing import TypedDict

import pytest

pytest.importorskip("langgraph.graph")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from small_chains import Echo


class State(TypedDict, total=False):
    question: str
    context: list
    answer: str


def graph(schema, *nodes, policy=None, **options):
    """Make a graph of nodes that run one after another."""
    made = StateGraph(schema)
    names = [node.__name__ for node in nodes]
    for name, node in zip(names, nodes, strict=True):
        made.add_node(name, node, retry_policy=policy)
    for before, after in itertools.pairwise([START, *names, END]):
        made.add_edge(before, after)
    return made.compile(**options)


def retrieve(state):
    return {"context": Echo().invoke(state["question"])}


def answer(state):
    return {"answer": f"answer to {state['question']}"}


def with_memory(*nodes, **options):
    """Give a way to make such a graph with a memory, which can be interrupted."""
    return lambda: graph(State, *nodes, checkpointer=InMemorySaver(), **options)


def as_dict(question):
    return {"question": question}
