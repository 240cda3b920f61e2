"""Other handlers of LangChain's, as far as they are installed; nothing leaves the process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers import LangChainTracer
from langsmith import Client


class _NoOp(BaseCallbackHandler):
    run_inline = True


class _Appending(BaseCallbackHandler):
    run_inline = True

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.seen.append([(one.id, one.page_content, dict(one.metadata)) for one in documents])


class _Silent(Client):
    """Drops what it is given."""

    def create_run(self, *args: Any, **kwargs: Any) -> None:
        pass

    def update_run(self, *args: Any, **kwargs: Any) -> None:
        pass


_client = _Silent(api_key="none", api_url="http://127.0.0.1:9", auto_batch_tracing=False)


@contextmanager
def no_op() -> Iterator[Any]:
    yield {"callbacks": [_NoOp()]}


@contextmanager
def appending() -> Iterator[Any]:
    yield {"callbacks": [_Appending()]}


@contextmanager
def langsmith() -> Iterator[Any]:
    yield {"callbacks": [LangChainTracer(client=_client)]}


@contextmanager
def openinference() -> Iterator[Any]:
    from openinference.instrumentation.langchain import LangChainInstrumentor

    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider())
    try:
        yield {}
    finally:
        instrumentor.uninstrument()


@contextmanager
def langfuse() -> Iterator[Any]:
    from langfuse import Langfuse
    from langfuse.langchain import CallbackHandler

    Langfuse(
        public_key="none",
        secret_key="none",
        base_url="http://127.0.0.1:9",
        tracer_provider=provider(),
        span_exporter=_exporter(),
    )
    yield {"callbacks": [CallbackHandler(public_key="none")]}


@contextmanager
def mlflow() -> Iterator[Any]:
    from mlflow.langchain.langchain_tracer import MlflowLangchainTracer

    _mlflow_store()
    yield {"callbacks": [MlflowLangchainTracer()]}


@cache
def _mlflow_store() -> TemporaryDirectory[str]:
    """Make a database, once, since that takes seconds; it goes with the process."""
    import mlflow

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    folder = TemporaryDirectory()
    mlflow.set_tracking_uri(f"sqlite:///{folder.name}/mlflow.db")
    mlflow.search_traces()  # makes the tables
    return folder


def _exporter() -> Any:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    class Nothing(InMemorySpanExporter):
        def export(self, spans: Any) -> Any:
            self.clear()
            return super().export(())

    return Nothing()


def provider() -> Any:
    """Make a tracer whose spans go out in batches, to nowhere."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(_exporter()))
    return provider


def peers() -> dict[str, Any]:
    """Give a way to attach each one, by name; `appending` is what the limit goes by."""
    found = {"no-op": no_op, "appending": appending, "LangChainTracer": langsmith}
    if find_spec("openinference") and find_spec("openinference.instrumentation.langchain"):
        found["openinference"] = openinference
    if find_spec("langfuse"):
        found["langfuse"] = langfuse
    if find_spec("mlflow"):
        found["mlflow"] = mlflow
    return found
