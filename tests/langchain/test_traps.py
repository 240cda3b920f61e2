"""What LangChain does to handlers: it copies, repeats, moves them and swallows errors."""

import asyncio
import copy
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest

pytest.importorskip("langchain_core")

from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.documents import Document
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.runnables.config import merge_configs
from langchain_core.tracers import context as tracers
from small_chains import (
    PROMPT,
    WAYS,
    Echo,
    Fixed,
    Scripted,
    by_ainvoke,
    by_invoke,
    by_stream,
    echoed,
    rag,
    told,
)

from ctxeval import Recorder
from ctxeval_langchain import CtxEvalCallbackHandler

ANSWERED = ("q", "answer to q", "ok", [echoed("q")])


class Full(Recorder):
    """A recorder that fails whenever something is handed over."""

    def submit(self, order, trace_id, make, *, traced=False):
        raise OSError("no space left")


@pytest.mark.parametrize("way", [by_invoke, by_stream, by_ainvoke])
def test_a_hook_that_fails_costs_the_chain_nothing_and_is_counted(way, caplog):
    handler = CtxEvalCallbackHandler(Full())
    with caplog.at_level(logging.DEBUG, "ctxeval"):
        assert way(rag(), ["q"], {"callbacks": [handler]})
    assert handler.errors == {"OSError": 1}
    assert {record.levelno for record in caplog.records if record.name == "ctxeval"} == {
        logging.DEBUG
    }
    assert len(handler._open) == 0


def test_a_hook_that_fails_tells_when_asked_to():
    handler = CtxEvalCallbackHandler(Full())
    handler.raise_error = True
    with pytest.raises(OSError, match="no space"):
        Echo().invoke("q", config={"callbacks": [handler]})
    assert handler.errors == {"OSError": 1}


class Unreadable(Document):
    """A document whose metadata can't be read."""

    def __getattribute__(self, name):
        if name == "metadata":
            raise OSError("the connection is closed")
        return super().__getattribute__(name)


def test_a_document_that_cannot_be_read_fails_the_retrieval_alone():
    handler = CtxEvalCallbackHandler()
    rag(Fixed(documents=[Unreadable(page_content="x")])).invoke("q", {"callbacks": [handler]})
    (record,) = handler.records
    assert (record.question, record.answer, record.status) == ("q", "answer to q", "ok")
    assert "the connection is closed" in record.retrievals[0].error
    assert handler.errors == {"OSError": 1}
    assert len(handler._open) == 0


def test_another_handler_that_fails_takes_no_event_away(handler, caplog):
    class Fails(BaseCallbackHandler):
        def on_retriever_end(self, documents, **kwargs):
            raise ValueError("mine")

    rag().invoke("q", {"callbacks": [Fails(), handler]})
    assert [told(record) for record in handler.records] == [ANSWERED]
    assert any("mine" in record.getMessage() for record in caplog.records)


def test_another_handler_that_stops_the_chain_leaves_a_retrieval_without_start(make_handler):
    class Stops(BaseCallbackHandler):
        raise_error = True

        def on_retriever_start(self, *args, **kwargs):
            raise ValueError("stop")

        on_retriever_end = on_retriever_start

    first, last = make_handler(), make_handler()
    with pytest.raises(ValueError, match="stop"):
        Echo().invoke("q", config={"callbacks": [Stops(), last]})
    assert last.records == []
    with pytest.raises(ValueError, match="stop"):
        Echo().invoke("q", config={"callbacks": [first, Stops()]})
    first.close()
    assert [(one.question, one.status) for one in first.records] == [("q", "abandoned")]


def test_a_handler_is_itself_true_hashable_and_equal_to_no_other(make_handler):
    one, other = make_handler(), make_handler()
    assert bool(one) is bool(other) is True
    assert len({one, other}) == 2
    assert one != other
    manager = CallbackManager([one])
    manager.add_handler(other)
    assert manager.handlers == [one, other]
    merged = merge_configs(
        {"callbacks": CallbackManager([one], [one])},
        {"callbacks": CallbackManager([other], [other])},
    )
    Echo().invoke("q", config=merged)
    assert len(one.records) == len(other.records) == 1


def test_an_empty_handler_serves_a_configure_hook(handler):
    variable = ContextVar("variable", default=None)
    tracers.register_configure_hook(variable, inheritable=True)
    token = variable.set(handler)
    try:
        rag().invoke("q")
    finally:
        variable.reset(token)
        tracers._configure_hooks.pop()
    assert [told(record) for record in handler.records] == [ANSWERED]


def test_a_copy_of_a_handler_is_the_handler(handler):
    model = Scripted(callbacks=[handler]).model_copy(deep=True)
    assert model.callbacks[0] is handler
    config = copy.deepcopy({"callbacks": [handler]})
    rag().invoke("q", config)
    assert copy.copy(handler) is handler
    assert [told(record) for record in handler.records] == [ANSWERED]


def test_a_completion_model_in_asynchronous_code_does_not_count_as_open(handler):
    """Next to an inline handler, the others miss its start; ours must not depend on it."""
    model = FakeListLLM(responses=["A"])
    chain = {"context": Echo(), "question": RunnablePassthrough()} | PROMPT | model
    other = CtxEvalCallbackHandler(inline=False)
    by_ainvoke(chain, ["q"], {"callbacks": [other, handler]})
    for one in (handler, other):
        assert [told(record) for record in one.records] == [("q", "A", "ok", [echoed("q")])]
        assert len(one._open) == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inline", [True, False])
def test_hooks_may_run_on_any_thread(make_handler, way, inline):
    handler = make_handler(inline=inline)
    places = set()

    def notes(found):
        places.add(threading.get_ident())
        return found

    way(RunnableLambda(notes) | rag(), ["q", "r"], {"callbacks": [handler]})
    assert sorted(told(record)[:3] for record in handler.records) == [
        ("q", "answer to q", "ok"),
        ("r", "answer to r", "ok"),
    ]
    assert places


def test_an_inline_handler_waits_for_no_thread(handler):
    """One thread for all retrievals: the second holds it until the first query is over."""
    first_is_over, in_time = threading.Event(), []

    class Waits(Echo):
        def _get_relevant_documents(self, query, *, run_manager):
            if query == "second":
                in_time.append(first_is_over.wait(10))
            return super()._get_relevant_documents(query, run_manager=run_manager)

    async def ask(query):
        await Waits().ainvoke(query, config={"callbacks": [handler]})
        first_is_over.set()

    async def ask_both():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        await asyncio.gather(ask("first"), ask("second"))

    asyncio.run(ask_both())
    assert in_time == [True]
    assert [record.question for record in handler.records] == ["first", "second"]
