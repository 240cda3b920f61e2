"""What Langfuse's own client sends."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from export_records import BEGUN, LEAKS, RUN, TRACE, a_query, scored, traced, without_value
from recording_server import RecordingServer, Request

from ctxeval import ExportError, InvalidArgumentError, NotTracedError, Recorder
from ctxeval.export import Langfuse, scores_of

langfuse = pytest.importorskip("langfuse", minversion="5", reason="langfuse is not installed")

SECRET = "sk-lf-geheim-4711"


@pytest.fixture
def client(server: RecordingServer) -> Iterator[Any]:
    server.answer = lambda request: (202, {"message": "Accepted"})
    made = langfuse.Langfuse(
        public_key=f"pk-lf-{uuid.uuid4()}",  # of one key Langfuse makes one client
        secret_key=SECRET,
        base_url=server.url,
        environment="staging",
        timeout=5,
    )
    yield made
    made.shutdown()


def sent(server: RecordingServer) -> list[dict[str, Any]]:
    return [score for one in server.posts("/api/public/scores") for score in one.json]


def test_a_score_goes_to_the_trace(server: RecordingServer, client: Any) -> None:
    record = traced(scored(a_query()))
    Langfuse(client).export(record)
    first = next(one for one in sent(server) if one["name"] == "id_based_context_recall")
    assert first == {
        "id": scores_of(record)[1].id,
        "timestamp": BEGUN.replace(second=1).isoformat(),
        "traceId": TRACE,
        "name": "id_based_context_recall",
        "value": 1.0,
        "dataType": "NUMERIC",
        "environment": "staging",
        "metadata": {
            "status": "scored",
            "kind": "code",
            "judge": "id",
            "version": "id_based_context_recall/1",
            "query_id": RUN.format(0),
            "sample_id": "s-1",
            "bounds": [1.0, 1.0],
            "chunks": {"c": "irrelevant", "a": "relevant"},
        },
    }


def test_a_stages_score_goes_to_its_observation(server: RecordingServer, client: Any) -> None:
    Langfuse(client).export(traced(scored(a_query())))
    places = {(one["name"], one.get("observationId")) for one in sent(server)}
    assert places == {
        ("ndcg@10", None),
        ("id_based_context_recall", None),
        ("context_relevance", None),
        ("ndcg@10", f"{0xC:016x}"),
        ("id_based_context_recall", f"{0xC:016x}"),
    }


def test_a_stage_without_an_observation_is_not_taken_for_the_query(
    server: RecordingServer, client: Any
) -> None:
    record = traced(scored(a_query()))
    record.retrievals[1].traced = None
    Langfuse(client).export(record)
    names = [one["name"] for one in sent(server)]
    assert names == ["ndcg@10", "id_based_context_recall", "context_relevance"]


def test_a_score_without_a_value_is_a_category(server: RecordingServer, client: Any) -> None:
    Langfuse(client).export(without_value(traced(scored(a_query()))))
    whole = [one for one in sent(server) if "observationId" not in one]
    assert [(one["value"], one["dataType"]) for one in whole] == [
        ("failed", "CATEGORICAL"),
        ("undefined", "CATEGORICAL"),
        ("skipped", "CATEGORICAL"),
    ]


def test_sending_twice_sends_the_same(server: RecordingServer, client: Any) -> None:
    record = traced(scored(a_query()))
    Langfuse(client).export(record)
    Langfuse(client).export(record)
    first, second = server.posts("/api/public/scores")
    assert first.body == second.body


def test_content_is_left_out_unless_asked_for(server: RecordingServer, client: Any) -> None:
    record = without_value(traced(scored(a_query())))
    Langfuse(client).export(record)
    bodies = b"".join(one.body for one in server.requests)
    assert [text for text in LEAKS if text.encode() in bodies] == []
    Langfuse(client, content=True).export(record)
    assert sent(server)[-5]["comment"] == "by script: failed"


def test_what_is_refused_is_an_error_without_the_key(server: RecordingServer, client: Any) -> None:
    server.answer = lambda request: (
        401,
        {"message": "no such key", "key": request.headers["authorization"]},
    )
    with pytest.raises(ExportError, match=r"langfuse: .*401.*no such key") as caught:
        Langfuse(client).export(traced(scored(a_query())))
    key = next(one for one in server.posts("/api/public/scores")).headers["authorization"]
    assert key.removeprefix("Basic ") not in str(caught.value)
    assert SECRET not in repr(caught.value) + repr(Langfuse(client))


def test_what_is_refused_in_part_is_an_error(server: RecordingServer, client: Any) -> None:
    def in_part(request: Request) -> tuple[int, Any]:
        return 207, {"accepted": 4, "rejected": 1, "errors": [{"message": "name: too long"}]}

    server.answer = in_part
    with pytest.raises(ExportError, match="langfuse: 1 scores were rejected: name: too long"):
        Langfuse(client).export(traced(scored(a_query())))


def test_a_query_in_no_trace_is_told() -> None:
    client = langfuse.Langfuse(public_key="pk-lf-1", secret_key=SECRET, tracing_enabled=False)
    with pytest.raises(NotTracedError, match=f"langfuse: the query {RUN.format(0)} is in no trace"):
        Langfuse(client).export(scored(a_query()))


def test_what_is_no_client_is_told() -> None:
    with pytest.raises(
        InvalidArgumentError, match="client: a str takes no scores: give a langfuse"
    ):
        Langfuse("pk-lf-1")


def test_its_own_observation_is_where_a_query_was_traced(
    server: RecordingServer, client: Any
) -> None:
    recorder = Recorder(
        ["ndcg@10"],
        [{"user_input": a_query().question, "reference_context_ids": ["a"]}],
        sinks=[Langfuse(client)],
    )
    record = a_query(retrievals=a_query().retrievals[:1])
    with client.start_as_current_observation(name="rag") as observation:
        recorder.submit(0, record.id, lambda: record)
    assert recorder.flush(30)
    assert [(one["name"], one["traceId"]) for one in sent(server)] == [
        ("ndcg@10", observation.trace_id)
    ]
