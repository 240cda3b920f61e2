"""What must not be stored is not in the file; what may be, still says what it said."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ctxeval import (
    Chunk,
    ContextRecall,
    QueryRecord,
    Recorder,
    Retrieval,
    Store,
    StoreError,
    evaluate,
)
from ctxeval.evaluation.rows import Row
from ctxeval.judges.cells import text_hash
from ctxeval.testing import ScriptedLLM

SECRET = "anna@example"


def scored_record(secret: str = SECRET) -> QueryRecord:
    """A record that has the secret in every text of it."""
    texts = (f"{secret} wrote this.", f"Not {secret} wrote that.")
    chunks = tuple(
        Chunk(rank, f"id-{rank}", "document_id", text, metadata={"by": [secret]})
        for rank, text in enumerate(texts)
    )
    llm = ScriptedLLM(relevant={texts[0]})
    reference = {
        "user_input": f"Who is {secret}?", "reference": f"{secret} is A. And {secret} is B.",
        "reference_contexts": texts, "reference_context_ids": ["id-1", "id-2"],
        "metadata": {"by": secret},
    }  # fmt: skip
    metrics = ["reciprocal_rank", "non_llm_context_recall", "context_precision", "context_recall"]
    recorder = Recorder(metrics, [reference], llm)
    stages = [
        Retrieval(f"rephrased: {secret}?", chunks, error=""),
        Retrieval("q", error=f"no place for {secret}", order=1),
    ]
    metadata = {"user": {"mail": secret}, secret: 1}
    asked = QueryRecord("1", f"Who is {secret}?", f"{secret}!", "ok", stages, metadata=metadata)
    recorder.submit(0, 0, lambda: asked)
    assert recorder.flush(30)
    (record,) = recorder.records
    assert record.scores["context_precision"].value == 1
    return record


def bytes_of(file: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(file.parent.iterdir()))


def test_without_texts_hashes_ids_and_verdicts_stay(file: Path) -> None:
    record = scored_record()
    with Store(file, store_text=False) as store:
        store.put_records([record])
        row = Row("1", record.sample(), record.scores, tuple(record.stages()))
        store.put_run("run", {"model": "m"}, [row.to_dict()])
        assert b"anna" not in bytes_of(file)
        (kept,) = store.records(question=record.question.upper())
        (kept_row,) = store.run("run").rows()
        assert store.run("run").meta == {"model": "m"}
    assert b"anna" not in bytes_of(file)
    assert [chunk.id for chunk in kept.chunks()] == ["id-0", "id-1"]
    assert kept.question == f"#{text_hash(record.question)}"
    assert kept.chunks()[0].text == f"#{text_hash(record.chunks()[0].text)}"
    assert kept.retrievals[1].error
    assert kept.metadata == kept.chunks()[0].metadata == kept.reference.metadata == {}
    for name, result in record.scores.items():
        mine, theirs = kept.scores[name], result
        assert (mine.value, mine.status, mine.signature) == (
            theirs.value, theirs.status, theirs.signature)  # fmt: skip
        assert mine.verdicts.relevant() == theirs.verdicts.relevant()
        assert mine.verdicts.covered() == theirs.verdicts.covered()
        assert kept_row["results"][name]["value"] == result.value
    assert kept.scores["reciprocal_rank"].verdicts == record.scores["reciprocal_rank"].verdicts
    assert kept_row["sample"]["retrieved_context_ids"] == ["id-0", "id-1"]
    assert kept_row["sample"]["retrieved_contexts"][0] == kept.chunks()[0].text


def test_redacting_comes_first(file: Path) -> None:
    record = scored_record()
    del record.metadata[SECRET]  # keys are names, and stay
    with Store(file, redact=lambda text: re.sub(r"\S+@\S+\b", "[mail]", text)) as store:
        store.put_records([record])
        store.put_run("run", {"by": SECRET}, [{"sample": {"user_input": f"{SECRET}?"}}])
        store.put_many([("key", {"value": True, "reason": f"says {SECRET}", "chunks": []})])
        (kept,) = store.records(question=record.question)
        assert list(store.records(question="who is [mail]?")) == [kept]
        (row,) = store.run("run").rows()
        assert store.run("run").meta == {"by": "[mail]"}
        assert store.get_many(["key"])["key"][0]["reason"] == "says [mail]"
        assert store.delete(question=record.question)["records"] == 1
    assert b"anna" not in bytes_of(file)
    assert row == {"sample": {"user_input": "[mail]?"}}
    assert kept.question == "Who is [mail]?"
    assert kept.chunks()[0].text == "[mail] wrote this."
    assert kept.metadata == {"user": {"mail": "[mail]"}}
    assert kept.scores["context_recall"].value == record.scores["context_recall"].value
    assert kept.scores["context_recall"].verdicts.units[0].text == "[mail] is A."


def test_what_redacting_raises_stops_the_storing(store: Store) -> None:
    url = store._database.place.text

    def fail(text: str) -> str:
        raise ZeroDivisionError

    for redact, error in ((fail, ZeroDivisionError), (lambda text: None, StoreError)):
        refusing = Store(url, redact=redact)  # type: ignore[arg-type]
        with pytest.raises(error):
            refusing.put_records([scored_record()])
        with pytest.raises(error):
            refusing.put_run("r", {}, [{"sample": {"user_input": "q"}}])
        with pytest.raises(error):
            refusing.put_many([("key", {"value": True, "reason": "r", "chunks": []})])
        refusing.close()
    assert not any(count.rows for count in store.stats().tables.values())


def test_a_text_that_is_redacted_away_is_still_one(file: Path) -> None:
    with Store(file, redact=lambda text: " ") as store:
        store.put_records([scored_record()])
        (kept,) = store.records()
    assert kept.chunks()[0].text == "[redacted]"


def test_judging_works_all_the_same_without_texts(file: Path) -> None:
    fields = {
        "user_input": "q",
        "reference": "It is A. It is B.",
        "retrieved_contexts": ["A", "B"],
    }
    llm = ScriptedLLM(supported={"It is A.": {"A"}})
    for kept in (True, False):
        llm.calls.clear()
        with Store(file.with_name(f"{kept}.db"), store_text=kept) as store:
            for _ in range(2):
                assert ContextRecall(llm, cache=store).score(fields).value == 0.5
            # Claims are texts: without them the reference is split again, and judged no more.
            assert len(llm.calls) == (2 if kept else 3)
            lines = file.with_name("lines.jsonl")
            store.export(lines)
        findings = [json.loads(line) for line in lines.read_text().splitlines()]
        assert any("claims" in one["finding"] for one in findings) == kept


def test_a_row_without_texts_still_shares_its_verdicts(file: Path) -> None:
    sample = {"user_input": "q", "retrieved_contexts": ["A"], "reference_contexts": ["A"]}
    (row,) = evaluate([sample]).rows
    with Store(file, store_text=False) as store:
        (kept,) = map(Row.from_dict, store.put_run("r", {}, [row.to_dict()]).rows())
    assert len({id(result.verdicts) for result in kept.results.values()}) == 1
