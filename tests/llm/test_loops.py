"""One model, called from scripts, threads, other loops and forked processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("openai")

import ctxeval
from ctxeval import (
    Completion,
    ContextRelevance,
    InvalidArgumentError,
    JudgeError,
    ascore,
    score,
)
from ctxeval.judges.cells import MemoryCache
from ctxeval.llm.loop import PerLoop, run
from ctxeval.testing import ScriptedLLM

ROOT = Path(ctxeval.__file__).parent.parent
EVEN = ScriptedLLM(relevant=lambda question, chunk: int(chunk) % 2 == 0)


def sample(number):
    """Make a sample whose relevance is 1/2, 1/3 or 2/4 … of its chunks: that of EVEN."""
    chunks = [str(n) for n in range(number, number + 2 + number % 3)]
    return {"user_input": f"Question {number}?", "retrieved_contexts": chunks}


def truth(number):
    chunks = sample(number)["retrieved_contexts"]
    return sum(int(chunk) % 2 == 0 for chunk in chunks) / len(chunks)


def relevance(results):
    return results["context_relevance"].value


async def until(condition):
    """Wait for something, at most 20 s."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.005)


def script(tmp_path, server, body):
    """Start a process that runs a script against the server."""
    start = f"""
import asyncio, os, signal, sys, threading, time
from ctxeval import ContextRelevance, llm_factory, score, ascore
from ctxeval.judges.cells import MemoryCache

llm = llm_factory("judge", base_url={server.url!r}, timeout=60)

def value(number):
    chunks = [str(n) for n in range(number, number + 2 + number % 3)]
    metric = ContextRelevance(llm, cache=MemoryCache())
    return metric.score(user_input=f"Question {{number}}?", retrieved_contexts=chunks).value

def truth(number):
    chunks = range(number, number + 2 + number % 3)
    return sum(chunk % 2 == 0 for chunk in chunks) / len(chunks)
"""
    path = tmp_path / "script.py"
    path.write_text(start + body)
    return subprocess.Popen(
        [sys.executable, path],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def tell(process):
    """Let a script go on that waits for a line."""
    process.stdin.write("go on\n")
    process.stdin.flush()


def finished(process):
    """Wait for a process, at most 60 s, and give its output and its errors."""
    try:
        return process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"it hangs: {process.communicate()}")


@pytest.fixture
def llm(serve, connect):
    return connect(serve(EVEN))


# One model, many callers.


def test_in_a_script(serve, tmp_path):
    server = serve(EVEN)
    out, errors = finished(script(tmp_path, server, "print([value(n) for n in range(3)])"))
    assert (out, errors) == (f"{[truth(n) for n in range(3)]}\n", "")


def test_twice_in_a_row_with_one_connection(serve, connect):
    server = serve(EVEN)
    llm = connect(server)
    for number in (1, 2, 3):
        assert relevance(score(sample(number), llm=llm)) == truth(number)
    assert server.connections == 1


async def test_inside_a_running_loop(llm):
    assert relevance(score(sample(1), llm=llm)) == truth(1)
    assert relevance(await ascore(sample(2), llm=llm)) == truth(2)


def test_from_twenty_threads(llm):
    ready = threading.Barrier(20)

    def work(number):
        ready.wait(20)
        return [relevance(score(sample(n), llm=llm)) for n in range(number, number + 3)]

    with ThreadPoolExecutor(20) as threads:
        found = list(threads.map(work, range(20)))
    assert found == [[truth(n) for n in range(number, number + 3)] for number in range(20)]


def test_from_twenty_threads_for_the_same_sample(serve, connect):
    server = serve(EVEN, latency=0.05)
    llm = connect(server)
    with ThreadPoolExecutor(20) as threads:
        found = list(threads.map(lambda _: relevance(score(sample(1), llm=llm)), range(20)))
    assert found == [truth(1)] * 20
    assert server.requests == 1


def test_from_three_loops_one_after_the_other(llm):
    for number in range(3):
        assert relevance(asyncio.run(ascore(sample(number), llm=llm))) == truth(number)


def test_from_three_loops_at_once(llm):
    ready = threading.Barrier(3)

    def work(number):
        async def main():
            ready.wait(20)
            return await asyncio.gather(
                *(ascore(sample(n), llm=llm) for n in range(number, number + 10))
            )

        return [relevance(results) for results in asyncio.run(main())]

    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(work, (0, 10, 20)))
    assert found == [[truth(n) for n in range(start, start + 10)] for start in (0, 10, 20)]


def test_under_uvloop(llm):
    uvloop = pytest.importorskip("uvloop")
    for number in range(2):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            assert relevance(runner.run(ascore(sample(number), llm=llm))) == truth(number)


def test_under_uvloop_for_everything(serve, tmp_path):
    pytest.importorskip("uvloop")
    body = """
import uvloop
uvloop.install()
print([value(n) for n in range(3)], type(asyncio.new_event_loop()).__module__)
"""
    out, _ = finished(script(tmp_path, serve(EVEN), body))
    assert out == f"{[truth(n) for n in range(3)]} uvloop\n"


def test_the_loop_is_the_same_from_everywhere():
    async def loop():
        return asyncio.get_running_loop()

    with ThreadPoolExecutor(5) as threads:
        loops = {
            id(run(loop())),
            *(id(found) for found in threads.map(lambda _: run(loop()), "abc")),
        }
    assert len(loops) == 1


# After a fork.

fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@fork
def test_a_forked_child_and_its_parent(serve, tmp_path):
    body = """
print("parent", value(1) == truth(1), flush=True)
child = os.fork()
if not child:
    print("child", [value(n) == truth(n) for n in range(5)], flush=True)
    import gc; gc.collect()
    os._exit(0)
os.waitpid(child, 0)
print("parent", [value(n) == truth(n) for n in range(5)], flush=True)
"""
    server = serve(EVEN)
    out, _ = finished(script(tmp_path, server, body))
    assert out == f"parent True\nchild {[True] * 5}\nparent {[True] * 5}\n"
    assert server.connections == 2, "each has its own, and the parent's survives"


@fork
def test_a_fork_in_the_middle_of_calls(serve, tmp_path):
    body = """
found = []
threads = [threading.Thread(target=lambda n=n: found.append(value(n))) for n in range(8)]
print("parent", value(9) == truth(9), flush=True)
sys.stdin.readline()
for thread in threads:
    thread.start()
sys.stdin.readline()
child = os.fork()
if not child:
    import gc
    ok = value(5) == truth(5)
    async def collect():
        gc.collect()
        await asyncio.sleep(0.1)
    from ctxeval.llm.loop import run
    run(collect())
    print("child", ok, flush=True)
    os._exit(0)
os.waitpid(child, 0)
for thread in threads:
    thread.join()
print("parent", sorted(found) == sorted(truth(n) for n in range(8)), flush=True)
"""
    server = serve(EVEN)
    process = script(tmp_path, server, body)
    assert process.stdout.readline() == "parent True\n"
    server.together = 9  # nobody is answered before the child asks too
    tell(process)
    asyncio.run(until(lambda: server.in_flight == 8))
    tell(process)
    out, errors = finished(process)
    assert out == "child True\nparent True\n"
    assert "destroyed" not in errors
    assert server.requests == 10, "none was broken off and asked again"


@fork
def test_a_fork_by_multiprocessing(serve, tmp_path):
    body = """
import multiprocessing
print(value(1) == truth(1))
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(pool.map(value, range(6)) == [truth(n) for n in range(6)])
print(value(2) == truth(2))
"""
    out, _ = finished(script(tmp_path, serve(EVEN), body))
    assert out == "True\nTrue\nTrue\n"


# Interruptions.


async def test_a_cancelled_ascore_cancels_its_request(serve, connect):
    server = serve(EVEN, latency=60)
    task = asyncio.create_task(ascore(sample(1), llm=connect(server)))
    await until(lambda: server.in_flight == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: server.in_flight == 0)
    assert server.abandoned == 1


async def test_after_a_cancelled_ascore_the_model_is_free(serve, connect):
    server = serve(EVEN, latency=60)
    llm = connect(server, concurrency=1)
    tasks = [asyncio.create_task(ascore(sample(n), llm=llm)) for n in (1, 2)]
    await until(lambda: server.in_flight == 1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    server.latency = 0
    assert relevance(await ascore(sample(1), llm=llm)) == truth(1)


async def test_a_timeout_around_ascore(serve, connect):
    server = serve(EVEN, latency=60)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ascore(sample(1), llm=connect(server)), 0.3)
    await until(lambda: server.in_flight == 0)


def test_a_keyboard_interrupt_ends_a_script(serve, tmp_path):
    server = serve(EVEN, latency=60)
    body = """
try:
    value(1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    time.sleep(0.5)
"""
    process = script(tmp_path, server, body)
    asyncio.run(until(lambda: server.in_flight == 1))
    process.send_signal(signal.SIGINT)
    asyncio.run(until(lambda: server.in_flight == 0))
    assert finished(process) == ("interrupted\n", "")
    assert server.abandoned == 1


def test_an_interrupted_script_can_go_on(serve, tmp_path):
    server = serve(EVEN, latency=60)
    body = """
try:
    value(1)
except KeyboardInterrupt:
    print(value(1) == truth(1), flush=True)
"""
    process = script(tmp_path, server, body)
    asyncio.run(until(lambda: server.in_flight == 1))
    server.latency = 0
    process.send_signal(signal.SIGINT)
    assert finished(process) == ("True\n", "")


# On ctxeval's own loop.


class Nested(ScriptedLLM):
    """A model of a user's that scores while it judges."""

    def __init__(self, inner, how):
        super().__init__()
        self.inner = inner
        self.how = how

    async def complete(self, messages, schema, *, max_tokens=None):
        value = relevance(await self.how(sample(1), self.inner))
        return Completion(f'{{"chunks": [{{"id": 1, "verdict": {int(value)}}}]}}')


async def by_score(one, inner):
    return score(one, llm=inner)


async def by_ascore(one, inner):
    return await ascore(one, llm=inner)


ONE = {"user_input": "Nested?", "retrieved_contexts": ["a"]}


def test_score_on_the_own_loop_is_refused_instead_of_hanging():
    nested = ContextRelevance(Nested(ScriptedLLM(), by_score), cache=MemoryCache())
    with pytest.raises(InvalidArgumentError, match=r"await ascore\(\) there"):
        nested.score(ONE)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_ascore_on_the_own_loop_works(value):
    inner = ScriptedLLM(relevant=lambda question, chunk: bool(value))
    nested = ContextRelevance(Nested(inner, by_ascore), cache=MemoryCache())
    assert nested.score(ONE).value == value


def test_an_exception_does_not_stop_the_loop():
    class Fails(ScriptedLLM):
        async def complete(self, messages, schema, *, max_tokens=None):
            raise ZeroDivisionError("a bug")

    for _ in range(2):
        with pytest.raises(JudgeError, match="ZeroDivisionError: a bug"):
            ContextRelevance(Fails(), cache=MemoryCache()).score(ONE)
    assert relevance(score(ONE, llm=ScriptedLLM(relevant={"a"}))) == 1.0


def test_what_belongs_to_a_loop_is_made_anew_on_another():
    made = []

    def make():
        made.append(object())
        return made[-1]

    per_loop = PerLoop(make)

    async def get():
        assert per_loop.get() is per_loop.get() is per_loop.made()
        return per_loop.get()

    async def not_yet():
        return per_loop.made()

    first, second = asyncio.run(get()), asyncio.run(get())
    assert made == [first, second]
    assert asyncio.run(not_yet()) is None
