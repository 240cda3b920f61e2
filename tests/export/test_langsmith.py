"""What LangSmith's own client sends."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from export_records import LEAKS, RUN, a_query, scored, traced, without_value
from recording_server import RecordingServer, Request

from ctxeval import ExportError, InvalidArgumentError, NotTracedError
from ctxeval.export import LangSmith, scores_of

langsmith = pytest.importorskip("langsmith", minversion="0.14", reason="langsmith is not installed")

SECRET = "lsv2_pt_geheim4711"
PROJECT = str(uuid.UUID(int=7))


def answer(request: Request) -> tuple[int, Any]:
    if request.path.endswith("/info"):
        return 200, {"version": "0.12.0"}
    if request.path.endswith("/sessions"):
        project = {"id": PROJECT, "name": "geese", "start_time": "2026-05-01T12:00:00"}
        return 200, [{**project, "tenant_id": PROJECT, "reference_dataset_id": None}]
    return 200, {}


@pytest.fixture
def client(server: RecordingServer) -> Iterator[Any]:
    server.answer = answer
    made = langsmith.Client(api_url=server.url, api_key=SECRET, auto_batch_tracing=False)
    yield made
    made.close() if hasattr(made, "close") else made.cleanup()


def sent(server: RecordingServer) -> list[dict[str, Any]]:
    return [one.json for one in server.posts("/feedback")]


def test_a_score_is_feedback_on_the_run(server: RecordingServer, client: Any) -> None:
    record = scored(a_query())
    LangSmith(client, project="geese").export(record)
    first = sent(server)[1]
    assert first["feedback_source"]["metadata"] == {
        "status": "scored",
        "judge": "id",
        "version": "id_based_context_recall/1",
        "sample_id": "s-1",
        "exact": 1.0,
        "bounds": [1.0, 1.0],
        "chunks": {"c": "irrelevant", "a": "relevant"},
    }
    said = {name: first.get(name) for name in ("id", "run_id", "key", "score", "session_id")}
    assert said == {
        "id": scores_of(record)[1].id,
        "run_id": RUN.format(0),
        "key": "id_based_context_recall",
        "score": 1.0,
        "session_id": PROJECT,
    }
    assert "value" not in first
    kinds = {one["key"]: one["feedback_source"]["type"] for one in sent(server)}
    assert kinds["context_relevance"] == "model"
    assert kinds["ndcg@10"] == "api"


def test_a_stages_score_is_feedback_on_its_run(server: RecordingServer, client: Any) -> None:
    LangSmith(client).export(scored(a_query()))
    runs = {(one["key"], one["run_id"]) for one in sent(server)}
    assert ("ndcg@10", RUN.format(2)) in runs
    assert len(runs) == 5


def test_the_exact_number_is_kept_beside_the_rounded_one(
    server: RecordingServer, client: Any
) -> None:
    record = scored(a_query())
    LangSmith(client).export(record)
    first = sent(server)[0]
    assert first["score"] == 0.6309
    assert first["feedback_source"]["metadata"]["exact"] == record.scores["ndcg@10"].value


def test_a_score_without_a_value_has_none(server: RecordingServer, client: Any) -> None:
    LangSmith(client).export(without_value(scored(a_query())))
    whole = [one for one in sent(server) if one["run_id"] == RUN.format(0)]
    assert [(one.get("score"), one["value"], one.get("error")) for one in whole] == [
        (None, "failed", True),
        (None, "undefined", None),
        (None, "skipped", None),
    ]


def test_sending_twice_sends_the_same_feedback(server: RecordingServer, client: Any) -> None:
    exporter, record = LangSmith(client), scored(a_query())
    exporter.export(record)
    exporter.export(record)
    ids = [(one["id"], one["run_id"], one["key"], one["score"]) for one in sent(server)]
    assert ids[:5] == ids[5:]


def test_content_is_left_out_unless_asked_for(server: RecordingServer, client: Any) -> None:
    record = without_value(scored(a_query()))
    LangSmith(client).export(record)
    bodies = b"".join(one.body for one in server.requests)
    assert [text for text in LEAKS if text.encode() in bodies] == []
    LangSmith(client, content=True).export(record)
    assert sent(server)[5]["comment"] == "by script: failed"


@pytest.mark.parametrize("status", [401, 422, 500])
def test_what_is_refused_is_an_error_without_the_key(
    server: RecordingServer, client: Any, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    record = scored(a_query())
    server.answer = lambda request: (
        answer(request)
        if request.method == "GET"
        else (status, {"detail": "no", "you": request.headers["x-api-key"]})
    )
    with pytest.raises(ExportError, match="langsmith: LangSmith") as caught:
        LangSmith(client).export(record)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(LangSmith(client))
    if status < 500:  # these, its client tries again by itself
        assert len(server.posts("/feedback")) == 1


def test_the_project_is_that_of_the_environment(
    server: RecordingServer, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGSMITH_PROJECT", "ducks")
    exporter = LangSmith(client)
    assert exporter._project_name() == "ducks"
    monkeypatch.delenv("LANGSMITH_PROJECT")
    monkeypatch.delenv("LANGCHAIN_PROJECT", raising=False)
    assert exporter._project_name() == "default"
    assert LangSmith(client, project="geese")._project_name() == "geese"


def test_a_query_that_is_no_run_is_told(client: Any) -> None:
    with pytest.raises(NotTracedError, match=r"langsmith: 'RetrieverQueryEngine\.query-1' is no"):
        LangSmith(client).export(scored(a_query("RetrieverQueryEngine.query-1")))


def test_what_is_no_client_is_told() -> None:
    with pytest.raises(InvalidArgumentError, match="client: a str takes no feedback: give a lang"):
        LangSmith("lsv2_pt_1")
    asynchronous = langsmith.AsyncClient(api_url="http://127.0.0.1:9", api_key=SECRET)
    with pytest.raises(InvalidArgumentError, match="a AsyncClient is asynchronous: give a lang"):
        LangSmith(asynchronous)


def test_spans_of_other_tracing_do_not_matter(server: RecordingServer, client: Any) -> None:
    LangSmith(client).export(traced(scored(a_query())))
    assert {one["run_id"] for one in sent(server)} == {RUN.format(0), RUN.format(2)}
