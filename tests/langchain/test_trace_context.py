"""Where `trace()` reaches: tasks and streams of the block, and what has a copy of its context."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("langchain_core")

from small_chains import Echo, echoed, rag, told

from ctxeval import trace

ANSWERED = ("q", "answer to q", "ok", [echoed("q")])
RETRIEVED = ("q", None, "ok", [echoed("q")])


def summaries(recorder):
    return [told(record) for record in recorder.records]


async def in_a_task():
    await asyncio.create_task(Echo().ainvoke("q"))


async def gathered():
    await asyncio.gather(Echo().ainvoke("q"))


async def in_a_thread():
    await asyncio.to_thread(Echo().invoke, "q")


async def in_an_executor():
    await asyncio.get_running_loop().run_in_executor(None, Echo().invoke, "q")


def in_a_raw_thread():
    thread = threading.Thread(target=Echo().invoke, args=("q",))
    thread.start()
    thread.join()


def in_a_pool():
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(Echo().invoke, ["q"]))


def in_a_pool_with_context():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(contextvars.copy_context().run, Echo().invoke, "q").result()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(lambda: Echo().invoke("q"), [RETRIEVED], id="at once"),
        pytest.param(lambda: asyncio.run(in_a_task()), [RETRIEVED], id="task"),
        pytest.param(lambda: asyncio.run(gathered()), [RETRIEVED], id="gather"),
        pytest.param(lambda: asyncio.run(in_a_thread()), [RETRIEVED], id="to_thread"),
        pytest.param(in_a_pool_with_context, [RETRIEVED], id="pool with the context"),
        pytest.param(lambda: asyncio.run(in_an_executor()), [], id="run_in_executor"),
        pytest.param(in_a_raw_thread, [], id="raw thread"),
        pytest.param(in_a_pool, [], id="pool"),
    ],
)
def test_where_the_context_goes(call, expected):
    with trace() as t:
        call()
    assert summaries(t) == expected


def test_a_task_that_was_begun_in_the_block_and_ends_later():
    async def run():
        with trace() as t:
            task = asyncio.create_task(rag().ainvoke("q"))
        await task
        return t

    assert summaries(asyncio.run(run())) == [ANSWERED]


def test_a_task_that_was_begun_before_the_block():
    async def run():
        go = asyncio.Event()

        async def waits():
            await go.wait()
            await rag().ainvoke("q")

        task = asyncio.create_task(waits())
        await asyncio.sleep(0)
        with trace() as t:
            go.set()
            await task
        return t

    assert summaries(asyncio.run(run())) == []


def test_a_stream_belongs_to_where_it_is_read():
    with trace() as t:
        stream = rag().stream("q")
    list(stream)
    assert summaries(t) == []
    stream = rag().stream("q")
    with trace() as t:
        list(stream)
    assert summaries(t) == [ANSWERED]


def test_a_stream_that_is_read_beyond_the_block_keeps_its_recorder():
    with trace() as t:
        stream = rag().stream("q")
        next(stream)
    list(stream)
    assert summaries(t) == [ANSWERED]


def test_a_block_that_is_closed_from_another_context():
    async def in_a_generator(made):
        with trace() as t:
            made.append(t)
            await rag().ainvoke("q")
            yield

    async def run():
        made = []
        generator = in_a_generator(made)
        await anext(generator)
        await asyncio.create_task(generator.aclose())
        await rag().ainvoke("after")  # the variable is still set here
        return made[0]

    assert summaries(asyncio.run(run())) == [ANSWERED]
