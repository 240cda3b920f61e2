"""Where the user says that question, answer and ids stand; and what is told when they don't."""

import threading

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel
from small_chains import WAYS, Echo, Fixed, by_invoke, rag

from ctxeval import InvalidArgumentError
from ctxeval_langchain import CtxEvalCallbackHandler
from ctxeval_langchain.notices import tell_once


@pytest.fixture(autouse=True)
def nothing_told():
    tell_once.cache_clear()


class Given(BaseModel):
    ask: str
    tone: str = "kind"


CHAIN = RunnableLambda(lambda given: {"found": Echo().invoke("query"), "reply": "A", "cites": []})
MINE = {"ask": "q", "tone": "kind"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("given", [MINE, Given(**MINE)], ids=["dict", "object"])
def test_keys_of_one_s_own(make_handler, way, given):
    handler = make_handler(question_key="ask", answer_key="reply")
    way(CHAIN, [given], {"callbacks": [handler]})
    assert [(one.question, one.answer) for one in handler.records] == [("q", "A")]
    assert handler.recorder.advice == []


@pytest.mark.parametrize("given", [MINE, Given(**MINE)], ids=["dict", "object"])
def test_a_wrong_question_key_is_told_once_with_what_was_there(make_handler, given, caplog):
    handler = make_handler(question_key="aks")
    for _ in range(3):
        CHAIN.invoke(given, {"callbacks": [handler]})
    assert len(handler.records) == 3
    assert handler.recorder.advice == [
        "question_key='aks' found nothing in any of 3 inputs: they hold 'ask', 'tone'"
    ]
    assert caplog.text.count("question_key='aks' found nothing") == 1


def test_a_wrong_answer_key_is_told_once_with_what_was_there(make_handler, caplog):
    handler = make_handler(answer_key="replies")
    for _ in range(3):
        CHAIN.invoke({"question": "q"}, {"callbacks": [handler]})
    assert [one.answer for one in handler.records] == [None] * 3
    assert handler.recorder.advice == [
        "answer_key='replies' found nothing in any of 3 outputs: they hold 'found', 'reply', "
        "'cites'"
    ]
    assert caplog.text.count("answer_key='replies' found nothing") == 1


def test_a_wrong_id_key_is_told_once_with_what_was_there(make_handler, caplog):
    handler = make_handler(id_key="chunk")
    documents = [Document(id="d", page_content="t", metadata={"source": "s", "page": 1})]
    for _ in range(3):
        Fixed(documents=documents).invoke("q", {"callbacks": [handler]})
    assert handler.records[0].chunks()[0].id == "d"
    assert handler.recorder.advice == [
        "id_key='chunk' found nothing in any of 3 chunks' metadata: they hold 'source', 'page'"
    ]
    assert caplog.text.count("id_key='chunk' found nothing") == 1


@pytest.mark.parametrize("option", ["question_key", "answer_key", "id_key"])
def test_a_key_that_fits_some_shapes_only_is_right(make_handler, option):
    """A handler may serve several chains: texts have no keys, and stopped queries no answer."""
    handler = make_handler(**{option: "mine"})
    with_it = Document(id="x", page_content="t", metadata={"mine": "d"})
    shape = RunnableLambda(lambda given: {"d": Fixed(documents=[with_it]).invoke("q"), "mine": "A"})
    config = {"callbacks": [handler]}
    rag().invoke("q", config)
    shape.invoke({"mine": "q"}, config)
    stream = rag().stream("q", config)
    next(stream)
    stream.close()
    assert [one.question for one in handler.records] == ["q", "q", "q"]
    assert [one.answer for one in handler.records][:2] == [
        "answer to q",
        "A" if option == "answer_key" else None,
    ]
    assert handler.recorder.advice == []


@pytest.mark.parametrize("option", ["question_key", "answer_key", "id_key"])
def test_a_function_that_fails_is_told_once_and_costs_no_record(make_handler, option, caplog):
    def fails(value):
        raise KeyError("mine")

    handler = make_handler(**{option: fails})
    for question in "ab":
        by_invoke(rag(), [question], {"callbacks": [handler]})
    assert [one.question for one in handler.records] == ["a", "b"]
    assert [one.answer for one in handler.records] == (
        [None, None] if option == "answer_key" else ["answer to a", "answer to b"]
    )
    assert caplog.text.count(f"{option} failed with KeyError('mine')") == 1


@pytest.mark.parametrize(
    ("found", "text"),
    [
        pytest.param("A", "A", id="text"),
        pytest.param(7, "7", id="number"),
        pytest.param(AIMessage("A"), "A", id="message"),
        pytest.param([HumanMessage("q"), AIMessage("A")], "A", id="messages"),
        pytest.param({"answer": "A"}, "A", id="table"),
        pytest.param([], None, id="nothing"),
        pytest.param({}, None, id="an empty table"),
        pytest.param(None, None, id="none"),
    ],
)
def test_what_may_stand_there(make_handler, found, text):
    handler = make_handler(answer_key="mine")
    chain = RunnableLambda(lambda given: {"d": Echo().invoke("q"), "mine": found, "answer": "B"})
    chain.invoke("q", {"callbacks": [handler]})
    assert [one.answer for one in handler.records] == [text]


class Odd:
    """Its properties fail, and its methods are no fields."""

    question = property(lambda self: 1 / 0)

    def query(self):
        return "not asked"


@pytest.mark.parametrize("key", [None, "query", "question"])
def test_an_object_whose_fields_cannot_be_read(make_handler, key):
    handler = make_handler(question_key=key)
    RunnableLambda(lambda given: Echo().invoke("q")).invoke(Odd(), {"callbacks": [handler]})
    assert [one.question for one in handler.records] == ["q"]


class Lazy:
    """To look at it is to run a chain."""

    def __init__(self, handler):
        self.handler = handler

    @property
    def question(self):
        return Echo().invoke("inner", {"callbacks": [self.handler]})[0].page_content


def test_an_object_that_retrieves_when_it_is_looked_at(handler):
    config = {"callbacks": [handler]}
    thread = threading.Thread(
        target=RunnableLambda(lambda given: Echo().invoke("q")).invoke,
        args=(Lazy(handler), config),
        daemon=True,
    )
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert "fact d1-inner" in [one.question for one in handler.records]


def test_white_space_is_no_question(handler):
    RunnableLambda(lambda given: Echo().invoke("q")).invoke(" ", {"callbacks": [handler]})
    assert [one.question for one in handler.records] == ["q"]


def test_what_a_handler_shows_of_itself(handler):
    rag().invoke("q", {"callbacks": [handler]})
    RunnableLambda(str).invoke("q", {"callbacks": [handler]})
    assert handler.flush(10)
    assert repr(handler) == ("<CtxEvalCallbackHandler of <Recorder records=1 without_retrieval=1>>")


def test_a_query_run_name_that_no_run_has_is_told_once(make_handler, caplog):
    handler = make_handler(query_run_name="aks")
    ask = rag().with_config(run_name="ask")
    for _ in range(2):
        RunnableLambda(lambda given: ask.invoke("q")).invoke("all", {"callbacks": [handler]})
    (line,) = handler.recorder.advice
    assert line.startswith("query_run_name='aks' found nothing in any of 2 queries' runs: ")
    assert "'ask'" in line
    assert caplog.text.count("query_run_name='aks' found nothing") == 1


def test_a_query_run_name_that_some_run_has_is_right(make_handler):
    handler = make_handler(query_run_name="ask")
    ask = rag().with_config(run_name="ask")
    RunnableLambda(lambda given: ask.invoke("q")).invoke("all", {"callbacks": [handler]})
    Echo().invoke("r", {"callbacks": [handler]})
    assert [one.question for one in handler.records] == ["q", "r"]
    assert handler.recorder.advice == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"query_run_name": 5}, "query_run_name: 5 is no name"),
        ({"query_run_name": ""}, "query_run_name: '' is no name"),
        ({"inline": "no"}, "inline: 'no' is no bool"),
        ({"open_seconds": "5"}, "open_seconds: '5' is no time"),
        ({"open_seconds": float("nan")}, "open_seconds: nan is no time"),
        ({"max_open": 0}, "max_open: 0 is no number"),
        ({"reference": []}, "reference: no such option: did you mean 'references'"),
    ],
)
def test_an_argument_that_cannot_be_meant(options, told):
    with pytest.raises(InvalidArgumentError, match=f"^{told}"):
        CtxEvalCallbackHandler(**options)
