"""Agents: what their tools are asked is not the question, and their last word is the answer."""

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import create_retriever_tool, tool
from small_chains import WAYS, Echo, Scripted, by_ainvoke, by_invoke, echoed, told

QUESTIONS = ["what is 1?", "what is 2?"]
ONE, TWO = (create_retriever_tool(Echo(prefix=name), name, "searches") for name in "ab")


@tool
def by_hand(query: str) -> str:
    """Search by calling a retriever."""
    return Echo(prefix="c").invoke(query)[0].page_content


def agent(*tools, script=None):
    def calls_each(question, turn):
        if turn:
            return f"answer to {question}"
        calls = [
            {"name": one.name, "args": {"query": f"{question} {one.name}"}, "id": one.name}
            for one in tools
        ]
        return AIMessage("let me search", tool_calls=calls)

    return create_agent(Scripted(reply=script or calls_each), list(tools))


def asked(question):
    return {"messages": [HumanMessage("hi"), AIMessage("hello"), HumanMessage(question)]}


AGENTS = {
    "one tool": ([ONE], ["a"]),
    "two tools at once": ([ONE, TWO], ["a", "b"]),
    "a tool that calls a retriever": ([by_hand], ["c"]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("tools", "prefixes"), AGENTS.values(), ids=AGENTS)
def test_one_record_a_question(handler, tools, prefixes, way):
    way(agent(*tools), [asked(question) for question in QUESTIONS], {"callbacks": [handler]})
    records = sorted(handler.records, key=lambda record: record.question)
    assert [record.question for record in records] == QUESTIONS
    for record in records:
        question, answer, status, stages = told(record)
        assert (answer, status) == (f"answer to {question}", "ok")
        queries = [f"{question} {one.name}" for one in tools]
        expected = [echoed(q, name) for q, name in zip(queries, prefixes, strict=True)]
        assert sorted(stages) == expected
        assert all(one.outermost for one in record.retrievals)
        assert record.pooled == (len(tools) > 1)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param([("user", "q")], id="role and text"),
        pytest.param([{"role": "user", "content": "q"}], id="dict"),
        pytest.param([{"type": "human", "content": "q"}], id="dict with a type"),
        pytest.param("q", id="text"),
        pytest.param([HumanMessage([{"type": "text", "text": "q"}])], id="blocks"),
    ],
)
def test_however_the_messages_are_written(handler, asked):
    def script(question, turn):
        call = {"name": ONE.name, "args": {"query": "q"}, "id": "1"}
        return "A" if turn else AIMessage("", tool_calls=[call])

    agent(ONE, script=script).invoke({"messages": asked}, {"callbacks": [handler]})
    assert [told(record) for record in handler.records] == [("q", "A", "ok", [echoed("q", "a")])]


def test_an_agent_that_searches_twice(handler):
    def script(question, turn):
        call = {"name": ONE.name, "args": {"query": f"query {turn}"}, "id": str(turn)}
        return "A" if turn == 2 else AIMessage("", tool_calls=[call])

    agent(ONE, script=script).invoke(asked("q"), {"callbacks": [handler]})
    (record,) = handler.records
    found = [echoed("query 0", "a"), echoed("query 1", "a")]
    assert told(record) == ("q", "A", "ok", found)
    assert [one.order for one in record.retrievals] == [0, 1]


def test_an_agent_that_answers_from_what_it_knows_leaves_no_record(handler):
    agent(ONE, script=lambda question, turn: "A").invoke(asked("q"), {"callbacks": [handler]})
    assert handler.records == []


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
def test_a_tool_by_itself(handler, way):
    way(ONE, [{"query": "q"}], {"callbacks": [handler]})
    (record,) = handler.records
    assert (record.question, record.status) == ("q", "ok")
    assert [chunk.id for chunk in record.chunks()] == ["a1-q", "a2-q"]
