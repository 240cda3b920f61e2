"""A forked child waits for no lock that a thread of its parent held."""

import os
import signal
import threading
import warnings
from contextlib import contextmanager

import pytest

from ctxeval import EmbeddingSimilarity, QueryRecord, Recorder, Retrieval
from ctxeval.judges.cells import DEFAULT_CACHE, MemoryCache
from ctxeval.record.query import Chunk
from ctxeval.testing import ScriptedLLM

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@contextmanager
def held(lock):
    """Have another thread hold a lock."""
    taken, let_go = threading.Event(), threading.Event()

    def hold():
        with lock:
            taken.set()
            let_go.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(10)
    try:
        yield
    finally:
        let_go.set()
        thread.join()


def child_does(do):
    """Fork; say whether the child did it in time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(20)
            code = 0 if do() else 2
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("of", ["the recorder", "its budget", "the cache"])
def test_capturing_goes_on_in_a_child(of):
    recorder = Recorder(
        "context_relevance", llm=ScriptedLLM(relevant={"t"}), max_tokens_per_day=10**6
    )
    owner = {
        "the recorder": recorder,
        "its budget": recorder._processing._judging._budget,
        "the cache": DEFAULT_CACHE,
    }[of]

    def capture():
        stage = Retrieval("q", (Chunk(0, "1", "document_id", "t"),))
        recorder.submit(0, 0, lambda: QueryRecord("1", "q", retrievals=[stage]))
        assert recorder.flush(15)
        return recorder.records[0].scores["context_relevance"].value == 1

    with held(owner._lock):
        assert child_does(capture)


def test_caches_go_on_in_a_child():
    cache = MemoryCache()
    similar = EmbeddingSimilarity(lambda texts: [[1.0, 0.0] for _ in texts])
    with held(cache._lock), held(similar._lock):
        assert child_does(lambda: cache.get_many(["key"]) == {} and similar("a", "b") == 1)
