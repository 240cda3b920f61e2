"""`ctxeval.trace()` captures LlamaIndex in a block, beside handlers and other frameworks."""

import asyncio
import gc
import threading
import weakref

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.instrumentation import get_dispatcher
from llamaindex_captures import capturing, engine, stages
from llamaindex_parts import Fixed, hits

import ctxeval
from ctxeval.capture.trace import current
from ctxeval_llamaindex.hooks import tracker
from ctxeval_llamaindex.install import install

REFERENCES = [{"user_input": "q", "reference_context_ids": ["b"]}]


@pytest.fixture(autouse=True)
def installed():
    install(current)
    yield
    assert len(tracker) == 0


def test_a_block():
    with ctxeval.trace(references=REFERENCES) as t:
        engine("a", "b").query("q")
    engine("a", "b").query("outside")
    (record,) = t.records
    assert (record.question, record.answer, record.status) == ("q", "answer to q", "ok")
    assert record.scores["reciprocal_rank"].value == 0.5
    assert stages(record) == [
        ("retrieve", "Fixed", ["a", "b"]),
        ("prompt", "synthesizer", ["a", "b"], "of 0"),
    ]


def test_blocks_in_blocks():
    with ctxeval.trace() as outer:
        engine("a").query("before")
        with ctxeval.trace() as inner:
            engine("a").query("inside")
        engine("a").query("after")
    assert [record.question for record in outer.records] == ["before", "after"]
    assert [record.question for record in inner.records] == ["inside"]


def test_a_block_inside_of_a_query_that_nobody_captures():
    class Looks(Fixed):
        def _retrieve(self, query_bundle):
            with ctxeval.trace() as t:
                Fixed("b").retrieve("inside")
            blocks.append(t)
            return hits("a")

    blocks = []
    engine(Looks()).query("q")
    assert [record.question for record in blocks[0].records] == ["inside"]


def test_a_block_and_a_handler():
    with capturing() as handler, ctxeval.trace() as t:
        engine("a").query("q")
    assert len(handler.records) == len(t.records) == 1


def test_a_block_for_the_handler_s_own_recorder():
    with capturing() as handler, ctxeval.trace(recorder=handler.recorder):
        engine("a").query("q")
    assert len(handler.records) == 1


def test_tasks_and_threads():
    async def ask():
        with ctxeval.trace() as t:
            started = asyncio.create_task(engine("a").aquery("begun in the block"))
            await asyncio.to_thread(engine("a").query, "in a thread")
            await asyncio.gather(*(engine("a").aquery(f"branch {n}") for n in range(2)))
        await started
        await engine("a").aquery("outside")
        return t

    t = asyncio.run(ask())
    assert {record.question for record in t.records} == {
        "begun in the block",
        "in a thread",
        "branch 0",
        "branch 1",
    }


def test_other_threads_are_left_alone():
    with ctxeval.trace() as t:
        other = threading.Thread(target=engine("a").query, args=("elsewhere",))
        other.start()
        other.join()
    assert t.records == []


def test_a_stream_that_is_read_after_the_block():
    with ctxeval.trace() as t:
        response = engine("a", streaming=True).query("q")
    assert t.records[0].status == "incomplete"
    text = "".join(response.response_gen)
    (record,) = t.records
    assert (record.status, record.answer) == ("ok", text)


def test_a_recorder_is_not_kept():
    with ctxeval.trace() as t:
        engine("a").query("q")
    assert t.flush(10)
    kept = weakref.ref(t)
    del t
    for _ in range(100):  # the worker's thread may still hold it for a moment
        gc.collect()
        if kept() is None:
            break
        threading.Event().wait(0.05)
    assert kept() is None


def test_a_block_puts_the_hooks_back():
    """Others assign the dispatcher's lists anew."""
    root = get_dispatcher()
    events, spans = [*root.event_handlers], [*root.span_handlers]
    root.event_handlers, root.span_handlers = [], []
    try:
        install(current)
        with ctxeval.trace() as t:
            engine("a").query("q")
    finally:
        root.event_handlers, root.span_handlers = events, spans
    assert len(t.records) == 1


def test_an_adapter_is_asked_at_each_block(monkeypatch):
    from ctxeval.capture import trace as module

    class Point:
        name = value = "mine"

        def load(self):
            loaded.append(True)
            return asked.append

    asked, loaded = [], []
    monkeypatch.setattr(module, "entry_points", lambda group: [Point()])
    for _ in range(3):
        with ctxeval.trace():
            pass
    assert (asked, loaded) == ([current] * 3, [True])


def test_both_frameworks():
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Kb(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(id="lc", page_content="text")]

    with ctxeval.trace() as t:
        Kb().invoke("first")
        engine("li").query("second")
        engine("li").query("third")
        Kb().invoke("fourth")
    found = [(one.question, *(chunk.id for chunk in one.chunks())) for one in t.records]
    assert found == [("first", "lc"), ("second", "li"), ("third", "li"), ("fourth", "lc")]


def test_one_framework_inside_of_the_other():
    """Each tells of its own: an engine behind a LangChain retriever leaves two records."""
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Kb(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            found = Fixed("a", "b").retrieve(query)
            return [Document(id=one.node_id, page_content=one.text) for one in found]

    with ctxeval.trace() as t:
        Kb().invoke("q")
    assert [[chunk.id for chunk in one.chunks()] for one in t.records] == [["a", "b"], ["a", "b"]]
