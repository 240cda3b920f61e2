"""Where question and answer stand: found by themselves, or where the user says."""

import pytest

pytest.importorskip("langchain_core")

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel
from small_chains import WAYS, echoed, rag, told

from ctxeval_langchain.reading import answer_of, question_of

CALL = {"name": "search", "args": {}, "id": "1"}


class Output(BaseModel):
    answer: str = "A"
    text: str = "another"


@pytest.mark.parametrize(
    ("given", "question"),
    [
        pytest.param("q", "q", id="text"),
        pytest.param("", None, id="empty text"),
        pytest.param({"question": "q", "query": "other"}, "q", id="question before query"),
        pytest.param({"input": "q", "chat_history": "h"}, "q", id="input"),
        pytest.param({"text": HumanMessage("q")}, "q", id="a message under a key"),
        pytest.param({"input": [AIMessage("x"), HumanMessage("q")]}, "q", id="messages, too"),
        pytest.param(
            {"question": "", "messages": [("human", "q")]}, "q", id="an empty one is none"
        ),
        pytest.param([HumanMessage("old"), HumanMessage("q"), AIMessage("x")], "q", id="the last"),
        pytest.param([SystemMessage("s")], None, id="nothing was asked"),
        pytest.param(HumanMessage(["q", {"type": "image"}, {"text": None}]), "q", id="blocks"),
        pytest.param({"frage": "q", "k": 3}, "q", id="the only text"),
        pytest.param({"frage": "q", "sprache": "de"}, None, id="one of two texts"),
        pytest.param({"question": 3}, None, id="a number"),
        pytest.param(None, None, id="nothing"),
        pytest.param(["q", "r"], None, id="many questions"),
    ],
)
def test_questions(given, question):
    assert question_of(given) == question


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        pytest.param("A", "A", id="text"),
        pytest.param("", "", id="an empty answer is one"),
        pytest.param(AIMessage("A"), "A", id="message"),
        pytest.param(AIMessage([{"type": "text", "text": "A"}, "B"]), "AB", id="blocks"),
        pytest.param({"answer": "A", "output": "B"}, "A", id="answer before output"),
        pytest.param({"result": "A", "source_documents": []}, "A", id="result"),
        pytest.param({"generation": AIMessage("A")}, "A", id="a message under a key"),
        pytest.param(Output(), "A", id="object"),
        pytest.param([HumanMessage("q"), AIMessage("A")], "A", id="messages"),
        pytest.param({"messages": [("user", "q"), ("ai", "A")]}, "A", id="messages in a dict"),
        pytest.param(
            [HumanMessage("q"), AIMessage("A"), AIMessage("", tool_calls=[CALL])],
            "A",
            id="a call is no answer",
        ),
        pytest.param(
            [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [CALL]}],
            None,
            id="nor as a dict",
        ),
        pytest.param(
            [HumanMessage("q"), AIMessage("A"), ToolMessage("found", tool_call_id="1")],
            "A",
            id="nor is what a tool found",
        ),
        pytest.param(
            [HumanMessage("old"), AIMessage("old answer"), HumanMessage("q")],
            None,
            id="nor is an earlier answer",
        ),
        pytest.param({"n": 3}, None, id="no known key"),
        pytest.param([], None, id="no messages"),
        pytest.param(3, None, id="a number"),
    ],
)
def test_answers(output, answer):
    assert answer_of(output) == answer


KEYS = {
    "keys": {"question_key": "frage", "answer_key": "antwort"},
    "functions": {
        "question_key": lambda given: given["frage"],
        "answer_key": lambda output: output["antwort"],
    },
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_names_that_nobody_could_know(make_handler, keys, way):
    def answers(given):
        return {"antwort": rag().invoke(given["frage"]), "extra": "x"}

    handler = make_handler(**keys)
    given = [{"frage": question, "sprache": "de"} for question in ("q1", "q2")]
    way(RunnableLambda(answers), given, {"callbacks": [handler]})
    assert sorted(told(record) for record in handler.records) == [
        (question, f"answer to {question}", "ok", [echoed(question)]) for question in ("q1", "q2")
    ]


def test_names_that_nobody_was_told(handler):
    def answers(given):
        return {"antwort": rag().invoke("rewritten"), "extra": "x"}

    given = {"frage": "q", "sprache": "de"}
    RunnableLambda(answers).invoke(given, {"callbacks": [handler]})
    assert [told(one) for one in handler.records] == [
        ("rewritten", None, "ok", [echoed("rewritten")])
    ]
