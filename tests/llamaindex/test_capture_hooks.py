"""One pair of hooks, put in place once, that neither breaks nor slows nor keeps anything."""

import asyncio
import copy
import subprocess
import sys

import pytest

pytest.importorskip("llama_index.core")

import wrapt
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llamaindex_captures import Model, capturing, engine, stages, sub_questions_about
from llamaindex_parts import Fixed, hits

from ctxeval import Recorder
from ctxeval_llamaindex import hooks
from ctxeval_llamaindex.handler import CtxEvalEventHandler
from ctxeval_llamaindex.install import install

ROOT = get_dispatcher()


@pytest.fixture
def lists():
    """Give the dispatcher's lists back as they were."""
    events, spans = [*ROOT.event_handlers], [*ROOT.span_handlers]
    yield
    ROOT.event_handlers, ROOT.span_handlers = events, spans


def ours():
    return (
        sum(one is hooks._events for one in ROOT.event_handlers),
        sum(one is hooks._spans for one in ROOT.span_handlers),
    )


class TestInstalling:
    def test_any_number_of_times_puts_one_pair(self):
        current = hooks.tracker.current
        for _ in range(3):
            install(current)
            CtxEvalEventHandler()
        assert ours() == (1, 1)

    def test_a_handler_twice_counts_once(self):
        with capturing() as handler:
            handler.install()
            Fixed("a").retrieve("q")
        assert len(handler.records) == 1

    def test_by_the_dispatcher_s_own_method(self, lists):
        handler = CtxEvalEventHandler()
        Fixed("a").retrieve("before")
        ROOT.add_event_handler(handler)
        ROOT.add_event_handler(handler)
        engine("a").query("q")
        handler.uninstall()
        Fixed("a").retrieve("after")
        assert [record.question for record in handler.records] == ["q"]
        assert stages(handler.records[0]) == [
            ("retrieve", "Fixed", ["a"]),
            ("prompt", "synthesizer", ["a"], "of 0"),
        ]

    def test_both_ways_count_once(self, lists):
        with capturing() as handler:
            ROOT.add_event_handler(handler)
            Fixed("a").retrieve("q")
        assert len(handler.records) == 1

    def test_two_handlers_get_a_record_each(self):
        with capturing() as one, capturing() as other:
            Fixed("a").retrieve("q")
        assert len(one.records) == len(other.records) == 1
        assert one.records[0] is not other.records[0]

    def test_two_handlers_may_share_a_recorder(self):
        recorder = Recorder()
        with capturing(recorder), capturing(recorder):
            Fixed("a").retrieve("q")
        assert len(recorder.records) == 1

    def test_a_query_under_way_is_seen_to_its_end(self):
        class Leaves(Fixed):
            def _retrieve(self, query_bundle):
                handler.uninstall()
                return hits("a")

        with capturing() as handler:
            engine(Leaves()).query("q")
            engine("b").query("not any more")
        assert [(one.question, one.status) for one in handler.records] == [("q", "ok")]

    def test_what_others_took_out_is_put_back(self, lists):
        with capturing() as handler:
            ROOT.event_handlers, ROOT.span_handlers = [], []
            Fixed("a").retrieve("unseen")
            handler.install()
            Fixed("a").retrieve("q")
            ROOT.event_handlers = []
            engine("a").query("r")
        assert [record.question for record in handler.records] == ["q", "r"]

    def test_without_spans_retrievals_are_still_told_by_their_events(self, lists):
        with capturing() as handler:
            ROOT.span_handlers = []
            engine("a").query("q")
        (record,) = handler.records
        assert (record.question, record.status) == ("q", "ok")
        assert stages(record) == [("retrieve", "retriever", ["a"])]


class TestEventsWithoutSpan:
    """An application may tell of a retrieval by itself."""

    def tell(self, query, *ids):
        ROOT.event(RetrievalEndEvent(str_or_query_bundle=query, nodes=hits(*ids)))

    def test_alone(self):
        with capturing() as handler:
            self.tell("q", "a", "b")
        (record,) = handler.records
        assert (record.question, record.status) == ("q", "ok")
        assert stages(record) == [("retrieve", "retriever", ["a", "b"])]

    def test_inside_of_a_query(self):
        from llama_index.core.query_engine import CustomQueryEngine

        case = self

        class Tells(CustomQueryEngine):
            def custom_query(self, query_str):
                case.tell("what?", "a")
                return "answer"

        with capturing() as handler:
            Tells().query("q")
        (record,) = handler.records
        assert (record.question, record.answer) == ("q", "answer")
        assert stages(record) == [("retrieve", "retriever", ["a"])]

    def test_while_nobody_captures(self):
        self.tell("q", "a")
        assert len(hooks.tracker) == 0


class TestOthers:
    def test_broken_handlers_of_others(self, lists):
        class Breaks(BaseEventHandler):
            @classmethod
            def class_name(cls):
                return "Breaks"

            def handle(self, event, **kwargs):
                raise KeyboardInterrupt

        ROOT.event_handlers.insert(0, Breaks())
        with capturing() as handler:
            engine("a").query("q")
        assert len(handler.records) == 1

    @pytest.mark.parametrize("place", [0, 2], ids=["before us", "after us"])
    @pytest.mark.parametrize("way", ["query", "aquery"])
    def test_tracers_put_a_proxy_around_the_stream(self, lists, place, way):
        """Which can be read both ways, whichever the stream can."""

        class Proxy(wrapt.ObjectProxy):
            def __iter__(self):
                return self

            def __next__(self):
                token = next(self.__wrapped__)
                seen.append(token)
                return token

            def __aiter__(self):
                return self

            async def __anext__(self):
                token = await anext(self.__wrapped__)
                seen.append(token)
                return token

        class Wraps(SimpleSpanHandler):
            def span_exit(self, id_, bound_args, instance=None, result=None, **kwargs):
                if "response_gen" in getattr(result, "__dict__", {}):
                    result.response_gen = Proxy(result.response_gen)

        async def read():
            response = await engine("a", streaming=True).aquery("q")
            return "".join([token async for token in response.response_gen])

        seen = []
        with capturing() as handler:
            ROOT.span_handlers.insert(place, Wraps())
            if way == "query":
                text = "".join(engine("a", streaming=True).query("q").response_gen)
            else:
                text = asyncio.run(read())
        (record,) = handler.records
        assert (record.status, record.answer) == ("ok", text)
        assert text.strip() == "answer to q"
        assert "".join(seen).count("answer") >= 1

    def test_a_generator_stays_a_generator(self):
        import inspect

        with capturing():
            response = engine("a", streaming=True).query("q")
            assert inspect.isgenerator(response.response_gen)
            list(response.response_gen)


class TestFaults:
    """LlamaIndex swallows whatever a hook raises, so they are counted and logged here."""

    def test_a_recorder_that_fails(self, caplog):
        class Odd(Recorder):
            def submit(self, order, trace_id, make, *, traced=False):
                raise KeyError("broken")

        handler = CtxEvalEventHandler(Odd()).install()
        try:
            for _ in range(2):
                assert str(engine("a").query("q")) == "answer to q"
            assert handler.errors == {"KeyError": 2}
            assert caplog.text.count("ctxeval: a hook failed") == 1
            assert len(hooks.tracker) == len(handler.taker) == 0
        finally:
            handler.close(10)

    def test_a_stream_s_reader_does_not_notice(self):
        class Odd(Recorder):
            def submit(self, order, trace_id, make, *, traced=False):
                raise KeyError("broken")

        handler = CtxEvalEventHandler(Odd()).install()
        try:
            response = engine("a", streaming=True).query("q")
            assert "".join(response.response_gen).strip() == "answer to q"
            assert handler.errors == {"KeyError": 2}
        finally:
            handler.close(10)

    def test_an_unreadable_question(self):
        class Odd:
            query_str = property(lambda self: 1 / 0)

        class Any(Fixed):
            def retrieve(self, str_or_query_bundle):
                return hits("a")

        with capturing() as handler:
            Any().retrieve(Odd())
        (record,) = handler.records
        assert (record.question, [chunk.id for chunk in record.chunks()]) == ("", ["a"])


def test_no_spans_are_kept():
    with capturing():
        for _ in range(10):
            sub_questions_about(engine("a"), engine("b")).query("q")
    spans = hooks._spans
    assert len(spans.open_spans) == len(spans.completed_spans) == len(spans.dropped_spans) == 0


def test_it_is_never_copied():
    handler = CtxEvalEventHandler()
    assert copy.copy(handler) is handler
    assert copy.deepcopy(handler) is handler
    assert handler.class_name() == "CtxEvalEventHandler"
    assert isinstance(handler, BaseEventHandler)


def test_the_hooks_load_nothing_of_llama_index_core():
    """Where the instrumentation is a package of its own, which is much quicker to load."""
    pytest.importorskip("llama_index_instrumentation")
    code = (
        "import sys, ctxeval_llamaindex.install, ctxeval_llamaindex.handler;"
        "sys.exit('llama_index.core' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_models_spans_are_none_of_ours():
    with capturing():
        Model().complete("Query: x\n")
        assert len(hooks.tracker) == 0
