"""No key, and nothing that must not be kept, is in anything that a whole run produced."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from export_records import QUESTION, a_query, scored, traced
from product_servers import Program, patiently
from recording_server import RecordingServer, serving
from whole_pipeline import METRICS, Produced, Run, Texts, endpoint, logged, model, refusing

import ctxeval
from ctxeval.capture import outlet
from ctxeval.export import Langfuse, LangSmith, MLflow, OpenTelemetry, Phoenix
from ctxeval.store import database as store_database

UNKNOWN = "grapefruit4711"
KEYS = [
    pytest.param("sk-geheim-4711-abcdef", id="of a known form"),
    pytest.param(UNKNOWN, id="of no known form"),
]
PASSWORD = "melone-4712"
PERSON = "anna@example"


@pytest.fixture
def produced() -> Produced:
    return Produced()


@pytest.mark.parametrize("key", KEYS)
def test_no_key_is_in_anything_that_a_run_produced(key: str, tmp_path: Path, produced: Produced):
    texts = Texts()
    with (
        logged(produced),
        endpoint(texts) as server,
        refusing(key) as refuser,
        model(server, key, extra_headers={"X-Other": key}) as llm,
        model(refuser, key) as refused,
    ):
        store = ctxeval.Store(tmp_path / "store.db")
        run = Run(tmp_path, produced, store, llm, texts)
        recorder = run.capture()
        run.show(recorder)
        run.write(run.evaluate(), "evaluated")

        with pytest.raises(ctxeval.AuthenticationError) as caught:
            ctxeval.ContextPrecision(refused).score(run.sample)
        produced.add_error("an error of the judge", caught.value)
        failing = Run(tmp_path, produced, ctxeval.Store(tmp_path / "failing.db"), refused, texts)
        failing.show(failing.capture())
        failing.write(failing.evaluate(), "failed")
        (row,) = failing.evaluate().rows
        assert "answered 401" in row.results["context_recall"].reason
        if key == UNKNOWN:
            by_command(run, server.url, refuser.url, key)
        assert {one.removeprefix("Bearer ") for one in server.keys + refuser.keys} == {key}
    store.close()
    produced.add_files(tmp_path)
    files = {name.removeprefix("the file ") for name in produced.texts}
    assert {"captured.html", "store.db", "captured.parquet", "failed.jsonl"} <= files
    assert key != UNKNOWN or {"cli.jsonl", "cli.html", "exported.jsonl"} <= files
    assert "the log of openai._base_client" in produced.texts
    assert produced.with_any([key]) == []


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType")
@pytest.mark.parametrize("key", KEYS)
def test_no_key_is_in_what_phoenix_and_mlflow_keep(
    key: str, tmp_path: Path, servers: dict[str, Program], phoenix_url: str, mlflow_url: str
):
    """With all that may be sent: questions, texts, and reasons that quote who refused the key."""
    texts = Texts()
    with (
        endpoint(texts) as server,
        refusing(key) as refuser,
        model(server, key) as llm,
        model(refuser, key) as refused,
    ):
        for n, judge in enumerate((llm, refused)):
            store = ctxeval.Store(tmp_path / f"{n}.db")
            for record in Run(tmp_path, Produced(), store, judge, texts).capture().records:
                to_phoenix(record, phoenix_url)
                to_mlflow(record, mlflow_url)
            store.close()
    for product in ("phoenix", "mlflow"):
        kept = Produced()
        kept.add_files(servers[product].folder)
        assert kept.with_any(["answered 401"]), f"{product} keeps what it was sent"
        assert kept.with_any([key]) == []


def to_phoenix(record: ctxeval.QueryRecord, url: str) -> None:
    client = pytest.importorskip("phoenix.client", reason="arize-phoenix-client is not installed")
    otlp = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    spans = otlp.OTLPSpanExporter(f"{url}/v1/traces", timeout=30)
    OpenTelemetry(spans, content=True).export(record)
    spans.shutdown()
    phoenix = Phoenix(client.Client(base_url=url), content=True)
    patiently(lambda: phoenix.export(record))


def to_mlflow(record: ctxeval.QueryRecord, url: str) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    mlflow.set_tracking_uri(url)
    mlflow.set_experiment("geese")
    with mlflow.start_span("rag"):
        record.traced = ctxeval.current_span()
        for stage in record.retrievals:
            with mlflow.start_span(stage.name, span_type="RETRIEVER"):
                stage.traced = ctxeval.current_span(retrieval=True)
    mlflow.flush_trace_async_logging()
    MLflow(mlflow, content=True).export(record)


def by_command(run: Run, url: str, refusing_url: str, key: str) -> None:
    """Use the command line, with a key in the environment."""
    environment = {**os.environ, "OPENAI_API_KEY": key}
    (run.folder / "samples.jsonl").write_text(f"{json.dumps(run.sample)}\n")
    score = ("score", "samples.jsonl", "-m", METRICS[1], "--model", "judge", "--store", "cli.db")
    for arguments in (
        (*score, "--base-url", url, "-o", "cli.jsonl"),
        (*score, "--base-url", refusing_url, "--json"),
        ("report", "cli.jsonl", "-o", "cli.html"),
        ("store", "export", "exported.jsonl", "store.db"),
    ):
        assert run.command(*arguments, env=environment).returncode == 0


def test_the_password_of_a_store_is_told_nobody(produced: Produced):
    for url in (
        f"postgresql://me:{PASSWORD}@127.0.0.1:1/none",
        f"postgresql://me@127.0.0.1:1/none?password={PASSWORD}",
    ):
        pytest.importorskip("psycopg")
        with logged(produced):
            store = ctxeval.Store(url)
            produced.add("repr", [store, store.place])
            recorder = ctxeval.Recorder(store=store)
            recorder.submit(0, 0, lambda: ctxeval.QueryRecord("1", "q"))
            recorder.flush(30)
            produced.add("notes", [recorder.notes, recorder])
            with pytest.raises(ctxeval.StoreError) as caught:
                store.stats()
            produced.add_error("an error of the store", caught.value)
    assert "can't be reached" in produced.texts["an error of the store"].decode()
    assert produced.with_any([PASSWORD]) == []


@pytest.mark.parametrize("key", ["sk-geheim-4711-abcdef", "Bearer grapefruit4711"])
def test_a_sink_that_quotes_its_key_is_quoted_without(key, tmp_path, produced, monkeypatch):
    monkeypatch.setattr(outlet, "DELAYS", (0.01, 0.01))

    def sink(scores: object) -> None:
        raise ValueError(f"401: {key}") from ConnectionError(f"token={key}")

    with logged(produced):
        recorder = ctxeval.Recorder("reciprocal_rank", sinks=[sink], store=tmp_path / "store.db")
        recorder.submit(0, 0, lambda: ctxeval.QueryRecord("1", "q"))
        assert recorder.flush(30)
        produced.add("deliveries", [recorder.deliveries, recorder.notes, recorder])
        produced.add_files(tmp_path)
    assert "401" in str(recorder.deliveries)
    assert produced.with_any([key.split()[-1]]) == []


def personal() -> Texts:
    return Texts(
        question=f"Where does {PERSON} rest?",
        answer=f"{PERSON} rests on the lake.",
        chunks=(f"The geese of {PERSON} rest on the lake.", f"Not of use to {PERSON}."),
        reference=f"{PERSON} rests. On the lake, {PERSON} does.",
        note=f"asked by {PERSON}",
        error=f"no index for {PERSON}",
    )


@pytest.mark.parametrize("by", ["the recorder", "the store"])
def test_what_is_redacted_is_nowhere(by: str, tmp_path: Path, produced: Produced):
    """Not in files, nor in what sinks, logs and people get to see, nor at the judge."""

    def redact(text: str) -> str:
        return text.replace(PERSON, "[somebody]")

    texts = personal()
    mine = Texts(**{name: _redacted(value, redact) for name, value in vars(texts).items()})
    with logged(produced), endpoint(mine) as server, model(server, "k") as llm:
        if by == "the store":
            store, options = ctxeval.Store(tmp_path / "store.db", redact=redact), {}
        else:
            store, options = ctxeval.Store(tmp_path / "store.db"), {"redact": redact}
        run = Run(tmp_path, produced, store, llm, texts, options)
        recorder = run.capture()
        run.show(recorder)
        assert len(recorder.records) == 5
        for record in recorder.records:
            assert record.reference is not None, "references are found by what was asked"
        assert recorder.records[0].scores["context_precision"].value == 1
        produced.add("what the judge was asked", server.bodies)
        store.export(tmp_path / "exported.jsonl")
        store.close()
    produced.add_files(tmp_path)
    assert "[somebody]" in str(produced.texts["what the judge was asked"])
    assert produced.with_any([PERSON]) == []


def _redacted(value, redact):
    return redact(value) if isinstance(value, str) else tuple(map(redact, value))


def test_what_a_redacting_store_keeps_of_an_evaluation(tmp_path: Path, produced: Produced):
    texts = personal()
    with endpoint(texts) as server, model(server, "k") as llm:
        store = ctxeval.Store(tmp_path / "s.db", redact=lambda text: text.replace(PERSON, "[]"))
        evaluation = Run(tmp_path, produced, store, llm, texts).evaluate()
        assert next(iter(evaluation.rows)).results["context_precision"].value == 1
        store.export(tmp_path / "exported.jsonl")
    produced.add_files(tmp_path)
    assert produced.with_any([PERSON]) == []


def test_what_redact_raises_leaves_the_query_out(tmp_path: Path, produced: Produced):
    def redact(text: str) -> str:
        raise ZeroDivisionError(text)

    with logged(produced):
        recorder = ctxeval.Recorder(redact=redact, store=tmp_path / "store.db")
        recorder.submit(0, 0, lambda: ctxeval.QueryRecord("1", PERSON))
        assert recorder.flush(10)
    produced.add("notes", [recorder, recorder.notes])
    produced.add_files(tmp_path)
    assert recorder.records == []
    assert dict(recorder.dropped) == {"redact failed with ZeroDivisionError": 1}
    assert produced.with_any([PERSON]) == []


def test_without_texts_there_are_hashes_ids_and_verdicts(tmp_path: Path, produced: Produced):
    texts = Texts()
    with endpoint(texts) as server, model(server, "k") as llm:
        store = ctxeval.Store(tmp_path / "store.db", store_text=False)
        run = Run(tmp_path, Produced(), store, llm, texts)
        recorder = run.capture()
        run.evaluate()
        (row,) = store.run("run").rows()
        kept = next(iter(store.records()))
        produced.add("what sinks got", [one.to_dict() for one in run.scores])
        store.export(tmp_path / "exported.jsonl")
        produced.add_files(tmp_path)
        store.close()
    words = [texts.question, texts.answer, *texts.chunks, texts.note, texts.error, "it says"]
    words += texts.reference.replace(".", ".\n").splitlines()
    assert produced.with_any([word.strip() for word in words]) == []
    mine = recorder.records[0]
    assert [chunk.id for chunk in kept.chunks()] == ["id-0", "id-1"]
    for name in METRICS:
        value = mine.scores[name].value
        assert value == (0.5 if name == "context_relevance" else 1)
        assert kept.scores[name].value == row["results"][name]["value"] == value
        assert kept.scores[name].verdicts.relevant() == mine.scores[name].verdicts.relevant()
    assert kept.question.startswith("#")
    assert kept.metadata == {}


@pytest.mark.skipif(os.name == "nt", reason="needs modes of files")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o277, 0o777], ids=oct)
def test_a_store_is_its_owners(umask: int, tmp_path: Path):
    before = os.umask(umask)
    try:
        store = ctxeval.Store(tmp_path / "store.db")
        store.put_records([ctxeval.QueryRecord("1", "q")])
        store.export(tmp_path / "exported.jsonl")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(
        ["store.db", "store.db-wal", "store.db-shm", "exported.jsonl"], 0o600
    )


def judged(store: ctxeval.Store, llm: object, question: str, word: str) -> None:
    """Have a store keep all that it can of a question."""
    chunks = (f"{word} is here.", f"{word} is there.")
    fields = {
        "user_input": question, "reference": f"{word} is A. {word} is B.",
        "retrieved_contexts": chunks, "response": f"{word}!",
    }  # fmt: skip
    evaluation = ctxeval.evaluate([fields], METRICS[1:], llm=llm, store=store, progress=False)
    store.put_run(str(uuid4()), {}, [row.to_dict() for row in evaluation.rows])
    texts = tuple(ctxeval.Chunk(n, f"{n}", "document_id", text) for n, text in enumerate(chunks))
    record = ctxeval.QueryRecord(
        str(uuid4()), question, f"{word}!", retrievals=[ctxeval.Retrieval(question, texts)],
        scores=dict(next(iter(evaluation.rows)).results), started=datetime.now(UTC),
    )  # fmt: skip
    store.put_records([record])
    store.put_unsent([("sink", record.id)])


def bytes_of(file: Path) -> bytes:
    return b"".join(path.read_bytes() for path in file.parent.iterdir())


@pytest.mark.parametrize("by", ["question", "before"])
def test_what_is_deleted_is_in_no_byte(by: str, tmp_path: Path):
    file = tmp_path / "store.db"
    with endpoint(Texts()) as server, model(server, "k") as llm, ctxeval.Store(file) as store:
        server.llm._relevant = lambda question, text: True
        for n in range(30):  # so that there are pages of theirs and of others
            judged(store, llm, f"Who is Otto {n}?", f"Heinrich{n} the Second")
        judged(store, llm, "Who is Anna?", "Rosalinde")
        assert bytes_of(file).count(b"Rosalinde") > 8
        assert store.count_unsent() == {"sink": 31}
        if by == "question":
            removed = store.delete(question="who is  ANNA?")
            assert removed == {"records": 1, "cells": 7, "rows": 1, "texts": removed["texts"]}
            assert store.count_unsent() == {"sink": 30}
            assert b"Heinrich29" in bytes_of(file)
        else:
            store.delete(before=datetime.now(UTC) + timedelta(days=1))
            assert b"Heinrich" not in bytes_of(file)
        assert b"Rosalinde" not in bytes_of(file)
        assert b"Who is Anna" not in bytes_of(file)


def test_who_reads_while_one_deletes_is_told_of(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(store_database, "PATIENCE", 0.2)
    file = tmp_path / "store.db"
    with ctxeval.Store(file) as store:
        store.put_records([ctxeval.QueryRecord("1", "Who is Rosalinde?")])
        reader = sqlite3.connect(file)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM ctxeval_records").fetchall()
        with pytest.raises(ctxeval.StoreError, match="still stands in its log"):
            store.delete(question="Who is Rosalinde?")
        assert list(store.records()) == []
        reader.close()
        store.delete(question="Who is Rosalinde?")
        assert b"Rosalinde" not in bytes_of(file)


def exporters(url: str, key: str) -> Iterator[Any]:
    """Give exporters whose clients hold a key and speak to a local server."""
    with suppress(ModuleNotFoundError):
        import langsmith

        client = langsmith.Client(api_url=url, api_key=key, auto_batch_tracing=False)
        yield LangSmith(client)
    with suppress(ModuleNotFoundError):
        import langfuse

        client = langfuse.Langfuse(
            public_key=f"pk-{uuid4()}", secret_key=key, base_url=url, timeout=5
        )
        yield Langfuse(client)
        client.shutdown()
    with suppress(ModuleNotFoundError):
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        headers = {"authorization": f"Bearer {key}"}
        spans = OTLPSpanExporter(f"{url}/v1/traces", headers=headers, timeout=5)
        logs = OTLPLogExporter(f"{url}/v1/logs", headers=headers, timeout=5)
        yield OpenTelemetry(spans=spans, logs=logs, content=True)
        spans.shutdown()
        logs.shutdown()
    with suppress(ModuleNotFoundError):
        import phoenix.client

        yield Phoenix(phoenix.client.Client(base_url=url, api_key=key), content=True)
    with suppress(ModuleNotFoundError), pytest.MonkeyPatch.context() as patched:
        import mlflow

        patched.setenv("MLFLOW_TRACKING_TOKEN", key)
        mlflow.set_tracking_uri(url)
        yield MLflow(mlflow, content=True)


@pytest.mark.parametrize("key", ["sk-lf-geheim-4711", "lsv2_pt_geheim4711"])
def test_no_key_of_an_exporter_is_in_anything(key, tmp_path, produced, monkeypatch):
    """Also where the server says which key it refuses."""
    monkeypatch.setattr(outlet, "DELAYS", (0.01,))
    server = RecordingServer(answer=lambda request: (401, {"error": f"no such key: {key}"}))
    used = []
    with serving(server), logged(produced):
        for exporter in exporters(server.url, key):
            used.append(exporter.name)
            record = traced(scored(a_query()))
            produced.add("repr of exporters", repr(exporter))
            with pytest.raises(ctxeval.ExportError) as caught:
                exporter.export(record)
            produced.add_error(f"an error of {exporter.name}", caught.value)
            expected = [{"user_input": QUESTION, "reference_context_ids": ["a"]}]
            recorder = ctxeval.Recorder(
                "hit_rate@1", expected, store=tmp_path / "store.db", sinks=[exporter]
            )
            recorder.submit(0, 0, lambda record=record: record)
            assert recorder.flush(60)
            (delivery,) = recorder.deliveries.values()
            assert delivery.sent == 0
            produced.add("deliveries", [delivery, recorder, recorder.notes])
    produced.add_files(tmp_path)
    if not used:
        pytest.skip("none of the products' clients is installed")
    sent = [request for request in server.requests if key in str(request.headers)]
    assert sent or used == ["langfuse"], "the keys were really used"
    assert produced.with_any([key]) == []
