"""Sinks that fail are tried again and counted, stop nobody, and what they miss is not lost."""

from __future__ import annotations

import gc
import json
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from export_records import QUESTION, a_query

from ctxeval import (
    ExportError,
    InvalidArgumentError,
    NotTracedError,
    QueryRecord,
    Recorder,
    Retrieval,
    Store,
)
from ctxeval.capture import outlet, resending
from ctxeval.capture.outlet import Delivery
from ctxeval.capture.sinks import exporters_of
from ctxeval.export import Score
from ctxeval.keys import said_by_others
from ctxeval.testing import ScriptedLLM

REFERENCES = [{"user_input": QUESTION, "reference_context_ids": ["a"]}]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet, "DELAYS", (0.01, 0.02, 0.03))
    monkeypatch.setattr(outlet, "LINGER_SECONDS", 0.05)


class Sink:
    """An exporter that fails as told, and remembers what it took."""

    def __init__(self, failures: int = 0, name: str = "sink", error: Exception | None = None):
        self.name = name
        self.failures = failures
        self.error = error or ConnectionError("it is down")
        self.tried: list[str] = []
        self.took: list[str] = []

    def export(self, record: QueryRecord) -> None:
        self.tried.append(record.id)
        if self.failures:
            self.failures -= 1
            raise self.error
        self.took.append(record.id)


class Waiting:
    """An asynchronous exporter, which nobody would await."""

    name = "waiting"

    async def export(self, record: QueryRecord) -> None:
        raise AssertionError


def recorder(*sinks: Any, **options: Any) -> Recorder:
    return Recorder(["ndcg@10"], REFERENCES, sinks=sinks, **options)


def submit(to: Recorder, *ids: str) -> None:
    for id in ids:
        record = a_query(id)
        to.submit(to.next_order(), id, lambda record=record: record)


def ids(n: int) -> list[str]:
    return [f"q{number}" for number in range(n)]


def test_a_function_gets_the_scores_of_each_query() -> None:
    taken: list[Sequence[Score]] = []
    to = recorder(taken.append)
    submit(to, "q0", "q1")
    assert to.flush(30)
    assert [one[0].query_id for one in taken] == ["q0", "q1"]
    assert {one.name for one in taken[0]} == {"ndcg@10", "relevant[id]"}
    assert to.deliveries == {"list.append": Delivery(sent=2)}


def test_each_sink_gets_each_query_once() -> None:
    first, second = Sink(name="first"), Sink(name="second")
    to = recorder(first, second)
    submit(to, *ids(200))
    assert to.flush(30)
    assert first.took == second.took == ids(200)
    assert to.dropped == {}


def test_what_a_model_judges_is_sent_once_when_it_is_judged() -> None:
    sink, taken = Sink(), []
    to = Recorder(
        ["ndcg@10", "context_relevance"],
        REFERENCES,
        ScriptedLLM(relevant={"The geese rest at a."}),
        sinks=[sink, lambda scores: taken.append({one.name: one.status for one in scores})],
    )
    submit(to, *ids(50))
    assert to.flush(60)
    assert sorted(sink.took) == sorted(ids(50))
    assert {one["context_relevance"] for one in taken} == {"scored"}
    assert to._processing._unsent == {}


def test_what_is_scored_again_is_sent_again() -> None:
    sink = Sink()
    to = recorder(sink)
    submit(to, "q0")
    assert to.flush(30)
    to.rescore(to.records[0], {"reference_context_ids": ["c"]})
    assert to.flush(30)
    assert sink.took == ["q0", "q0"]


def test_a_failing_sink_is_tried_again_and_counted() -> None:
    sink = Sink(failures=3)
    to = recorder(sink)
    submit(to, "q0")
    assert to.flush(30)
    assert sink.took == ["q0"]
    assert to.deliveries["sink"] == Delivery(sent=1, retried=3, error="ConnectionError: it is down")
    assert to.dropped == {}


def test_what_is_given_up_without_a_store_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink(failures=4)
    to = recorder(sink)
    submit(to, "q0")
    assert to.flush(30)
    assert (sink.took, len(sink.tried)) == ([], 4)
    assert to.deliveries["sink"].lost == 1
    assert to.dropped == {"sink: not sent": 1}
    assert "ctxeval leaves records out: sink: not sent (1 so far)" in caplog.text


def test_one_failing_sink_is_not_in_the_others_way() -> None:
    bad, good = Sink(failures=10**9, name="bad"), Sink(name="good")
    to = recorder(bad, good)
    submit(to, *ids(20))
    assert to.flush(30)
    assert good.took == ids(20)
    assert to.deliveries["bad"].lost == 20


def test_one_bad_record_is_not_in_the_others_way() -> None:
    class Picky(Sink):
        def export(self, record: QueryRecord) -> None:
            self.failures = int(record.id == "q1")
            super().export(record)

    sink = Picky()
    to = recorder(sink)
    submit(to, "q0", "q1", "q2")
    assert to.flush(30)
    assert sink.took == ["q0", "q2"]
    assert to.deliveries["sink"][:1] + to.deliveries["sink"][3:5] == (2, 0, 1)


def test_a_hanging_sink_stops_nobody() -> None:
    release, entered = threading.Event(), threading.Event()

    class Hanging(Sink):
        def export(self, record: QueryRecord) -> None:
            entered.set()
            release.wait(60)
            super().export(record)

    hanging, good = Hanging(name="hanging"), Sink(name="good")
    to = recorder(hanging, good, max_pending=5)
    submit(to, "q0")
    assert entered.wait(30)
    for id in ids(20)[1:]:  # the application goes on, and so do scores and the other sink
        submit(to, id)
        assert to.records[-1].scores["ndcg@10"].status == "scored"
        assert to._processing._sending._outlets[1].wait(30)
    assert len(to.evaluation()) == 20
    assert not to.flush(0.05)
    assert to.deliveries["hanging"].waiting == 6
    assert to.deliveries["hanging"].lost == 14
    assert "too many were waiting" in to.deliveries["hanging"].error
    release.set()
    assert to.flush(30)
    assert good.took == ids(20)
    assert hanging.took == ids(6)


def test_a_query_that_is_taken_again_is_sent_as_it_is_last() -> None:
    release = threading.Event()
    questions: list[str] = []

    def slow(scores: Sequence[Score]) -> None:
        release.wait(30)
        questions.append(f"{scores[0].query_id}: {scores[0].value}")

    to = recorder(slow)
    submit(to, "first")
    time.sleep(0.1)
    for found in ([], ["c"], ["a"]):
        record = a_query("q", retrievals=[Retrieval(QUESTION, a_query().retrievals[1].chunks[:1])])
        record.retrievals[0].chunks = tuple(
            one for one in a_query().retrievals[1].chunks if one.id in found
        )
        to.submit(to.next_order(), "q", lambda record=record: record)
    to.records  # noqa: B018  # waits until they are scored
    release.set()
    assert to.flush(30)
    assert questions[1:] == ["q: 1.0"]


def test_what_is_in_no_trace_is_not_tried_again() -> None:
    sink = Sink(failures=1, error=NotTracedError("sink: the query q0 is in no trace"))
    to = recorder(sink)
    submit(to, "q0")
    assert to.flush(30)
    assert sink.tried == ["q0"]
    assert to.dropped == {"sink: in no trace of it": 1}


@pytest.mark.parametrize("error", [SystemExit(), KeyboardInterrupt()])
def test_what_would_end_a_thread_is_a_failure_like_others(error: BaseException) -> None:
    sink = Sink(failures=1, error=error)  # type: ignore[arg-type]
    to = recorder(sink)
    submit(to, "q0", "q1")
    assert to.flush(30)
    assert sorted(sink.took) == ["q0", "q1"]


def test_what_turns_out_to_be_asynchronous_is_a_failure() -> None:
    async def send(scores: Sequence[Score]) -> None:
        raise AssertionError

    to = recorder(lambda scores: send(scores))
    submit(to, "q0")
    assert to.flush(30)
    ((_, fared),) = to.deliveries.items()
    assert (fared.sent, fared.lost) == (0, 1)
    assert "is asynchronous: give a function that sends" in fared.error


def test_a_recorder_may_be_gone_before_its_records_are_sent() -> None:
    release, sink = threading.Event(), Sink()

    def slow(scores: Sequence[Score]) -> None:
        release.wait(30)
        sink.took.append(scores[0].query_id)

    to = recorder(slow)
    submit(to, *ids(3))
    to.records  # noqa: B018  # waits until they are scored
    gone = weakref.ref(to)
    del to
    gc.collect()
    assert gone() is None
    release.set()
    deadline = time.monotonic() + 30
    while len(sink.took) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sink.took == ids(3)


def test_the_thread_ends_when_there_is_nothing_to_do_and_comes_back() -> None:
    sink = Sink(name="sleepy")
    to = recorder(sink)
    for id in ("q0", "q1"):
        submit(to, id)
        assert to.flush(30)
        deadline = time.monotonic() + 30
        while any(one.name == "ctxeval-sleepy" for one in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert sink.took == ["q0", "q1"]


def test_where_no_thread_can_be_had_the_next_record_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink()
    to = recorder(sink)
    start = threading.Thread.start

    def none(self: threading.Thread) -> None:
        if self.name == "ctxeval-sink":
            raise RuntimeError("can't start new thread")
        start(self)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", none)
        submit(to, "q0")
        assert to.records[0].scores["ndcg@10"].status == "scored"
        assert to.deliveries["sink"].waiting == 1
    submit(to, "q1")
    assert to.flush(30)
    assert sink.took == ["q0", "q1"]


def test_no_key_is_in_counts_or_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    error = ConnectionError("https://me:geheim@host/?api_key=geheim refused 'Bearer geheim-4711'")
    to = recorder(Sink(failures=9, error=error))
    submit(to, "q0")
    assert to.flush(30)
    assert "ConnectionError: https://…@host/" in to.deliveries["sink"].error
    said = caplog.text + repr(to.deliveries) + repr(to) + repr(to.dropped)
    assert "geheim" not in said


@pytest.mark.parametrize(
    ("sinks", "message"),
    [
        pytest.param(["langfuse"], "a str takes no scores: give a function of them", id="no sink"),
        pytest.param([Sink(), Sink()], "two are called 'sink', so that", id="one name"),
        pytest.param(print, "is no list of sinks: give", id="a function"),
        pytest.param(Sink(), "is no list of sinks: give", id="an exporter"),
        pytest.param([Sink], "is a class: give what sends", id="a class"),
        pytest.param([Waiting().export], "is asynchronous: give what", id="a coroutine function"),
        pytest.param([Waiting()], "is asynchronous: give what", id="an asynchronous exporter"),
        pytest.param(None, "is no list of sinks: give", id="none"),
    ],
)
def test_what_is_no_sink_is_told(sinks: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"sinks: .*{message}"):
        Recorder(sinks=sinks)


# What could not be sent is kept in the store.


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pytest.importorskip("sqlalchemy", reason="the store's packages are not installed")
    return tmp_path / "kept.db"


def test_what_is_given_up_is_kept_and_sent_later(file: Path) -> None:
    down = Sink(failures=10**9)
    to = recorder(down, store=file)
    submit(to, *ids(10))
    assert to.close(60)
    assert to.deliveries["sink"].kept == 10
    assert to.dropped == {}
    with Store(file) as store:
        assert store.count_unsent() == {"sink": 10}
        up = Sink()
        assert resending.resend(store, [up]) == {"sink": (10, 0, "")}
        assert sorted(up.took) == ids(10)
        assert store.count_unsent() == {}
        assert resending.resend(store, [up]) == {"sink": (0, 0, "")}
        assert len(up.took) == 10


def test_what_is_sent_later_is_what_would_have_been_sent(file: Path) -> None:
    first, later = [], []

    def fails(scores: Sequence[Score]) -> None:
        first.append([one.to_dict() for one in scores])
        raise ConnectionError

    fails.__qualname__ = "mine"
    to = recorder(fails, store=file)
    submit(to, "q0")
    assert to.close(60)

    def works(scores: Sequence[Score]) -> None:
        later.append([one.to_dict() for one in scores])

    works.__qualname__ = "mine"
    with Store(file) as store:
        assert resending.resend(store, [works])["mine"].sent == 1
    assert later[0] == first[0] == first[-1]


def test_only_the_sink_that_failed_gets_it_later(file: Path) -> None:
    to = recorder(Sink(failures=10**9, name="bad"), Sink(name="good"), store=file)
    submit(to, *ids(3))
    assert to.close(60)
    with Store(file) as store:
        bad, good = Sink(name="bad"), Sink(name="good")
        found = resending.resend(store, [bad, good])
    assert (found["bad"].sent, found["good"].sent) == (3, 0)


def test_what_still_fails_stays_and_a_dead_sink_is_left_alone(file: Path) -> None:
    to = recorder(Sink(failures=10**9), store=file)
    submit(to, *ids(10))
    assert to.close(60)
    with Store(file) as store:
        still = Sink(failures=10**9)
        assert resending.resend(store, [still]) == {"sink": (0, 10, "ConnectionError: it is down")}
        assert len(still.tried) == resending.MAX_FAILURES
        one_bad = Sink(failures=1)
        assert resending.resend(store, [one_bad])["sink"][:2] == (9, 1)


def test_what_waits_for_too_many_is_kept_too(file: Path) -> None:
    release = threading.Event()

    class Hanging(Sink):
        def export(self, record: QueryRecord) -> None:
            release.wait(60)
            super().export(record)

    to = recorder(Hanging(), store=file, max_pending=5)
    for id in ids(20):
        submit(to, id)
        to.records  # noqa: B018  # waits until it is scored
    release.set()
    assert to.close(60)
    with Store(file) as store:
        missing = Sink()
        resending.resend(store, [missing])
        assert to.deliveries["sink"].sent + len(missing.took) == 20
        assert len(missing.took) == to.deliveries["sink"].kept > 0


def test_what_waits_when_the_process_ends_is_kept(file: Path) -> None:
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
import test_sending as t
def hangs(scores):
    import time
    time.sleep(60)
class Slow(t.ScriptedLLM):
    async def complete(self, *args, **kwargs):
        import asyncio
        await asyncio.sleep(60)
def ask():
    to = t.recorder(hangs, store={str(file)!r})
    t.submit(to, *t.ids(4))
    to.records
ask()  # its recorder is gone
metrics = ["ndcg@10", "context_relevance"]
judged = t.Recorder(metrics, t.REFERENCES, Slow(), {str(file)!r}, sinks=[hangs])
t.submit(judged, "judging")
"""
    script = file.with_suffix(".py")
    script.write_text(code)
    folder = str(Path(__file__).parent)
    path = os.pathsep.join([folder, *[one for one in sys.path if one]])
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    with Store(file) as store:
        assert sorted(one.id for one in store.unsent("hangs")) == ["judging", *ids(4)]
        judging = next(one for one in store.unsent("hangs") if one.id == "judging")
        assert judging.scores["ndcg@10"].status == "scored"


def test_what_is_deleted_is_not_sent(file: Path) -> None:
    to = recorder(Sink(failures=10**9), store=file)
    submit(to, *ids(3))
    assert to.close(60)
    with Store(file) as store:
        store.delete(question=QUESTION)
        sink = Sink()
        assert resending.resend(store, [sink]) == {"sink": (0, 0, "")}
        assert sink.took == []
        store.prune()
        assert store.stats().tables["unsent"].rows == 0


def test_a_store_that_fails_too_is_counted(file: Path) -> None:
    broken = threading.Event()

    def fails(scores: Sequence[Score]) -> None:
        broken.wait(60)
        raise ConnectionError

    to = recorder(fails, store=file)
    submit(to, "q0")
    assert to._wait_for_scores(30)
    store = to._processing._keeping
    assert store is not None
    store._store.close()
    for left in file.parent.glob(f"{file.name}*"):
        left.unlink()
    file.mkdir()
    broken.set()
    assert to.flush(60)
    ((name, fared),) = to.deliveries.items()
    assert (fared.kept, fared.lost, to.dropped) == (0, 1, {f"{name}: not sent": 1})


def test_a_stores_redaction_holds_for_sinks(file: Path) -> None:
    said: list[str] = []

    class Reading(Sink):
        def export(self, record: QueryRecord) -> None:
            said.append(json.dumps(record.to_dict()))

    store = Store(file, redact=lambda text: text.replace("geese", "birds"))
    to = recorder(Reading(), store=store)
    submit(to, "q0")
    assert to.close(30)
    assert "geese" not in said[0]
    assert "birds" in said[0]
    assert "geese" not in to.records[0].question
    hashed = Store(file.with_name("hashed.db"), store_text=False)
    to = recorder(Reading(), store=hashed)
    submit(to, "q1")
    assert to.close(30)
    assert "geese" not in said[1]
    assert to.records[0].scores["ndcg@10"].value is not None


def test_the_command_resends(file: Path) -> None:
    pytest.importorskip("typer", reason="the command line's packages are not installed")
    to = recorder(Sink(failures=10**9, name="mine"), Sink(failures=10**9, name="b"), store=file)
    submit(to, *ids(3))
    assert to.close(60)
    (file.parent / "myapp.py").write_text(
        "class Mine:\n"
        "    name = 'mine'\n"
        "    def export(self, record):\n"
        "        print('got', record.id)\n"
        "class Telemetry:\n"
        "    sinks = [Mine()]\n"
        "def broken(scores): raise OSError('api_key=geheim')\n"
    )

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "ctxeval.cli", "store", "resend", *arguments, file.name],
            capture_output=True,
            text=True,
            cwd=file.parent,
        )
        return done.returncode, done.stdout + done.stderr

    code, said = run("myapp:Telemetry.sinks")
    assert code == 0, said
    assert said.count("got q") == 3
    assert "mine: 3 sent, 0 left\nb: 3 left, which is none of these sinks\n" in said
    code, said = run("myapp:nothing")
    assert (code, "'myapp:nothing' can't be had: AttributeError" in said) == (2, True)
    code, said = run("nowhere")
    assert (code, "give MODULE:NAME" in said) == (2, True)


def test_a_forked_child_sends_what_is_its_own() -> None:
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    release = threading.Event()

    class Hanging(Sink):
        def export(self, record: QueryRecord) -> None:
            if os.getpid() == parent:
                release.wait(60)
            super().export(record)

    parent = os.getpid()
    sink = Hanging()
    to = recorder(sink)
    submit(to, *ids(3))
    to.records  # noqa: B018  # waits until they are scored
    context = multiprocessing.get_context("fork")
    results = context.Queue()

    def child() -> None:
        submit(to, "child")
        results.put((to.flush(30), sink.took))

    process = context.Process(target=child)
    process.start()
    assert results.get(timeout=60) == (True, ["child"])
    process.join(60)
    release.set()
    assert to.flush(30)
    assert sink.took == ids(3)


def test_what_others_say_is_one_short_line():
    said = said_by_others("\x1b[31mred\x1b]0;title\x07 \u202eevil\nsecond\rline " + "y" * 5000)
    assert said.startswith("�[31mred�]0;title� �evil second line yyy")
    assert len(said) == 500


def test_a_generator_is_told_that_nobody_runs_it():
    def sink(scores):
        yield scores

    [exporter] = exporters_of([sink])
    with pytest.raises(ExportError, match="generator"):
        exporter.export(QueryRecord("1", "q"))
