"""The garbage collector may end a stream at any moment, also while a hook is at work."""

import threading

import pytest

pytest.importorskip("langchain_core")

from small_chains import Fixed, rag

from ctxeval import Recorder
from ctxeval_langchain import CtxEvalCallbackHandler, runs


def in_time(do):
    """Do it on a thread of its own, which must come to an end."""
    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    thread.join(20)
    return not thread.is_alive()


def test_a_stream_that_is_collected_inside_of_a_hook(monkeypatch):
    handler = CtxEvalCallbackHandler()
    handler.raise_error = True
    config = {"callbacks": [handler]}
    stream = rag(Fixed()).stream("given up", config)
    next(stream)
    enter = runs.enter

    def collected(*arguments):
        stream.close()
        return enter(*arguments)

    monkeypatch.setattr(runs, "enter", collected)
    assert in_time(lambda: Fixed().invoke("q", config)), "the application waits for ever"
    assert [one.question for one in handler.records] == ["given up", "q"]
    assert handler.errors == {}


def test_a_query_without_retrieval_that_is_collected_while_records_are_taken():
    recorder = Recorder()

    def do():
        with recorder._lock:
            recorder.count_without_retrieval()

    assert in_time(do)
    assert recorder.without_retrieval == 1
