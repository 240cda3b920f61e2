"""What never ends is given up, by number and by time; what comes late makes no second record."""

import asyncio
import contextlib
import threading
import time
import uuid

import pytest

pytest.importorskip("langchain_core")

from langchain_core.runnables import RunnableLambda
from small_chains import Echo, by_invoke, echoed, rag, told

from ctxeval import InvalidArgumentError
from ctxeval_langchain import CtxEvalCallbackHandler, runs


def begun(handler, question):
    """Begin a stream and leave it open, after its retrieval."""
    stream = rag().stream(question, {"callbacks": [handler]})
    next(stream)
    return stream


def endings(handler):
    return [(one.question, one.status) for one in handler.records]


def test_the_oldest_give_way(make_handler):
    handler = make_handler(max_open=2)
    streams = [begun(handler, f"q{n}") for n in range(4)]
    assert endings(handler) == [("q0", "abandoned"), ("q1", "abandoned")]
    for stream in streams:
        list(stream)
    assert endings(handler) == [
        ("q0", "abandoned"),
        ("q1", "abandoned"),
        ("q2", "ok"),
        ("q3", "ok"),
    ]
    assert len(handler._open) == 0


def test_what_takes_too_long_is_given_up(make_handler):
    handler = make_handler(open_seconds=0.001)
    stream = begun(handler, "first")
    time.sleep(0.01)
    rag().invoke("second", {"callbacks": [handler]})
    assert endings(handler) == [("first", "abandoned"), ("second", "ok")]
    assert told(handler.records[0])[3] == [echoed("first")]
    stream.close()
    assert len(handler.records) == 2


def test_nothing_is_given_up_before_its_time(make_handler):
    handler = make_handler(open_seconds=60, max_open=3)
    streams = [begun(handler, f"q{n}") for n in range(2)]
    rag().invoke("q2", {"callbacks": [handler]})
    assert endings(handler) == [("q2", "ok")]
    for stream in streams:
        list(stream)
    assert endings(handler) == [("q0", "ok"), ("q1", "ok"), ("q2", "ok")]


def test_queries_without_retrieval_are_given_up_without_a_record(make_handler):
    handler = make_handler(max_open=1)

    def asks_another(question):
        rag().invoke("inner", {"callbacks": [handler], "metadata": {"ctxeval_id": "1"}})

    RunnableLambda(asks_another).invoke("outer", {"callbacks": [handler]})
    assert endings(handler) == [("inner", "ok")]


def test_a_query_that_goes_on_after_it_was_given_up_is_none_again(make_handler):
    handler = make_handler(max_open=1)

    def goes_on(question):
        Echo(prefix="a").invoke(question)
        chain = {"callbacks": [handler], "metadata": {"ctxeval_id": "1"}}
        Echo().with_config(run_name="other").invoke("other", chain)
        rag().invoke("another query", chain)  # which makes it one too many
        return Echo(prefix="b").invoke(question)

    RunnableLambda(goes_on).invoke("q", {"callbacks": [handler]})
    first = handler.records[0]
    assert (first.question, first.status) == ("q", "abandoned")
    assert [record.question for record in handler.records] == ["q", "another query"]
    assert "b1-q" not in [chunk.id for chunk in first.chunks()]


def test_a_thread_that_outlives_its_cancelled_chain_makes_no_record(handler):
    begun, go, done = threading.Event(), threading.Event(), threading.Event()

    def retrieves_twice(question):
        Echo(prefix="a").invoke(question)
        begun.set()
        assert go.wait(10)
        rag().invoke("late")
        done.set()

    async def run():
        chain = RunnableLambda(retrieves_twice) | rag()
        task = asyncio.create_task(chain.ainvoke("q", {"callbacks": [handler]}))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.01)
        go.set()
        await asyncio.to_thread(done.wait)

    asyncio.run(run())
    assert [told(record) for record in handler.records] == [
        ("q", None, "cancelled", [echoed("q", "a")])
    ]
    assert len(handler._open) == 0


def test_what_is_remembered_of_late_runs_is_bounded(make_handler, monkeypatch):
    monkeypatch.setattr(runs, "MAX_LATE", 5)
    handler = make_handler()
    for n in range(20):
        begun(handler, f"q{n}").close()
    kept = [begun(handler, f"r{n}") for n in range(3)]
    handler.close()
    assert len(handler._open._late) <= 5
    assert {status for _, status in endings(handler)} == {"incomplete", "abandoned"}
    assert len(kept) == 3


def test_a_closed_handler_gives_up_what_is_open_and_counts_what_comes(handler):
    stream = begun(handler, "open")
    rag().invoke("q", {"callbacks": [handler]})
    assert handler.close(10)
    list(stream)
    by_invoke(rag(), ["later"], {"callbacks": [handler]})
    assert endings(handler) == [("open", "abandoned"), ("q", "ok")]
    assert handler.recorder.dropped == {"the recorder is closed": 1}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"max_open": 0}, id="none open"),
        pytest.param({"max_open": True}, id="no number"),
        pytest.param({"max_open": 1.5}, id="no whole number"),
        pytest.param({"open_seconds": 0}, id="no time"),
        pytest.param({"open_seconds": float("nan")}, id="not a number of seconds"),
    ],
)
def test_limits_that_are_none(options):
    (name,) = options
    with pytest.raises(InvalidArgumentError, match=name):
        CtxEvalCallbackHandler(**options)


def test_two_queries_at_once_with_one_run_id_are_told_once(handler, caplog):
    config = {"callbacks": [handler], "run_id": uuid.UUID(int=7)}
    for _ in range(2):
        stream = rag().stream("first", {**config})
        next(stream)
        rag().invoke("second", {**config})
        list(stream)
    assert len(handler.records) == 1
    lines = [one.getMessage() for one in caplog.records if "run_id" in one.getMessage()]
    assert lines == [
        f"ctxeval: two queries at once have the run_id {uuid.UUID(int=7)}, so that they can't be "
        "told apart: leave run_id out, or give each its own"
    ]


def test_what_is_given_up_is_in_no_span_of_another_query(make_handler):
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry is not installed")
    handler = make_handler(max_open=1)
    provider = sdk.TracerProvider()
    stream = begun(handler, "first")
    with provider.get_tracer("app").start_as_current_span("request") as request:
        rag().invoke("second", {"callbacks": [handler]})
        expected = f"{request.get_span_context().trace_id:032x}"
    stream.close()
    first, second = handler.records
    assert (first.status, first.traced) == ("abandoned", None)
    assert second.traced is not None
    assert second.traced.trace_id == expected
    provider.shutdown()
