"""How a query ends: answered, its stream read or not, failed, cancelled, or never."""

import asyncio
import contextvars
import gc

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.query_engine import CustomQueryEngine
from llamaindex_captures import Keep, Model, capturing, engine, ids, sub_questions_about
from llamaindex_parts import Fixed, hits
from pydantic import BaseModel

from ctxeval import InvalidArgumentError, Recorder
from ctxeval_llamaindex.handler import CtxEvalEventHandler

QUESTION = "Who?"
ANSWER = f"answer to {QUESTION}"


def outcome(record):
    return record.status, record.answer


class Breaks(Fixed):
    def _retrieve(self, query_bundle):
        raise ConnectionError("the index is away")


class Hangs(Fixed):
    async def _aretrieve(self, query_bundle):
        await asyncio.sleep(60)


class BreaksAfter(Keep):
    ids: tuple = ()

    def _postprocess_nodes(self, nodes, query_bundle=None):
        raise ValueError("no ranking")


class TestStream:
    def test_read_to_its_end(self):
        with capturing() as handler:
            response = engine("a", streaming=True).query(QUESTION)
            assert isinstance(response, StreamingResponse)
            text = "".join(response.response_gen)
        assert outcome(handler.records[0]) == ("ok", text)
        assert text.strip() == ANSWER

    def test_read_as_a_text(self):
        with capturing() as handler:
            response = engine("a", streaming=True).query(QUESTION)
            assert str(response).strip() == ANSWER
            assert str(response).strip() == ANSWER
        assert outcome(handler.records[0]) == ("ok", response.response_txt)

    def test_read_later_fills_the_record(self):
        with capturing() as handler:
            response = engine("a", streaming=True).query(QUESTION)
            (before,) = handler.records
            list(response.response_gen)
            (after,) = handler.records
        assert outcome(before) == ("incomplete", None)
        assert [chunk.id for chunk in before.chunks()] == ["a"]
        assert (after.status, after.answer.strip()) == ("ok", ANSWER)
        assert after.id == before.id

    def test_never_read(self):
        with capturing() as handler:
            response = engine("a", streaming=True).query(QUESTION)
            del response
            gc.collect()
        assert outcome(handler.records[0]) == ("incomplete", None)

    def test_abandoned(self):
        with capturing() as handler:
            tokens = engine("a", streaming=True).query(QUESTION).response_gen
            first = next(tokens)
            tokens.close()
        assert outcome(handler.records[0]) == ("incomplete", first)

    def test_abandoning_it_closes_the_engine_s_own_stream(self):
        closed, kept = [], []

        class Streams(CustomQueryEngine):
            def custom_query(self, query_str):
                def tokens():
                    try:
                        yield from ("one ", "two")
                    finally:
                        closed.append(True)

                found = Fixed("a").retrieve(query_str)
                kept.append(tokens())
                return StreamingResponse(kept[0], source_nodes=found)

        with capturing() as handler:
            response = Streams().query(QUESTION)
            next(response.response_gen)
            response.response_gen.close()
            assert closed == [True]
        assert outcome(handler.records[0]) == ("incomplete", "one ")

    def test_that_fails(self):
        with capturing() as handler:
            response = engine("a", streaming=True, llm=Model(fails_after=1)).query(QUESTION)
            with pytest.raises(ConnectionError, match="the line is cut"):
                list(response.response_gen)
        (record,) = handler.records
        assert (record.status, record.answer.strip()) == ("error", "answer")

    @pytest.mark.parametrize("way", ["response_gen", "async_response_gen", "text", "get_response"])
    def test_asynchronous(self, way):
        async def ask():
            response = await engine("a", streaming=True).aquery(QUESTION)
            if way == "text":
                return await response._async_str()
            if way == "get_response":
                return (await response.get_response()).response
            stream = (
                response.response_gen if way == "response_gen" else response.async_response_gen()
            )
            return "".join([token async for token in stream])

        with capturing() as handler:
            text = asyncio.run(ask())
        assert outcome(handler.records[0]) == ("ok", text)
        assert text.strip() == ANSWER

    def test_abandoning_it_closes_an_asynchronous_one_too(self):
        closed, kept = [], []

        class Streams(CustomQueryEngine):
            def custom_query(self, query_str):
                async def tokens():
                    try:
                        yield "one "
                        yield "two"
                    finally:
                        closed.append(True)

                found = Fixed("a").retrieve(query_str)
                kept.append(tokens())
                return AsyncStreamingResponse(kept[0], source_nodes=found)

        async def ask():
            response = await Streams().aquery(QUESTION)
            await anext(response.response_gen)
            await response.response_gen.aclose()
            return [*closed]

        with capturing() as handler:
            assert asyncio.run(ask()) == [True]
        assert outcome(handler.records[0]) == ("incomplete", "one ")

    def test_asynchronous_and_abandoned(self):
        async def ask():
            response = await engine("a", streaming=True).aquery(QUESTION)
            async for token in response.response_gen:
                await response.response_gen.aclose()
                return token
            raise AssertionError("no token came")

        with capturing() as handler:
            first = asyncio.run(ask())
        assert outcome(handler.records[0]) == ("incomplete", first)

    def test_read_in_another_thread(self):
        async def ask():
            response = engine("a", streaming=True).query(QUESTION)
            return await asyncio.to_thread(lambda: "".join(response.response_gen))

        with capturing() as handler:
            text = asyncio.run(ask())
        assert outcome(handler.records[0]) == ("ok", text)

    def test_nothing_to_answer_from(self):
        with capturing() as handler:
            response = engine("a", streaming=True, keep=()).query(QUESTION)
            assert str(response) == "Empty Response"
        assert outcome(handler.records[0]) == ("ok", "Empty Response")


class Scripted(CustomQueryEngine):
    result: object

    def custom_query(self, query_str):
        Fixed("a").retrieve(query_str)
        return self.result


class Cited(BaseModel):
    text: str
    cites: list[str]


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        pytest.param(Response("said"), "said", id="response"),
        pytest.param(Response(None), None, id="empty response"),
        pytest.param(
            PydanticResponse(Cited(text="said", cites=["a"])),
            '{"text":"said","cites":["a"]}',
            id="an object",
        ),
    ],
)
def test_what_an_engine_returns(result, answer):
    with capturing() as handler:
        Scripted(result=result).query(QUESTION)
    assert outcome(handler.records[0]) == ("ok", answer)


def test_an_answer_that_cannot_be_read_costs_only_itself():
    class Odd(Cited):
        def model_dump_json(self, **options):
            raise KeyError("no words")

    asked = Scripted(result=PydanticResponse(Odd(text="said", cites=[])))
    handler = CtxEvalEventHandler().install()
    try:
        asked.query(QUESTION)
        assert handler.errors == {"KeyError": 1}
        assert outcome(handler.records[0]) == ("incomplete", None)
        assert len(handler.taker) == 0
    finally:
        handler.close(10)


class TestFailure:
    def test_of_the_retriever(self):
        with capturing(references=[{"user_input": QUESTION, "reference_context_ids": ["a"]}]) as h:
            with pytest.raises(ConnectionError):
                engine(Breaks()).query(QUESTION)
            with pytest.raises(ConnectionError):
                Breaks().retrieve(QUESTION)
        for record in h.records:
            assert outcome(record) == ("error", None)
            (stage,) = record.retrievals
            assert stage.error == "ConnectionError: the index is away"
            assert record.scores["id_based_context_recall"].status == "failed"

    def test_of_the_postprocessor(self):
        with capturing() as handler, pytest.raises(ValueError, match="no ranking"):
            engine("a", node_postprocessors=[BreaksAfter()]).query(QUESTION)
        (record,) = handler.records
        found, ranked = record.retrievals
        assert (ids(found), ids(ranked), ranked.error) == (["a"], [], "ValueError: no ranking")
        assert record.status == "error"

    def test_of_the_model(self):
        class Dumb(Model):
            def complete(self, prompt, formatted=False, **kwargs):
                raise TimeoutError("no answer")

        with capturing() as handler, pytest.raises(TimeoutError):
            engine("a", llm=Dumb()).query(QUESTION)
        (record,) = handler.records
        assert outcome(record) == ("error", None)
        assert [chunk.id for chunk in record.chunks()] == ["a"]

    def test_of_a_part_only(self):
        """A sub-question that fails is left out by the engine, and by its record."""
        broken = Fixed(by_question={f"1: {QUESTION}": ValueError("not this one")})
        with capturing() as handler:
            sub_questions_about(engine("a"), engine(broken), engine("b")).query(QUESTION)
        (record,) = handler.records
        assert record.status == "ok"
        assert [ids(one) for one in record.retrievals] == [["a"], ["a"], ["b"], ["b"]]

    def test_of_an_attempt_before_another(self):
        class Dumb(Model):
            def complete(self, prompt, formatted=False, **kwargs):
                raise TimeoutError("no answer")

        class Falls(CustomQueryEngine):
            def custom_query(self, query_str):
                try:
                    return str(engine("a", llm=Dumb()).query(query_str))
                except TimeoutError:
                    return str(engine("b").query(query_str))

        with capturing() as handler:
            Falls().query(QUESTION)
        (record,) = handler.records
        assert outcome(record) == ("ok", ANSWER)
        assert [ids(one) for one in record.retrievals] == [["b"], ["b"]]

    def test_that_nobody_can_describe(self):
        class Mute(Exception):
            def __str__(self):
                raise KeyError("no words")

        class Bad(Fixed):
            def _retrieve(self, query_bundle):
                raise Mute

        with capturing() as handler, pytest.raises(KeyError):
            Bad().retrieve(QUESTION)
        assert [record.status for record in handler.records] == ["error"]


def test_cancelled():
    async def ask():
        running = asyncio.create_task(engine(Hangs("a")).aquery(QUESTION))
        while not handler.taker.under_way():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()

    with capturing() as handler:
        asyncio.run(ask())
    (record,) = handler.records
    assert outcome(record) == ("cancelled", None)
    assert record.retrievals[0].error.startswith("CancelledError")


class TestNeverEnding:
    """A query whose end nobody tells is given up."""

    def under_way(self, handler, *questions, then):
        async def ask():
            running = [asyncio.create_task(engine(Hangs()).aquery(one)) for one in questions]
            while len(handler.taker) < min(len(questions), 2):
                await asyncio.sleep(0)
            await asyncio.sleep(0.01)
            then()
            for one in running:
                one.cancel()
            await asyncio.wait(running)

        asyncio.run(ask())

    def test_too_many(self):
        with capturing(max_open=2) as handler:
            self.under_way(handler, "q0", "q1", "q2", then=lambda: None)
        assert [(one.question, one.status) for one in handler.records] == [
            ("q0", "abandoned"),
            ("q1", "cancelled"),
            ("q2", "cancelled"),
        ]
        assert handler.records[0].retrievals[0].error == "it never ended"

    def test_too_long(self):
        with capturing(open_seconds=1e-6) as handler:
            self.under_way(handler, "q0", then=lambda: Fixed("a").retrieve("next"))
        assert [one.status for one in handler.records] == ["abandoned", "ok"]

    def test_closed(self):
        recorder = Recorder()
        with capturing(recorder) as handler:
            self.under_way(handler, "q0", then=lambda: handler.close(10))
            Fixed("a").retrieve("not any more")
        assert [(one.question, one.status) for one in recorder.records] == [("q0", "abandoned")]

    def test_what_goes_on_is_no_query_of_its_own(self):
        with capturing(max_open=1) as handler:
            other = contextvars.copy_context()

            class Interrupted(Fixed):
                def _retrieve(self, query_bundle):
                    other.run(Fixed("z").retrieve, "another query")
                    Fixed("b").retrieve("after it was given up")
                    return hits("a")

            engine(Interrupted()).query(QUESTION)
            Fixed("c").retrieve("next")
        assert [(one.question, one.status) for one in handler.records] == [
            (QUESTION, "abandoned"),
            ("another query", "ok"),
            ("next", "ok"),
        ]

    def test_one_handler_gives_up_and_another_does_not(self):
        with capturing(max_open=1) as hasty, capturing() as patient:
            self.under_way(patient, "q0", "q1", then=lambda: None)
        assert [one.status for one in hasty.records] == ["abandoned", "cancelled"]
        assert [one.status for one in patient.records] == ["cancelled", "cancelled"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_open": 0}, "max_open: 0"),
        ({"max_open": True}, "max_open: True"),
        ({"open_seconds": 0}, "open_seconds: 0"),
        ({"open_seconds": "900"}, "open_seconds: '900' is no time"),
        ({"query_name": Recorder}, "is no name of a class"),
        ({"include": "documents"}, "include: 'documents'"),
    ],
)
def test_impossible_options(options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        CtxEvalEventHandler(**options)


def test_a_recorder_and_its_options_exclude_each_other():
    with pytest.raises(InvalidArgumentError, match="references"):
        CtxEvalEventHandler(Recorder(), references=[])


def test_references_in_the_place_of_a_recorder_are_told():
    with pytest.raises(InvalidArgumentError, match="is no Recorder: give references="):
        CtxEvalEventHandler([])
