"""Where a query begins: wherever the handler came in, and whoever else traces."""

import asyncio
import datetime
import uuid

import pytest

pytest.importorskip("langchain_core")

import langsmith
from langchain_core.callbacks import CallbackManager
from langchain_core.callbacks.manager import trace_as_chain_group
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langsmith.run_helpers import tracing_context
from small_chains import WAYS, Echo, by_ainvoke, by_invoke, echoed, rag, told

ANSWERED = ("q", "answer to q", "ok", [echoed("q")])
RETRIEVED = ("q", None, "ok", [echoed("q")])


class Silent(langsmith.Client):
    """Takes runs and drops them: nothing leaves the process."""

    def create_run(self, *args, **kwargs):
        pass

    def update_run(self, *args, **kwargs):
        pass


@pytest.fixture
def client():
    return Silent(api_key="none", api_url="http://127.0.0.1:9", auto_batch_tracing=False)


def summaries(handler):
    return [told(record) for record in handler.records]


@pytest.mark.parametrize("way", WAYS)
def test_a_handler_on_one_step(handler, way):
    way(RunnablePassthrough() | Echo().with_config(callbacks=[handler]), ["q"], {})
    assert summaries(handler) == [RETRIEVED]


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
@pytest.mark.parametrize("make", [Echo, rag])
def test_a_handler_given_twice(handler, make, way):
    way(make().with_config(callbacks=[handler]), ["q"], {"callbacks": [handler, handler]})
    assert summaries(handler) == [ANSWERED if make is rag else RETRIEVED]


@pytest.mark.parametrize("way", WAYS)
def test_what_ends_without_a_retrieval_is_counted(handler, way):
    way(RunnableLambda(str), ["q"], {"callbacks": [handler]})
    way(rag(), ["q"], {"callbacks": [handler]})
    assert summaries(handler) == [ANSWERED]
    assert handler.without_retrieval == 1


def test_two_handlers_do_not_disturb_each_other(make_handler):
    outer, inner = make_handler(), make_handler()
    rag(Echo().with_config(callbacks=[inner])).invoke("q", {"callbacks": [outer]})
    assert summaries(outer) == [ANSWERED]
    assert summaries(inner) == [RETRIEVED]


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
def test_a_handler_given_again_to_an_inner_call(handler, way):
    config = {"callbacks": [handler]}
    chain = RunnableLambda(lambda question: rag().invoke(f"{question} rewritten", config))
    way(chain, ["q"], config)
    query = "q rewritten"
    assert summaries(handler) == [("q", f"answer to {query}", "ok", [echoed(query)])]


def test_a_function_that_langsmith_traces(handler, client):
    @langsmith.traceable
    def app(question):
        return rag().invoke(question, {"callbacks": [handler]})

    app("q")
    with tracing_context(enabled=True, client=client):
        app("q")
    assert summaries(handler) == [ANSWERED, ANSWERED]


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
def test_a_traced_function_inside_of_a_chain(handler, client, way):
    @langsmith.traceable
    def look_up(question):
        return Echo().invoke(question)

    with tracing_context(enabled=True, client=client):
        chain = RunnableLambda(lambda question: f"{len(look_up(question))} documents")
        way(chain, ["q"], {"callbacks": [handler]})
    assert summaries(handler) == [("q", "2 documents", "ok", [echoed("q")])]


def test_a_group_of_calls(handler):
    with trace_as_chain_group("group", inputs={"question": "q"}) as group:
        callbacks = group.merge(CallbackManager([handler], [handler]))
        rag().invoke("q", {"callbacks": callbacks})
        Echo().invoke("q", {"callbacks": callbacks})
    assert summaries(handler) == [ANSWERED, RETRIEVED]


def test_where_langchain_delivers_nothing(handler):
    """A group without LangSmith's tracing, and a constructor that has no such field."""
    manager = CallbackManager([handler], [handler])
    with trace_as_chain_group("group", callback_manager=manager) as group:
        rag().invoke("q", {"callbacks": group})
    store = InMemoryVectorStore.from_texts(["t"], DeterministicFakeEmbedding(size=4))
    store.as_retriever(callbacks=[handler]).invoke("q")
    assert handler.records == []
    store.as_retriever().invoke("q", config={"callbacks": [handler]})
    assert [record.question for record in handler.records] == ["q"]


EXAMPLES = [
    langsmith.schemas.Example(
        id=uuid.UUID(int=n),
        dataset_id=uuid.UUID(int=9),
        inputs={"question": f"q{n}"},
        outputs={"reference_ids": [f"d2-q{n}"]},
        created_at=datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC),
    )
    for n in (1, 2)
]


@pytest.mark.filterwarnings("ignore:.*in beta")
@pytest.mark.parametrize("asynchronous", [False, True])
def test_inside_of_a_langsmith_evaluation(make_handler, client, asynchronous):
    handler = make_handler(
        references=[
            {"user_input": one.inputs["question"], "reference_context_ids": ["d2-q1", "d2-q2"]}
            for one in EXAMPLES
        ]
    )
    config = {"callbacks": [handler]}
    options = {"data": EXAMPLES, "evaluators": [], "upload_results": False, "client": client}

    def target(inputs: dict) -> dict:
        return {"answer": rag().invoke(inputs["question"], config)}

    async def atarget(inputs: dict) -> dict:
        return {"answer": await rag().ainvoke(inputs["question"], config)}

    async def evaluate():
        return [row async for row in await langsmith.aevaluate(atarget, **options)]

    rows = asyncio.run(evaluate()) if asynchronous else list(langsmith.evaluate(target, **options))
    assert len(rows) == 2
    assert sorted(summaries(handler)) == [
        (f"q{n}", f"answer to q{n}", "ok", [echoed(f"q{n}")]) for n in (1, 2)
    ]
    assert {one.scores["reciprocal_rank"].value for one in handler.records} == {0.5}


def test_a_step_by_name_is_a_query_each(make_handler):
    handler = make_handler(query_run_name="ask")
    ask = rag().with_config(run_name="ask")
    RunnableLambda(lambda given: [ask.invoke(one) for one in given]).invoke(
        ["q", "r"], {"callbacks": [handler]}
    )
    assert summaries(handler) == [ANSWERED, ("r", "answer to r", "ok", [echoed("r")])]


def test_a_retriever_by_name_is_a_query_each(make_handler):
    handler = make_handler(query_run_name="ask")
    ask = Echo().with_config(run_name="ask")
    RunnableLambda(lambda given: [ask.invoke(one) for one in given]).invoke(
        ["q", "r"], {"callbacks": [handler]}
    )
    assert [record.question for record in handler.records] == ["q", "r"]


def test_a_step_by_name_with_fallbacks_is_one_query(make_handler):
    def fails(text):
        raise ValueError("the first attempt fails")

    handler = make_handler(query_run_name="ask")
    ask = (rag(Echo(prefix="a")) | fails).with_fallbacks([rag()]).with_config(run_name="ask")
    RunnableLambda(lambda given: ask.invoke(given)).invoke("q", {"callbacks": [handler]})
    assert summaries(handler) == [ANSWERED]
