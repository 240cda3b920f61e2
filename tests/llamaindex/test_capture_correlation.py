"""Queries at the same time don't mix, wherever they run and whatever stands around them."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.dispatcher import active_instrument_tags, instrument_tags
from llama_index.core.retrievers import QueryFusionRetriever
from llamaindex_captures import CORE, Model, capturing, engine, ids, stages
from llamaindex_parts import Fixed, hits

MANY = 200


class Echo(Fixed):
    """Gives one node, whose id is the question; lets others go first."""

    def _retrieve(self, query_bundle):
        return hits(query_bundle.query_str)

    async def _aretrieve(self, query_bundle):
        await asyncio.sleep(0)
        return hits(query_bundle.query_str)


def assert_apart(records, count):
    assert sorted(record.question for record in records) == sorted(f"q{n}" for n in range(count))
    for record in records:
        assert record.answer == f"answer to {record.question}"
        assert stages(record) == [
            ("retrieve", "Echo", [record.question]),
            ("prompt", "synthesizer", [record.question], "of 0"),
        ]


class TestMany:
    def test_gathered(self):
        asked = engine(Echo())

        async def ask():
            await asyncio.gather(*(asked.aquery(f"q{n}") for n in range(MANY)))

        with capturing() as handler:
            asyncio.run(ask())
        assert_apart(handler.records, MANY)

    def test_threads(self):
        asked = engine(Echo())
        with capturing() as handler, ThreadPoolExecutor(8) as pool:
            list(pool.map(asked.query, (f"q{n}" for n in range(MANY))))
        assert_apart(handler.records, MANY)

    def test_threads_of_a_loop(self):
        asked = engine(Echo())

        async def ask():
            loop = asyncio.get_running_loop()
            await asyncio.gather(
                *(asyncio.to_thread(asked.query, f"q{n}") for n in range(10)),
                *(loop.run_in_executor(None, asked.query, f"q{n}") for n in range(10, 20)),
                *(asyncio.create_task(asked.aquery(f"q{n}")) for n in range(20, 30)),
            )

        with capturing() as handler:
            asyncio.run(ask())
        assert_apart(handler.records, 30)


class TestSpansOfTheUser:
    def test_around_many_queries(self):
        asked = engine(Echo())

        @get_dispatcher("mine").span
        async def answer_all():
            await asyncio.gather(*(asked.aquery(f"q{n}") for n in range(8)))
            asked.query("q8")

        with capturing() as handler:
            asyncio.run(answer_all())
        assert_apart(handler.records, 9)

    def test_that_returns_a_future(self):
        """LlamaIndex then takes whatever follows for a part of it."""
        asked = engine(Echo())

        @get_dispatcher("mine").span
        def fire(question):
            return asyncio.ensure_future(asked.aquery(question))

        async def ask():
            await asked.aquery("q0")
            await fire("q1")
            await asked.aquery("q2")
            running = fire("q3")
            await asked.aquery("q4")
            await running

        with capturing() as handler:
            asyncio.run(ask())
        assert_apart(handler.records, 5)

    def test_between_a_query_and_its_retrieval(self):
        class Wraps(Fixed):
            @get_dispatcher("mine").span
            def look(self, text):
                return Echo().retrieve(text)

            def _retrieve(self, query_bundle):
                return self.look(query_bundle.query_str)

        with capturing() as handler:
            engine(Wraps()).query("q0")
        outer, inner, _ = handler.records[0].retrievals
        assert (outer.name, inner.name, inner.parent) == ("Wraps", "Echo", outer.order)


class TestTags:
    def test_of_the_application_are_left_alone(self):
        seen = []

        class Looks(Fixed):
            def _retrieve(self, query_bundle):
                seen.append(dict(active_instrument_tags.get()))
                return hits("a")

        with capturing() as handler, instrument_tags({"user": object()}):
            engine(Looks()).query("q")
        assert [set(one) for one in seen] == [{"user"}]
        assert handler.records[0].metadata == {}

    def test_that_say_what_is_expected(self):
        references = [{"id": "case-7", "reference_context_ids": ["b"]}]
        with capturing(references=references) as handler:
            with instrument_tags({"ctxeval_id": "case-7", "user": "x"}):
                Fixed("a", "b").retrieve("q")
            with instrument_tags({"ctxeval_reference_ids": ["a"]}):
                Fixed("a", "b").retrieve("q")
        by_id, along = handler.records
        assert by_id.metadata == {"ctxeval_id": "case-7"}
        assert by_id.scores["reciprocal_rank"].value == 0.5
        assert along.scores["reciprocal_rank"].value == 1

    def test_with_an_id_of_their_own_make_a_query(self):
        class Batch(Fixed):
            def _retrieve(self, query_bundle):
                for n in range(2):
                    with instrument_tags({"ctxeval_id": f"case-{n}"}):
                        engine(Echo()).query(f"q{n}")
                return []

        with capturing() as handler, instrument_tags({"ctxeval_id": "all"}):
            engine(Batch()).query("both")
        found = {one.question: one.metadata["ctxeval_id"] for one in handler.records}
        assert found == {"both": "all", "q0": "case-0", "q1": "case-1"}


def test_a_task_that_goes_on_after_its_query():
    class Leaves(Fixed):
        later: object = None

        async def _aretrieve(self, query_bundle):
            async def look_again():
                await asyncio.sleep(0.01)
                await Fixed("z").aretrieve("by itself")

            Leaves.later = asyncio.create_task(look_again())
            return hits("a")

    async def ask():
        await engine(Leaves()).aquery("q")
        await Leaves.later

    with capturing() as handler:
        asyncio.run(ask())
    found = {one.question: [c.id for c in one.chunks()] for one in handler.records}
    assert found == {"q": ["a"], "by itself": ["z"]}


def test_a_synchronous_call_in_a_running_loop():
    """Before core 0.14.9 its parts run in a thread that knows nothing of the call around them."""
    fusion = QueryFusionRetriever(
        [Fixed("a"), Fixed("b")], llm=Model(), num_queries=1, use_async=True
    )

    async def ask():
        fusion.retrieve("q")

    with capturing() as handler:
        asyncio.run(ask())
    if CORE >= (0, 14, 9):
        (record,) = handler.records
        assert [one.parent for one in record.retrievals] == [None, 0, 0]
    else:
        assert sorted(len(one.retrievals) for one in handler.records) == [1, 1, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
class TestFork:
    def test_a_child_captures_its_own(self):
        with capturing() as handler:
            Fixed("a").retrieve("before")
            pid = os.fork()
            if pid == 0:
                Fixed("b").retrieve("in the child")
                good = handler.flush(10) and handler.records[-1].question == "in the child"
                os._exit(0 if good else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert [record.question for record in handler.records] == ["before"]

    def test_a_child_of_a_query_that_is_under_way(self):
        class Forks(Fixed):
            def _retrieve(self, query_bundle):
                pid = os.fork()
                if pid == 0:
                    Fixed("b").retrieve("in the child")
                    asked = [one.question for one in handler.records]
                    os._exit(0 if asked == ["in the child"] else 1)
                assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
                return hits("a")

        with capturing() as handler:
            engine(Forks()).query("q")
        (record,) = handler.records
        assert [ids(one) for one in record.retrievals] == [["a"], ["a"]]


def test_nothing_is_kept_of_a_query_that_is_over():
    """Not by the contexts of threads and tasks that live on, either."""
    import gc
    import weakref

    kept = threading.Event()
    dropped = []

    class Starts(Fixed):
        def _retrieve(self, query_bundle):
            import contextvars

            context = contextvars.copy_context()
            threading.Thread(target=context.run, args=(kept.wait, 10)).start()
            found = hits("a", "b")
            dropped.extend(weakref.ref(one.node) for one in found)
            dropped.append(weakref.ref(self))
            return found

    with capturing(max_records=1) as handler:
        engine(Starts()).query("q")
        Fixed("c").retrieve("next")
        assert len(handler.records) == 1
    gc.collect()
    try:
        assert [one() for one in dropped] == [None, None, None]
    finally:
        kept.set()
