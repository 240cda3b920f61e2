"""Scores find the spans that real instrumentations made of LangChain's and LlamaIndex' queries."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from otlp import received_events, received_spans
from recording_server import RecordingServer

from ctxeval import TraceSpan
from ctxeval.export import Langfuse, OpenTelemetry

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")
otlp_traces = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
otlp_logs = pytest.importorskip("opentelemetry.exporter.otlp.proto.http._log_exporter")

from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import (  # noqa: E402
    InMemorySpanExporter,
)

REFERENCES = [{"user_input": "geese", "reference_context_ids": ["a"]}]
IDS = ["b", "a"]


class App:
    """What an application's tracing saw."""

    def __init__(self) -> None:
        self.kept = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.kept))

    def span(self, *names: str) -> TraceSpan:
        (found,) = [one for one in self.kept.get_finished_spans() if one.name in names]
        said = TraceSpan.of(found)
        assert said is not None
        return said


@pytest.fixture
def app() -> Iterator[App]:
    made = App()
    yield made
    made.provider.shutdown()


@pytest.fixture
def sink(server: RecordingServer) -> OpenTelemetry:
    server.answer = lambda request: (200, b"")
    return OpenTelemetry(
        otlp_traces.OTLPSpanExporter(f"{server.url}/v1/traces"),
        otlp_logs.OTLPLogExporter(f"{server.url}/v1/logs"),
    )


def langchain_chain() -> Any:
    """Make a chain of a retriever that gives the two documents, as a user would."""
    core = pytest.importorskip("langchain_core.retrievers", reason="langchain is not installed")
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableLambda

    class Fixed(core.BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(f"text {id}", id=id) for id in IDS]

    return Fixed(name="Fixed") | RunnableLambda(lambda documents: documents[0].page_content)


@pytest.fixture
def openinference_langchain(app: App) -> Iterator[None]:
    module = pytest.importorskip(
        "openinference.instrumentation.langchain", reason="openinference is not installed"
    )
    module.LangChainInstrumentor().instrument(tracer_provider=app.provider)
    yield
    module.LangChainInstrumentor().uninstrument()


@pytest.mark.usefixtures("openinference_langchain")
def test_openinferences_spans_of_langchain(
    app: App, server: RecordingServer, sink: OpenTelemetry
) -> None:
    chain = langchain_chain()
    from ctxeval_langchain import CtxEvalCallbackHandler

    handler = CtxEvalCallbackHandler(metrics=["ndcg@10"], references=REFERENCES, sinks=[sink])
    chain.invoke("geese", config={"callbacks": [handler]})
    assert handler.flush(30)
    (record,) = handler.records
    assert record.traced == app.span("RunnableSequence")
    own = app.span("Fixed")
    assert record.retrievals[0].traced == own
    assert uuid.UUID(record.retrievals[0].run_id) != uuid.UUID(record.id)
    (span,) = received_spans(server)
    assert (span["trace_id"], span["parent_id"]) == own
    assert span["attributes"]["retrieval.documents.1.document.id"] == "a"
    assert {(one["trace_id"], one["span_id"]) for one in received_events(server)} == {own}
    theirs = next(one for one in app.kept.get_finished_spans() if one.name == "Fixed")
    assert not [name for name in theirs.attributes or {} if name.endswith("document.id")]


@pytest.mark.usefixtures("openinference_langchain")
async def test_openinferences_spans_of_many_queries_at_once(app: App, sink: OpenTelemetry) -> None:
    chain = langchain_chain()
    from ctxeval_langchain import CtxEvalCallbackHandler

    handler = CtxEvalCallbackHandler(metrics=["ndcg@10"], references=REFERENCES, sinks=[sink])
    await chain.abatch(["geese"] * 20, config={"callbacks": [handler]})
    assert handler.flush(60)
    spans = {TraceSpan.of(one): one for one in app.kept.get_finished_spans()}
    for record in handler.records:
        assert record.traced is not None
        assert spans[record.traced].name == "RunnableSequence"
        (stage,) = record.retrievals
        assert stage.traced is not None
        assert spans[stage.traced].name == "Fixed"
        assert stage.traced.trace_id == record.traced.trace_id
    assert len({record.traced for record in handler.records}) == 20
    assert handler.recorder.deliveries["opentelemetry"].sent == 20


def test_a_span_around_a_chain_is_found_without_instrumentation(
    app: App, server: RecordingServer, sink: OpenTelemetry
) -> None:
    chain = langchain_chain()
    from ctxeval_langchain import CtxEvalCallbackHandler

    handler = CtxEvalCallbackHandler(metrics=["ndcg@10"], references=REFERENCES, sinks=[sink])
    with app.provider.get_tracer("app").start_as_current_span("request"):
        chain.invoke("geese", config={"callbacks": [handler]})
    assert handler.flush(30)
    (span,) = received_spans(server)
    assert (span["trace_id"], span["parent_id"]) == app.span("request")
    assert handler.records[0].retrievals[0].traced == (span["trace_id"], span["span_id"])


def test_openinferences_spans_of_llamaindex(
    app: App, server: RecordingServer, sink: OpenTelemetry
) -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    module = pytest.importorskip(
        "openinference.instrumentation.llama_index", reason="openinference is not installed"
    )
    from llama_index.core import QueryBundle
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.schema import NodeWithScore, TextNode

    from ctxeval_llamaindex import CtxEvalEventHandler

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(id_=id, text=f"text {id}"), score=1) for id in IDS]

    module.LlamaIndexInstrumentor().instrument(tracer_provider=app.provider)
    handler = CtxEvalEventHandler(metrics=["ndcg@10"], references=REFERENCES, sinks=[sink])
    handler.install()
    try:
        RetrieverQueryEngine.from_args(Fixed(), llm=MockLLM()).query("geese")
    finally:
        handler.uninstall()
        module.LlamaIndexInstrumentor().uninstrument()
    assert handler.flush(30)
    (record,) = handler.records
    assert record.traced == app.span("RetrieverQueryEngine.query", "BaseQueryEngine.query")
    found = [one for one in record.retrievals if one.kind == "retrieve"]
    own = app.span("Fixed.retrieve", "BaseRetriever.retrieve")
    assert [one.traced for one in found] == [own]
    assert {(one["trace_id"], one["span_id"]) for one in received_events(server)} == {own}


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("first", ["langfuse", "ctxeval"])
def test_langfuses_observations_of_langchain(
    server: RecordingServer, first: str, asynchronous: bool
) -> None:
    langfuse = pytest.importorskip("langfuse", minversion="5", reason="langfuse is not installed")
    chain = langchain_chain()
    theirs = pytest.importorskip("langfuse.langchain", reason="langchain is not installed")
    from ctxeval_langchain import CtxEvalCallbackHandler

    server.answer = lambda request: (202, {"message": "Accepted"})
    key = f"pk-lf-{uuid.uuid4()}"
    client = langfuse.Langfuse(public_key=key, secret_key="sk-lf-1", base_url=server.url)
    ours = CtxEvalCallbackHandler(
        metrics=["ndcg@10"], references=REFERENCES, sinks=[Langfuse(client)]
    )
    tracing = theirs.CallbackHandler(public_key=key)
    handlers = [tracing, ours] if first == "langfuse" else [ours, tracing]
    if asynchronous:
        tracing.run_inline = True  # else it is in a thread, and so are its spans
        asyncio.run(chain.ainvoke("geese", config={"callbacks": handlers}))
    else:
        chain.invoke("geese", config={"callbacks": handlers})
    assert ours.flush(30)
    sent = [one for request in server.posts("/api/public/scores") for one in request.json]
    assert [(one["name"], one["traceId"]) for one in sent] == [("ndcg@10", tracing.last_trace_id)]
    client.shutdown()


def test_no_product_is_loaded_to_look_for_spans() -> None:
    code = (
        "import sys\n"
        "from ctxeval import Recorder, QueryRecord\n"
        "recorder = Recorder(['ndcg@10'], sinks=[id])\n"
        "recorder.submit(0, '1', lambda: QueryRecord('1', 'q'))\n"
        "assert recorder.flush(30)\n"
        "products = {'opentelemetry', 'mlflow', 'openinference', 'langfuse'}\n"
        "print(products & {name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
