"""What Phoenix itself keeps of scores: its own server, its own client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from export_records import LEAKS, QUESTION, RUN, a_query, scored, without_value
from product_servers import patiently

from ctxeval import ExportError, InvalidArgumentError, NotTracedError, QueryRecord, Recorder
from ctxeval.export import OpenTelemetry, Phoenix

phoenix = pytest.importorskip("phoenix.client", reason="arize-phoenix-client is not installed")
otlp = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def client(phoenix_url: str) -> Any:
    return phoenix.Client(base_url=phoenix_url)


@pytest.fixture
def spans(phoenix_url: str) -> Iterator[OpenTelemetry]:
    exporter = otlp.OTLPSpanExporter(f"{phoenix_url}/v1/traces", timeout=30)
    yield OpenTelemetry(exporter)
    exporter.shutdown()


@pytest.fixture
def record(request: pytest.FixtureRequest) -> QueryRecord:
    # Each test has a query of its own: they share the server.
    return a_query(f"query of {request.node.name}")


def annotations(client: Any, record: QueryRecord, stage: int = 0) -> list[dict[str, Any]]:
    traced = record.retrievals[stage].traced
    assert traced is not None
    found = client.spans.get_span_annotations(
        span_ids=[traced.span_id], project_identifier="default"
    )
    return sorted(found, key=lambda one: one["name"])


def documents(phoenix_url: str, record: QueryRecord, stage: int = 0) -> list[dict[str, Any]]:
    """Give what the server keeps of the documents, by its GraphQL: its client can't read them."""
    import httpx

    traced = record.retrievals[stage].traced
    assert traced is not None
    query = """query ($id: String!) { getSpanByOtelId(spanId: $id) { documentEvaluations {
        name documentPosition label score explanation annotatorKind } } }"""
    answer = httpx.post(
        f"{phoenix_url}/graphql", json={"query": query, "variables": {"id": traced.span_id}}
    ).json()
    found: list[dict[str, Any]] = answer["data"]["getSpanByOtelId"]["documentEvaluations"]
    return sorted(found, key=lambda one: (one["name"], one["documentPosition"]))


def test_scores_and_verdicts_are_at_their_spans_however_often_they_are_sent(
    client: Any, spans: OpenTelemetry, phoenix_url: str, record: QueryRecord
) -> None:
    spans.export(scored(record))
    patiently(lambda: Phoenix(client).export(record))
    spans.export(record)
    Phoenix(client).export(record)
    found = annotations(client, record)
    assert [(one["name"], one["annotator_kind"], one["result"]["score"]) for one in found] == [
        ("context_relevance", "LLM", 0.5),
        ("id_based_context_recall", "CODE", 1.0),
        ("ndcg@10", "CODE", record.scores["ndcg@10"].value),
    ]
    assert {one["metadata"]["query_id"] for one in found} == {record.id}
    inner = annotations(client, record, stage=1)
    assert [(one["name"], one["result"]["score"]) for one in inner] == [
        ("id_based_context_recall", 1.0),
        ("ndcg@10", 1.0),
    ]
    kept = documents(phoenix_url, record)
    assert [(one["name"], one["documentPosition"], one["label"], one["score"]) for one in kept] == [
        ("relevant[id]", 0, "irrelevant", 0.0),
        ("relevant[id]", 1, "relevant", 1.0),
        ("relevant_to_question[llm]", 0, "irrelevant", 0.0),
        ("relevant_to_question[llm]", 1, "relevant", 1.0),
    ]
    assert len(documents(phoenix_url, record, stage=1)) == 3


def test_a_score_that_changed_takes_the_earlier_ones_place(
    client: Any, spans: OpenTelemetry, record: QueryRecord
) -> None:
    spans.export(scored(record, ("ndcg@10",)))
    patiently(lambda: Phoenix(client).export(record))
    scored(record, ("ndcg@10",), [{"user_input": QUESTION, "reference_context_ids": ["c"]}])
    Phoenix(client).export(record)
    assert [one["result"]["score"] for one in annotations(client, record)] == [1.0]


def test_a_score_without_a_value_has_a_label_and_no_score(
    client: Any, spans: OpenTelemetry, record: QueryRecord
) -> None:
    spans.export(without_value(scored(record)))
    patiently(lambda: Phoenix(client).export(record))
    found = annotations(client, record)
    assert sorted(one["result"]["label"] for one in found) == ["failed", "skipped", "undefined"]
    assert {one["result"]["score"] for one in found} == {None}
    assert {one["result"]["explanation"] for one in found} == {None}


def test_explanations_are_sent_where_they_are_asked_for(
    client: Any, spans: OpenTelemetry, record: QueryRecord
) -> None:
    spans.export(without_value(scored(record)))
    patiently(lambda: Phoenix(client, content=True).export(record))
    said = {one["result"]["explanation"] for one in annotations(client, record)}
    assert said == {"by script: failed", "by script: undefined", "by script: skipped"}


def test_no_content_is_at_the_server(
    client: Any, spans: OpenTelemetry, phoenix_url: str, record: QueryRecord
) -> None:
    spans.export(without_value(scored(record)))
    patiently(lambda: Phoenix(client).export(record))
    all_of_it = repr([*annotations(client, record), *documents(phoenix_url, record)])
    assert [text for text in LEAKS if text in all_of_it] == []
    found = client.spans.get_spans(project_identifier="default", limit=1000)
    own = [one for one in found if record.traced and one["context"]["trace_id"] == record.traced[0]]
    assert len(own) == 3
    assert [text for text in LEAKS if text in repr(own)] == []


def test_a_recorder_waits_for_the_spans(
    client: Any, spans: OpenTelemetry, record: QueryRecord
) -> None:
    recorder = Recorder(
        ["ndcg@10"],
        [{"user_input": QUESTION, "reference_context_ids": ["a"]}],
        sinks=[Phoenix(client), spans],
    )
    recorder.submit(0, record.id, lambda: record)
    assert recorder.flush(120)
    fared = recorder.deliveries
    assert (fared["phoenix"].sent, fared["opentelemetry"].sent) == (1, 1)
    assert len(annotations(client, record)) == 1


def test_a_span_that_is_not_there_is_an_error(client: Any, record: QueryRecord) -> None:
    from ctxeval.export.spans import locate

    locate(scored(record))
    with pytest.raises(ExportError, match=r"phoenix: .*404.*Spans with IDs .* do not exist"):
        Phoenix(client).export(record)


def test_a_query_in_no_trace_is_told(record: QueryRecord) -> None:
    unused = phoenix.Client(base_url="http://127.0.0.1:9")
    with pytest.raises(NotTracedError, match=f"phoenix: the query {RUN.format(0)} is in no trace"):
        Phoenix(unused).export(scored(replace(record, id=RUN.format(0))))


def test_a_key_is_in_no_error(record: QueryRecord) -> None:
    from ctxeval.export.spans import locate

    locate(scored(record))
    client = phoenix.Client(base_url="http://me:geheim-1@127.0.0.1:9", api_key="geheim-2")
    with pytest.raises(ExportError, match="phoenix: ConnectError") as caught:
        Phoenix(client).export(record)
    assert "geheim" not in f"{caught.value!r} {caught.value.__cause__!r} {Phoenix(client)!r}"


def test_what_is_no_client_is_told() -> None:
    with pytest.raises(InvalidArgumentError, match="client: a str can't annotate: give a phoenix"):
        Phoenix("http://127.0.0.1:6006")
    with pytest.raises(InvalidArgumentError, match="a AsyncClient is asynchronous: give a phoenix"):
        Phoenix(phoenix.AsyncClient(base_url="http://127.0.0.1:9"))
