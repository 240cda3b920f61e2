"""What MLflow itself keeps of scores: its own server, its own client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from export_records import LEAKS, QUESTION, RUN, a_query, chunks, scored, without_value

from ctxeval import (
    ExportError,
    InvalidArgumentError,
    NotTracedError,
    QueryRecord,
    Recorder,
    Retrieval,
    TraceSpan,
    current_span,
)
from ctxeval.export import MLflow

mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")

pytestmark = [
    pytest.mark.timeout(400),
    # Of its own types; MLflow makes no span where a warning is an error.
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType"),
]


@pytest.fixture
def client(mlflow_url: str) -> Any:
    mlflow.set_tracking_uri(mlflow_url)
    mlflow.set_experiment("geese")
    return mlflow


@pytest.fixture
def record(client: Any) -> Iterator[QueryRecord]:
    """Give a query that MLflow traced, with its reranker and its vector store."""
    made = a_query()
    with client.start_span("rag"):
        made.traced = current_span()
        for stage in made.retrievals:
            with client.start_span(stage.name, span_type="RETRIEVER"):
                stage.traced = current_span(retrieval=True)
    client.flush_trace_async_logging()
    assert made.traced is not None
    assert None not in [stage.traced for stage in made.retrievals]
    return made


def feedback(client: Any, record: QueryRecord) -> dict[tuple[str, str | None], Any]:
    assert record.traced is not None
    found = client.get_trace(f"tr-{record.traced.trace_id}").info.assessments
    kept = {(one.name, one.span_id): one for one in found}
    assert len(kept) == len(found)
    return kept


def test_scores_and_verdicts_are_feedback_however_often_they_are_sent(
    client: Any, record: QueryRecord
) -> None:
    exporter = MLflow(client)
    for _ in range(3):
        exporter.export(scored(record, ("ndcg@10", "id_based_context_recall")))
    inner = record.retrievals[1].traced
    assert inner is not None
    kept = feedback(client, record)
    assert {place: one.value for place, one in kept.items()} == {
        ("ndcg@10", None): record.scores["ndcg@10"].value,
        ("id_based_context_recall", None): 1.0,
        ("relevant[id]", None): {"c": False, "a": True},
        ("ndcg@10", inner.span_id): 1.0,
        ("id_based_context_recall", inner.span_id): 1.0,
        ("relevant[id]", inner.span_id): {"a": True, "b": False, "c": False},
    }
    source = kept["ndcg@10", None].source
    assert (source.source_type, source.source_id) == ("CODE", "id")


def test_a_model_is_named_as_the_source(client: Any, record: QueryRecord) -> None:
    MLflow(client).export(scored(record, ("context_relevance",)))
    source = feedback(client, record)["context_relevance", None].source
    assert source.source_type == "LLM_JUDGE"
    assert "scripted-" in source.source_id


def test_a_score_that_changed_takes_the_earlier_ones_place(
    client: Any, record: QueryRecord
) -> None:
    MLflow(client).export(scored(record, ("ndcg@10",)))
    scored(record, ("ndcg@10",), [{"user_input": QUESTION, "reference_context_ids": ["c"]}])
    MLflow(client).export(record)
    kept = feedback(client, record)
    assert kept["ndcg@10", None].value == 1.0
    assert kept["relevant[id]", None].value == {"c": True, "a": False}


def test_what_failed_is_an_error_and_what_is_undefined_has_no_number(
    client: Any, record: QueryRecord
) -> None:
    MLflow(client).export(without_value(scored(record)))
    kept = {name: one for (name, span), one in feedback(client, record).items() if span is None}
    assert (kept["ndcg@10"].value, kept["ndcg@10"].error.error_code) == (None, "failed")
    assert kept["id_based_context_recall"].value == "undefined"
    assert kept["context_relevance"].value == "skipped"


def test_content_is_left_out_unless_asked_for(client: Any, record: QueryRecord) -> None:
    MLflow(client).export(without_value(scored(record)))
    sent = repr([vars(one) for one in feedback(client, record).values()])
    assert [text for text in LEAKS if text in sent] == []
    MLflow(client, content=True).export(record)
    kept = feedback(client, record)
    assert kept["ndcg@10", None].error.error_message == "by script: failed"
    assert kept["id_based_context_recall", None].rationale == "by script: undefined"


def test_the_same_chunk_again_has_a_verdict_of_its_own(client: Any, record: QueryRecord) -> None:
    record.retrievals = [Retrieval(QUESTION, chunks(["a", "b", "a"]), "twice")]
    MLflow(client).export(scored(record, ("id_based_context_precision",)))
    kept = feedback(client, record)["relevant[id]", None].value
    assert kept == {"a": True, "b": False, "a (2)": True}


def test_a_stage_without_a_span_is_not_taken_for_the_query(
    client: Any, record: QueryRecord
) -> None:
    record.retrievals[1].traced = None
    MLflow(client).export(scored(record, ("ndcg@10",)))
    assert feedback(client, record).keys() == {("ndcg@10", None), ("relevant[id]", None)}


def test_a_recorder_finds_the_trace(client: Any) -> None:
    recorder = Recorder(
        ["ndcg@10"],
        [{"user_input": QUESTION, "reference_context_ids": ["a"]}],
        sinks=[MLflow(client)],
    )
    made = a_query(RUN.format(7))
    with client.start_span("rag"):
        recorder.submit(0, made.id, lambda: made)
    client.flush_trace_async_logging()
    assert recorder.flush(120)
    assert recorder.deliveries["mlflow"].sent == 1
    assert ("ndcg@10", None) in feedback(client, made)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_chains_that_mlflow_logs_by_itself_are_found(client: Any, asynchronous: bool) -> None:
    core = pytest.importorskip("langchain_core.retrievers", reason="langchain is not installed")
    flavor = pytest.importorskip("mlflow.langchain", reason="it needs more of MLflow")
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableLambda

    from ctxeval_langchain import CtxEvalCallbackHandler

    class Fixed(core.BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(f"text {id}", id=id) for id in "ba"]

    chain = Fixed(name="Fixed") | RunnableLambda(lambda documents: documents[0].page_content)
    handler = CtxEvalCallbackHandler(
        metrics=["ndcg@10"], references=[{"user_input": "q", "reference_context_ids": ["a"]}]
    )
    flavor.autolog(run_tracer_inline=asynchronous)
    try:
        if asynchronous:
            asyncio.run(chain.ainvoke("q", config={"callbacks": [handler]}))
        else:
            chain.invoke("q", config={"callbacks": [handler]})
    finally:
        flavor.autolog(disable=True)
    assert handler.flush(30)
    (record,) = handler.records
    trace_id = client.get_last_active_trace_id()
    client.flush_trace_async_logging()
    spans = {one.name: one.span_id for one in client.get_trace(trace_id).data.spans}
    assert record.traced == (trace_id.removeprefix("tr-"), spans["RunnableSequence"])
    (stage,) = record.retrievals
    assert stage.traced == (trace_id.removeprefix("tr-"), spans["Fixed"])


def test_a_trace_that_is_not_there_is_an_error(client: Any, record: QueryRecord) -> None:
    record.traced = TraceSpan("ab" * 16, "cd" * 8)
    for stage in record.retrievals:
        stage.traced = None
    with pytest.raises(ExportError, match="there is no trace tr-abab"):
        MLflow(client).export(scored(record))


def test_a_query_in_no_trace_is_told() -> None:
    with pytest.raises(NotTracedError, match=f"mlflow: the query {RUN.format(0)} is in no trace"):
        MLflow(mlflow).export(scored(a_query()))


def test_what_is_not_mlflow_is_told() -> None:
    with pytest.raises(
        InvalidArgumentError, match="client: a MlflowClient takes no feedback: give"
    ):
        MLflow(mlflow.MlflowClient("http://127.0.0.1:9"))
