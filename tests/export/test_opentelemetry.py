"""Spans and events as they come to an OTLP receiver, sent by the real SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from export_records import (
    ANSWER,
    BEGUN,
    LEAKS,
    QUESTION,
    RUN,
    TRACE,
    a_query,
    chunks,
    scored,
    traced,
    without_value,
)
from otlp import received_events, received_spans
from recording_server import RecordingServer

import ctxeval
from ctxeval import ExportError, InvalidArgumentError, QueryRecord, Recorder, Retrieval, TraceSpan
from ctxeval.export import OpenTelemetry, scores_of

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")
otlp_traces = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
otlp_logs = pytest.importorskip("opentelemetry.exporter.otlp.proto.http._log_exporter")

from opentelemetry import trace  # noqa: E402
from opentelemetry.sdk.resources import Resource  # noqa: E402
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF  # noqa: E402

INTERNAL = 1
OK, ERROR = 0, 2


@pytest.fixture
def receiver(server: RecordingServer) -> RecordingServer:
    server.answer = lambda request: (200, b"")
    return server


@pytest.fixture
def spans(receiver: RecordingServer) -> Iterator[Any]:
    exporter = otlp_traces.OTLPSpanExporter(f"{receiver.url}/v1/traces", timeout=5)
    yield exporter
    exporter.shutdown()


@pytest.fixture
def logs(receiver: RecordingServer) -> Iterator[Any]:
    exporter = otlp_logs.OTLPLogExporter(f"{receiver.url}/v1/logs", timeout=5)
    yield exporter
    exporter.shutdown()


def nanoseconds(seconds: float) -> int:
    return int(BEGUN.timestamp()) * 10**9 + int(seconds * 10**9)


def test_a_retrieval_is_a_span_below_the_one_that_retrieved(
    receiver: RecordingServer, spans: Any
) -> None:
    OpenTelemetry(spans).export(traced(scored(a_query())))
    reranker, inner = received_spans(receiver)
    assert [one["name"] for one in (reranker, inner)] == ["retrieval", "retrieval"]
    assert {one["trace_id"] for one in (reranker, inner)} == {TRACE}
    assert (reranker["parent_id"], inner["parent_id"]) == (f"{0xB:016x}", f"{0xC:016x}")
    assert reranker["kind"] == INTERNAL
    assert (reranker["start"], reranker["end"]) == (nanoseconds(0.25), nanoseconds(0.75))
    assert (inner["start"], inner["end"]) == (nanoseconds(0.375), nanoseconds(0.625))
    said = inner["attributes"]
    assert json.loads(said.pop("gen_ai.retrieval.documents")) == [
        {"id": "a", "score": 0.9},
        {"id": "b", "score": 0.8},
        {"id": "c", "score": 0.7},
    ]
    assert said == {
        "gen_ai.operation.name": "retrieval",
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.id": "a",
        "retrieval.documents.0.document.score": 0.9,
        "retrieval.documents.1.document.id": "b",
        "retrieval.documents.1.document.score": 0.8,
        "retrieval.documents.2.document.id": "c",
        "retrieval.documents.2.document.score": 0.7,
        "ctxeval.query.id": RUN.format(0),
        "ctxeval.retrieval.name": "VectorStore",
        "ctxeval.retrieval.kind": "retrieve",
        "ctxeval.retrieval.order": 1,
    }


def test_a_score_is_an_event_of_the_span_that_retrieved(
    receiver: RecordingServer, logs: Any
) -> None:
    record = traced(scored(a_query()))
    OpenTelemetry(logs=logs).export(record)
    events = received_events(receiver)
    assert {one["name"] for one in events} == {"gen_ai.evaluation.result"}
    assert {(one["trace_id"], one["time"]) for one in events} == {(TRACE, nanoseconds(1))}
    at = {(one["attributes"]["gen_ai.evaluation.name"], one["span_id"]): one for one in events}
    whole = at["id_based_context_recall", f"{0xB:016x}"]["attributes"]
    assert whole["gen_ai.evaluation.score.value"] == 1.0
    assert "gen_ai.evaluation.score.label" not in whole
    assert whole["ctxeval.sample.id"] == "s-1"
    assert ("ndcg@10", f"{0xC:016x}") in at
    verdict = at["relevant[id]", f"{0xB:016x}"]["attributes"]
    assert verdict["ctxeval.chunk.id"] == "a"
    assert verdict["gen_ai.evaluation.score.label"] == "relevant"
    ids = [one["attributes"]["ctxeval.score.id"] for one in events]
    assert ids == [one.id for one in scores_of(record)]


def test_a_score_without_a_value_has_none(receiver: RecordingServer, logs: Any) -> None:
    OpenTelemetry(logs=logs).export(without_value(scored(a_query(retrievals=a_query().retrievals))))
    told = {
        one["attributes"]["ctxeval.score.status"]: one["attributes"]
        for one in received_events(receiver)
        if "ctxeval.chunk.id" not in one["attributes"]
        and "ctxeval.retrieval.order" not in one["attributes"]
    }
    assert told.keys() == {"failed", "undefined", "skipped"}
    for status, attributes in told.items():
        assert "gen_ai.evaluation.score.value" not in attributes
        assert attributes["gen_ai.evaluation.score.label"] == status
        assert attributes.get("error.type") == ("not_judged" if status == "failed" else None)


def test_a_query_that_nobody_traced_gets_a_trace(
    receiver: RecordingServer, spans: Any, logs: Any
) -> None:
    OpenTelemetry(spans, logs).export(scored(a_query()))
    query, reranker, inner = received_spans(receiver)
    assert (query["name"], query["parent_id"]) == ("query", "")
    assert {reranker["parent_id"], inner["parent_id"]} == {query["span_id"]}
    assert {one["trace_id"] for one in (query, reranker, inner)} == {query["trace_id"]}
    assert (query["start"], query["end"]) == (nanoseconds(0), nanoseconds(1))
    assert query["attributes"]["openinference.span.kind"] == "CHAIN"
    of_events = {(one["trace_id"], one["span_id"]) for one in received_events(receiver)}
    assert of_events == {(one["trace_id"], one["span_id"]) for one in (reranker, inner)}


def test_sending_twice_sends_the_same(receiver: RecordingServer, spans: Any, logs: Any) -> None:
    record = scored(a_query())
    again = QueryRecord.from_dict(json.loads(json.dumps(record.to_dict())))
    OpenTelemetry(spans, logs).export(record)
    OpenTelemetry(spans, logs).export(record)
    OpenTelemetry(spans, logs).export(again)
    for path in ("/v1/traces", "/v1/logs"):
        first, *others = [one.body for one in receiver.posts(path)]
        assert len(others) == 2
        assert set(others) == {first}


def test_content_is_left_out_unless_asked_for(
    receiver: RecordingServer, spans: Any, logs: Any
) -> None:
    failing = a_query()
    failing.retrievals[1].error = f"ValueError: can't read {QUESTION}"
    record = without_value(traced(scored(failing)))
    OpenTelemetry(spans, logs).export(record)
    sent = b"".join(one.body for one in receiver.requests)
    assert [text for text in LEAKS if text.encode() in sent] == []
    assert received_spans(receiver)[1]["attributes"]["error.type"] == "ValueError"
    receiver.requests.clear()
    record.traced = None
    OpenTelemetry(spans, logs, content=True).export(record)
    asked = b"".join(one.body for one in receiver.requests)
    assert [text for text in LEAKS if text.encode() not in asked] == [ANSWER]
    said = received_spans(receiver)[0]["attributes"]
    assert said["gen_ai.retrieval.query.text"] == said["input.value"] == QUESTION
    assert said["retrieval.documents.0.document.content"] == "The geese rest at c."


def test_the_answer_goes_with_the_query_where_content_is_asked_for(
    receiver: RecordingServer, spans: Any
) -> None:
    OpenTelemetry(spans, content=True).export(scored(a_query()))
    query = received_spans(receiver)[0]["attributes"]
    assert (query["input.value"], query["output.value"]) == (QUESTION, ANSWER)


def test_many_documents_push_nothing_out(receiver: RecordingServer, spans: Any) -> None:
    many = chunks([f"d{n}" for n in range(500)])
    OpenTelemetry(spans).export(scored(a_query(retrievals=[Retrieval(QUESTION, many)])))
    said = received_spans(receiver)[1]["attributes"]
    assert said["openinference.span.kind"] == "RETRIEVER"
    assert said["retrieval.documents.499.document.id"] == "d499"
    assert len(json.loads(said["gen_ai.retrieval.documents"])) == 500


def test_what_failed_is_an_error(receiver: RecordingServer, spans: Any) -> None:
    record = a_query(status="error")
    record.retrievals[1].error = "no colon here"
    OpenTelemetry(spans).export(scored(record))
    query, reranker, inner = received_spans(receiver)
    assert [one["status"] for one in (query, reranker, inner)] == [
        (ERROR, ""),
        (OK, ""),
        (ERROR, ""),
    ]
    assert inner["attributes"]["error.type"] == "_OTHER"


def test_what_they_come_from_is_the_environment_or_what_is_given(
    receiver: RecordingServer, spans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "geese")
    OpenTelemetry(spans).export(scored(a_query()))
    OpenTelemetry(spans, resource=Resource({"service.name": "ducks"})).export(scored(a_query()))
    assert [one["resource"]["service.name"] for one in received_spans(receiver)][::3] == [
        "geese",
        "ducks",
    ]


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs"])
def test_what_is_not_taken_is_an_error(
    receiver: RecordingServer, spans: Any, logs: Any, path: str
) -> None:
    receiver.answer = lambda request: (403 if request.path == path else 200, b"")
    kind = {"/v1/traces": "spans", "/v1/logs": "events"}[path]
    with pytest.raises(
        ExportError, match=f"opentelemetry: {kind} could not be sent: OTLP.*FAILURE"
    ):
        OpenTelemetry(spans, logs).export(scored(a_query()))


def test_what_is_no_exporter_is_told() -> None:
    with pytest.raises(InvalidArgumentError, match="was given no exporter: give spans= or logs="):
        OpenTelemetry()
    with pytest.raises(InvalidArgumentError, match="spans: a TracerProvider exports nothing: give"):
        OpenTelemetry(TracerProvider())


def test_the_current_span_is_noted_with_each_query(
    receiver: RecordingServer, spans: Any, logs: Any
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    recorder = Recorder(["ndcg@10"], sinks=[OpenTelemetry(spans, logs)])
    record = a_query()
    with provider.get_tracer("app").start_as_current_span("request") as request:
        recorder.submit(0, record.id, lambda: record)
        expected = TraceSpan.of(request)
    assert recorder.flush(30)  # the span has ended by now
    assert record.traced == expected
    assert expected is not None
    app = next(one for one in received_spans(receiver) if one["name"] == "request")
    ours = [one for one in received_spans(receiver) if one["name"] == "retrieval"]
    assert {one["parent_id"] for one in ours} == {app["span_id"]}
    assert {one["trace_id"] for one in received_events(receiver)} == {app["trace_id"]}
    provider.shutdown()


def test_a_span_that_is_not_sampled_is_none() -> None:
    provider = TracerProvider(sampler=ALWAYS_OFF)
    with provider.get_tracer("app").start_as_current_span("request"):
        assert ctxeval.current_span() is None
    with trace.use_span(trace.INVALID_SPAN):
        assert ctxeval.current_span() is None
    provider.shutdown()
