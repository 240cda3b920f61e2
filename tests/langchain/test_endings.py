"""How a query ends: well, cut short, cancelled, in error or never; each has its status."""

import asyncio
import contextlib
import gc

import pytest

pytest.importorskip("langchain_core")

from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnablePassthrough
from langchain_core.runnables.utils import AddableDict
from small_chains import PROMPT, Broken, Echo, Scripted, by_ainvoke, by_invoke, echoed, rag, told

from ctxeval.testing import ScriptedLLM
from ctxeval_langchain import CtxEvalCallbackHandler

FOUND = {"context": Echo(), "question": RunnablePassthrough()}
MODEL_LAST = FOUND | PROMPT | Scripted()
PARSER_LAST = MODEL_LAST | StrOutputParser()
CHAINS = pytest.mark.parametrize(
    "chain", [MODEL_LAST, PARSER_LAST], ids=["model last", "parser last"]
)


def endings(handler):
    return [(one.question, one.answer, one.status) for one in handler.records]


async def started(chain, handler, chunks):
    stream = chain.astream("q", {"callbacks": [handler]})
    for _ in range(chunks):
        await anext(stream)
    return stream


@CHAINS
@pytest.mark.parametrize("chunks", [1, 2])
def test_a_stream_that_is_closed_early(handler, chain, chunks):
    stream = chain.stream("q", {"callbacks": [handler]})
    for _ in range(chunks):
        next(stream)
    stream.close()
    (record,) = handler.records
    assert (record.question, record.status) == ("q", "incomplete")
    assert record.answer != "answer to q"
    assert told(record)[3] == [echoed("q")]


@CHAINS
def test_a_loop_over_a_stream_that_is_left(handler, chain):
    for _ in chain.stream("q", {"callbacks": [handler]}):
        break
    gc.collect()
    assert [status for _, _, status in endings(handler)] == ["incomplete"]


@CHAINS
def test_an_asynchronous_stream_that_is_closed_early(handler, chain):
    async def leave():
        stream = await started(chain, handler, 2)
        await stream.aclose()
        await asyncio.sleep(0.01)  # its end is told a turn later

    asyncio.run(leave())
    assert endings(handler) == [("q", None, "incomplete")]


@pytest.mark.parametrize("events", [1, 9])
def test_events_that_nobody_waits_for(make_handler, events):
    handler = make_handler()

    async def leave():
        stream = rag().astream_events("q", {"callbacks": [handler]}, version="v2")
        for _ in range(events):
            await anext(stream)
        await stream.aclose()
        await asyncio.sleep(0.01)

    asyncio.run(leave())
    handler.close()
    assert {(one.question, one.status) for one in handler.records} <= {
        ("q", "cancelled"),
        ("q", "abandoned"),
    }


def test_a_stream_that_is_kept_and_never_read_on(make_handler):
    handler = make_handler()
    stream = rag().stream("q", {"callbacks": [handler]})
    next(stream)
    assert handler.records == []
    assert handler.close(10)
    assert endings(handler) == [("q", None, "abandoned")]
    assert len(handler._open) == 0
    stream.close()
    assert endings(handler) == [("q", None, "abandoned")]


def test_what_is_given_up_before_it_retrieved_is_counted(make_handler):
    handler = make_handler()
    stream = Scripted().stream("Question: q", {"callbacks": [handler]})
    next(stream)
    assert handler.without_retrieval == 0
    handler.close()
    assert (handler.records, handler.without_retrieval) == ([], 1)
    stream.close()
    assert handler.without_retrieval == 1


def test_a_stream_that_was_never_started_leaves_nothing(handler):
    stream = rag().stream("q", {"callbacks": [handler]})
    stream.close()
    assert handler.records == []


@pytest.mark.parametrize(
    ("parts", "answer"),
    [
        pytest.param(["a", "b"], "ab", id="texts add up"),
        pytest.param([AddableDict(answer="a"), AddableDict(answer="b")], "ab", id="so do these"),
        pytest.param([{"answer": "a"}, {"answer": "b"}], "b", id="of dicts the last is left"),
        pytest.param([{"answer": "a"}, {"n": 1}], None, id="which may hold no answer"),
    ],
)
def test_what_langchain_makes_of_a_stream_that_was_read_to_its_end(handler, parts, answer):
    def streams(given):
        for _ in given:
            yield from parts

    list((Echo() | RunnableGenerator(streams)).stream("q", {"callbacks": [handler]}))
    assert endings(handler) == [("q", answer, "ok")]


class Hanging(Echo):
    """Its asynchronous retrieval never ends, and says when it began."""

    began: object = None

    async def _aget_relevant_documents(self, query, *, run_manager):
        self.began.set()
        await asyncio.Event().wait()


async def cancelled(chain, began, handler):
    task = asyncio.create_task(chain.ainvoke("q", {"callbacks": [handler]}))
    await began.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.01)


def test_a_chain_that_is_cancelled_in_its_retriever(make_handler):
    handler = make_handler(references=[{"user_input": "q", "reference_context_ids": ["d1-q"]}])

    async def run():
        began = asyncio.Event()
        await cancelled(rag(Hanging(began=began)), began, handler)

    asyncio.run(run())
    (record,) = handler.records
    assert (record.answer, record.status) == (None, "cancelled")
    assert record.retrievals[0].error == "it never ended"
    score = record.scores["id_based_context_recall"]
    assert (score.value, score.status) == (None, "failed")


def test_a_bare_retriever_that_is_cancelled(make_handler):
    handler = make_handler()

    async def run():
        began = asyncio.Event()
        await cancelled(Hanging(began=began), began, handler)

    asyncio.run(run())
    assert handler.records == []
    handler.close()
    assert endings(handler) == [("q", None, "abandoned")]


def test_a_retrieval_that_timed_out_before_another_leaves_the_answer_complete(handler):
    async def tries(question):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await Hanging(began=asyncio.Event()).ainvoke(question)
        await Echo().ainvoke(question)
        return "A"

    by_ainvoke(RunnableLambda(tries), ["q"], {"callbacks": [handler]})
    (record,) = handler.records
    assert told(record) == (
        "q",
        "A",
        "ok",
        [("Hanging", "q", "it never ended"), echoed("q")],
    )
    assert [one.parent for one in record.retrievals] == [None, None]
    assert [chunk.id for chunk in record.chunks()] == ["d1-q", "d2-q"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(ValueError("no"), "error", id="error"),
        pytest.param(KeyboardInterrupt(), "cancelled", id="interrupt"),
        pytest.param(asyncio.CancelledError(), "cancelled", id="cancellation"),
        pytest.param(SystemExit(3), "error", id="exit"),
    ],
)
@pytest.mark.parametrize("where", ["in the retriever", "behind it"])
def test_errors(handler, error, status, where):
    def raises(given):
        raise error

    chain = rag(Broken(error=error)) if where == "in the retriever" else Echo() | raises
    with pytest.raises(type(error)):
        chain.invoke("q", {"callbacks": [handler]})
    (record,) = handler.records
    assert (record.question, record.answer, record.status) == ("q", None, status)
    assert (record.retrieval_error != "") == (where == "in the retriever")


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
def test_a_chain_without_output_is_incomplete(handler, way):
    way(
        RunnableLambda(lambda question: Echo().invoke(question) and None),
        ["q"],
        {"callbacks": [handler]},
    )
    assert endings(handler) == [("q", None, "incomplete")]


@pytest.mark.parametrize("ending", ["well", "cut short", "in error"])
def test_answers_are_judged_of_queries_that_ended_well(ending):
    llm = ScriptedLLM(relevant={"fact d1-q"})
    handler = CtxEvalCallbackHandler(metrics=["context_utilization", "context_relevance"], llm=llm)
    if ending == "in error":
        with pytest.raises(ValueError, match="no"):
            rag(model=Broken(error=ValueError("no"))).invoke("q", {"callbacks": [handler]})
    else:
        stream = rag().stream("q", {"callbacks": [handler]})
        next(stream) if ending == "cut short" else list(stream)
        stream.close()
    assert handler.flush(10)
    scores = handler.records[0].scores
    assert scores["context_relevance"].value == 0.5
    assert scores["context_utilization"].status == ("scored" if ending == "well" else "skipped")
