"""Many queries at once and many in turn: none mixed, none kept, no chain held up."""

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("langchain_core")

import small_chains
from small_chains import Echo, by_ainvoke, by_invoke, echoed, rag, told

from ctxeval import NonLLMContextRecall
from ctxeval_langchain import CtxEvalCallbackHandler, runs

MANY = 200
QUESTIONS = [f"q{n:03}" for n in range(MANY)]


def by_threads(runnable, inputs, config):
    together = threading.Barrier(len(inputs))

    def ask(one):
        together.wait()
        return runnable.invoke(one, config)

    with ThreadPoolExecutor(len(inputs)) as pool:
        return list(pool.map(ask, inputs))


def by_one_thread_for_all(runnable, inputs, config):
    """The loop's pool has a single thread, which retrievals and hooks must share."""

    async def ask_all():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        return await asyncio.gather(*(runnable.ainvoke(one, config) for one in inputs))

    return asyncio.run(ask_all())


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "not inline"])
@pytest.mark.parametrize("way", [by_threads, by_ainvoke, by_one_thread_for_all])
def test_many_at_once_do_not_mix(make_handler, way, inline):
    handler = make_handler(inline=inline)
    way(rag(), QUESTIONS, {"callbacks": [handler]})
    assert sorted(told(record) for record in handler.records) == [
        (question, f"answer to {question}", "ok", [echoed(question)]) for question in QUESTIONS
    ]
    assert len(handler._open) == 0
    assert handler.recorder.dropped == {}


def test_many_streams_open_at_once_do_not_mix(handler):
    streams = [rag().stream(question, {"callbacks": [handler]}) for question in QUESTIONS]
    for stream in streams:
        next(stream)
    for stream in reversed(streams):
        list(stream)
    assert [told(record)[:3] for record in handler.records] == [
        (question, f"answer to {question}", "ok") for question in QUESTIONS
    ]
    assert len(handler._open) == 0


def test_the_order_is_that_of_asking(handler):
    first = rag().stream("first", {"callbacks": [handler]})
    next(first)
    rag().invoke("second", {"callbacks": [handler]})
    list(first)
    assert [record.question for record in handler.records] == ["first", "second"]


def asks(retriever, question, config):
    retriever.invoke(question, config)


def leaves(chain, question, config):
    stream = chain.stream(question, config)
    next(stream)
    stream.close()


@pytest.mark.parametrize(
    ("asked", "ask", "count"),
    [
        pytest.param(Echo(), asks, 10_000, id="10,000 that end well"),
        pytest.param(rag(), leaves, 1_000, id="1,000 that are left early"),
    ],
)
def test_many_in_turn_leave_nothing_behind(asked, ask, count, monkeypatch):
    """The first fifth fills what may be filled; the others take no memory of their own."""
    monkeypatch.setattr(runs, "MAX_LATE", 50)
    handler = CtxEvalCallbackHandler(max_records=10)
    blocks = []
    for n in range(count + 1):
        ask(asked, f"q{n}", {"callbacks": [handler]})
        if n % 200 == 0:
            handler.flush()
        if n in (count // 5, count):
            gc.collect()
            blocks.append(sys.getallocatedblocks())
    assert len(handler.records) == 10
    assert len(handler._open) == 0
    assert handler.recorder.dropped == {"more than max_records": count + 1 - 10}
    first, last = blocks
    assert last - first < count / 10, "not even one block for every tenth query"


def test_a_slow_metric_holds_no_chain_up_and_what_is_dropped_is_counted():
    """The worker stands still until all chains are over: none of them waited for it."""
    all_asked = threading.Event()
    held = []

    def stands_still(one, other):
        held.append(all_asked.wait(30))
        return 1.0

    handler = CtxEvalCallbackHandler(
        metrics=[NonLLMContextRecall(distance_measure=stands_still, threshold=0.5)],
        references=[{"user_input": "q", "reference_contexts": ["another text"]}],
        max_pending=5,
    )
    answers = [rag().invoke("q", {"callbacks": [handler]}) for _ in range(MANY)]
    assert answers == ["answer to q"] * MANY
    all_asked.set()
    assert handler.flush(30)
    dropped = handler.recorder.dropped["too many were waiting"]
    assert len(handler.records) + dropped == MANY
    assert dropped >= MANY - 5 - 1 - 5, "five wait, one stands still, five came before it stood"
    assert held
    assert all(held)


def test_a_metric_that_fails_fails_no_chain(make_handler):
    def breaks(one, other):
        raise ZeroDivisionError("my measure is broken")

    handler = make_handler(
        metrics=[NonLLMContextRecall(distance_measure=breaks, threshold=0.5)],
        references=[{"user_input": "q", "reference_contexts": ["another text"]}],
    )
    assert rag().invoke("q", {"callbacks": [handler]}) == "answer to q"
    (record,) = handler.records
    assert record.scores["non_llm_context_recall"].status == "failed"
    assert "my measure is broken" in record.scores["non_llm_context_recall"].reason


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_captures_for_itself(handler):
    config = {"callbacks": [handler]}
    rag().invoke("parent", config)
    assert len(handler.records) == 1
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(BaseException):
            rag().invoke("child", config)
            if handler.flush(10):
                asked = [record.question for record in handler.records]
                code = 0 if asked == ["parent", "child"] else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    by_invoke(rag(), ["parent again"], config)
    assert [record.question for record in handler.records] == ["parent", "parent again"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_is_forked_while_another_thread_is_in_a_hook(handler):
    with handler._open._lock, handler._interrupted._lock:
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)  # a chain that waits for a lock would wait for ever
            config = {"callbacks": [handler], "metadata": {"thread_id": "1"}}
            rag().invoke("child", config)
            os._exit(0 if handler.flush(10) and len(handler.records) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


SCRIPT = """
import sys
from small_chains import rag
from ctxeval import NonLLMContextRecall
from ctxeval_langchain import CtxEvalCallbackHandler

def notes(one, other):
    with open(sys.argv[1], "a") as file:
        file.write(f"{other}\\n")
    return 0.0

handler = CtxEvalCallbackHandler(
    metrics=[NonLLMContextRecall(distance_measure=notes, threshold=0.5)],
    references=[{"user_input": "q", "reference_contexts": ["another text"]}],
)
rag().invoke("q", {"callbacks": [handler]})
"""


def test_what_was_captured_last_is_scored_before_the_interpreter_exits(tmp_path):
    support = Path(small_chains.__file__).parent
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "seen")],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(support), *sys.path])},
    )
    assert sorted((tmp_path / "seen").read_text().split("\n")) == ["", "fact d1-q", "fact d2-q"]
