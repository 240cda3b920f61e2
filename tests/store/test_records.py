"""Records come back as they were put, and each text is kept once."""

from __future__ import annotations

import json
import math
import uuid
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxeval import (
    Chunk,
    MetricResult,
    QueryRecord,
    Recorder,
    Retrieval,
    Sample,
    Span,
    Store,
    TraceSpan,
    Usage,
    Verdict,
    Verdicts,
)
from ctxeval.testing import ScriptedLLM

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)  # surrogates, NUL and all
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | ANY_TEXT
JSON = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(ANY_TEXT, SCALARS, max_size=2)
METADATA = st.dictionaries(ANY_TEXT, JSON, max_size=2)
FEW_TEXTS = st.sampled_from(["", "a", "the same text, long enough to be kept once", "\ud800", "\0"])
SPANS = st.builds(Span, st.text(min_size=1, max_size=3), st.just(3), st.integers(3, 9))
CHUNKS = st.lists(
    st.builds(
        Chunk,
        st.integers(0, 9),
        ANY_TEXT | st.sampled_from("ab"),
        st.sampled_from(["document_id", "text_hash"]),
        FEW_TEXTS | ANY_TEXT,
        st.none() | st.integers() | st.floats(allow_nan=False),
        st.none() | SPANS,
        METADATA,
    ),
    max_size=3,
).map(tuple)
MOMENTS = st.none() | st.datetimes(
    datetime(1990, 1, 1), timezones=st.sampled_from([UTC, None, timezone(timedelta(hours=2))])
)
TRACED = st.none() | st.builds(TraceSpan, st.sampled_from(["a" * 32]), st.sampled_from(["b" * 16]))
VERDICT_LISTS = st.lists(
    st.builds(
        Verdict,
        st.sampled_from([True, False, None]),
        FEW_TEXTS | ANY_TEXT,
        FEW_TEXTS,
        st.lists(st.integers(0, 9), max_size=2).map(tuple),
        st.none() | st.floats(0, 1),
        st.integers(0, 3),
        st.lists(st.sampled_from([True, False, None]), max_size=3).map(tuple),
        st.none() | st.floats(0, 1),
    ),
    max_size=3,
)
USAGES = st.builds(Usage, st.integers(0, 3), st.integers(0, 3))
VERDICTS = st.builds(
    Verdicts, VERDICT_LISTS, VERDICT_LISTS, judge=FEW_TEXTS, usage=USAGES, together=st.booleans(),
    note=FEW_TEXTS,
)  # fmt: skip
UNIT = st.floats(0, 1)
RESULTS = st.builds(
    MetricResult,
    st.none() | UNIT,
    st.sampled_from(["scored", "undefined", "failed", "skipped"]),
    FEW_TEXTS,
    st.none() | VERDICTS,
    st.none() | st.tuples(UNIT, UNIT) | UNIT.map(lambda value: (value, value)),
    st.sampled_from(["m", "context_recall"]),
    FEW_TEXTS,
    st.none() | USAGES,
    st.none() | UNIT,
)
SCORES = st.dictionaries(st.sampled_from(["m", "context_recall"]), RESULTS, max_size=2)
STAGES = st.builds(
    Retrieval, FEW_TEXTS, CHUNKS, ANY_TEXT, st.sampled_from(["retrieve", "prompt"]),
    st.none() | st.integers(0, 2), st.integers(0, 3), st.floats(0, 9), FEW_TEXTS, SCORES,
    st.lists(st.integers(0, 3), max_size=2).map(tuple), MOMENTS, FEW_TEXTS, TRACED,
)  # fmt: skip
GRADES = st.dictionaries(st.text(min_size=1, max_size=3), st.integers(-1, 3), max_size=3)
OTHERS = st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
REFERENCES = st.builds(
    Sample,
    user_input=st.none() | st.text(max_size=9),
    reference_context_ids=st.none() | GRADES | GRADES.map(list),
    metadata=OTHERS,
) | st.builds(Sample, reference_spans=st.lists(SPANS, max_size=2), metadata=OTHERS)
RECORDS = st.builds(
    QueryRecord, st.uuids().map(str), FEW_TEXTS | ANY_TEXT, st.none() | ANY_TEXT,
    st.sampled_from(["ok", "incomplete", "error", "cancelled", "abandoned"]),
    st.lists(STAGES, max_size=2), SCORES, st.frozensets(st.sampled_from("ab")), METADATA,
    MOMENTS, MOMENTS, st.none() | REFERENCES, FEW_TEXTS, TRACED,
)  # fmt: skip


@settings(suppress_health_check=list(HealthCheck), max_examples=40)
@given(records=st.lists(RECORDS, min_size=1, max_size=2, unique_by=lambda one: one.id))
def test_they_come_back_as_they_were_put(store: Store, records: list[QueryRecord]) -> None:
    store.put_records(records)
    kept = {one.id: one for one in store.records()}
    for one in records:
        assert kept[one.id] == one
        assert json.dumps(kept[one.id].to_dict()) == json.dumps(one.to_dict())


@settings(max_examples=40)
@given(RECORDS)
def test_plain_data_and_back(one: QueryRecord) -> None:
    through_json = json.dumps(one.to_dict())
    plain = QueryRecord.from_dict(json.loads(through_json))
    assert json.dumps(plain.to_dict()) == through_json
    # The usage of a result is that of its verdicts, so scores need not be equal.
    bare = [replace(stage, scores={}) for stage in one.retrievals]
    assert replace(plain, retrievals=[], scores={}) == replace(one, retrievals=[], scores={})
    assert [replace(stage, scores={}) for stage in plain.retrievals] == bare


@pytest.mark.parametrize(
    ("kind", "count"),
    [(QueryRecord, 13), (Retrieval, 13), (Chunk, 7), (MetricResult, 9), (Verdict, 8), (Usage, 6)],
)
def test_no_field_is_new(kind: type, count: int) -> None:
    """A new field must be packed, and be among the strategies above."""
    assert len(fields(kind)) == count


def test_scores_of_every_kind(store: Store) -> None:
    llm = ScriptedLLM(relevant={"b"}, supported={"B is b.": {"b"}})
    recorder = Recorder(
        ["reciprocal_rank", "non_llm_context_recall", "context_precision", "context_recall"],
        [
            {
                "user_input": "q",
                "reference": "B is b. C is c.",
                "reference_contexts": ["b", "c"],
                "reference_context_ids": {"id-b": 2, "id-c": 1},
            }
        ],
        llm,
    )
    chunks = tuple(Chunk(rank, f"id-{text}", "document_id", text) for rank, text in enumerate("ab"))
    stage = Retrieval("q", chunks, "base", parent=1)
    last = Retrieval("q", chunks[1:], "reranker", "rerank", order=1)
    recorder.submit(0, 0, lambda: QueryRecord("1", "q", "b", retrievals=[stage, last]))
    assert recorder.flush(30)
    (one,) = recorder.records
    store.put_records([one])
    (kept,) = store.records()
    assert kept == one
    assert {result.status for result in kept.scores.values()} == {"scored"}
    for name, result in one.scores.items():
        assert kept.scores[name].usage == result.usage
        assert kept.scores[name].verdicts.to_dict() == result.verdicts.to_dict()
    shared = [kept.scores[name].verdicts for name in ("context_precision", "context_recall")]
    mine = [one.scores[name].verdicts for name in ("context_precision", "context_recall")]
    assert (shared[0] is shared[1]) == (mine[0] is mine[1])


def test_metadata_that_json_has_no_form_for(store: Store) -> None:
    import numpy as np

    circle: list[object] = []
    circle.append(circle)

    class Rude:
        def __str__(self) -> str:
            raise ValueError

    day = datetime(2026, 1, 2, tzinfo=UTC)
    identity = uuid.UUID(int=7)
    odd = {
        "day": day, "uuid": identity, "set": {1}, "number": np.float32(0.5), "whole": np.int64(3),
        "bytes": b"\xff", 3: "three", "rude": Rude(), "circle": circle, "nan": math.nan,
        "infinite": -math.inf, "huge": 2**70, "tuple": (1, 2),
    }  # fmt: skip
    for name, value in odd.items():
        store.put_records([QueryRecord(str(name), "q", metadata={name: value})])
    kept = {one.id: one.metadata[one.id] for one in store.records()}
    assert kept["set"] == [1]
    assert kept["tuple"] == [1, 2]
    assert (kept["number"], kept["whole"], kept["huge"]) == (0.5, 3, 2**70)
    assert kept["uuid"] == str(identity)
    assert datetime.fromisoformat(kept["day"]) == day
    assert kept["3"] == "three"
    assert "Rude" in kept["rude"]
    assert math.isnan(kept["nan"])
    assert kept["infinite"] == -math.inf
    assert isinstance(kept["bytes"], str)
    assert kept["circle"]


def test_one_with_an_id_that_is_there_takes_its_place(store: Store, record) -> None:
    first, second = record("q", "a", started=NOON), record("q", "b", started=NOON)
    store.put_records([first, second])
    again = replace(first, answer="yes")
    store.put_records([again])
    store.put_records([again, replace(first, answer="no"), again])
    assert sorted(store.records(), key=lambda one: one.id) == [again, second]


def test_they_come_in_the_order_of_asking(store: Store, record) -> None:
    later, earlier = (record(started=NOON + timedelta(hours=hour)) for hour in (1, 0))
    store.put_records([later])
    store.put_records([earlier])
    assert list(store.records()) == [earlier, later]
    assert list(store.records(since=later.started)) == [later]
    assert list(store.records(since=datetime.fromtimestamp(later.started.timestamp()))) == [later]
    assert list(store.records(limit=1)) == [earlier]
    assert list(store.records(limit=0)) == []


def test_questions_are_found_whatever_their_case(store: Store, record) -> None:
    asked = record("Who  wrote Faust? ")
    store.put_records([asked, record("Who wrote Emilia?")])
    assert list(store.records(question=" who wrote FAUST?")) == [asked]
    assert list(store.records(question="who")) == []


def test_many_are_read_page_by_page(store: Store, record) -> None:
    records = [record(f"question {n}", f"text {n % 7}", started=NOON) for n in range(1203)]
    store.put_records(iter(records))
    reading = store.records()
    first = next(reading)
    store.put_records([record("asked meanwhile", started=NOON - timedelta(days=1))])
    assert sorted(one.id for one in [first, *reading]) == sorted(one.id for one in records)
    assert sum(1 for _ in store.records(limit=450)) == 450


def test_a_text_is_kept_once(store: Store, record) -> None:
    text = "A chunk of a text that comes again and again. " * 30
    store.put_records([record(f"q{n}", text) for n in range(100)])
    size = store.stats().tables["texts"].bytes
    assert len(text) < size < 2 * len(text)
    assert store.stats().tables["records"].bytes < 100 * 200
    assert {one.chunks()[0].text for one in store.records()} == {text}


def test_equal_texts_with_other_ids_keep_their_ids(url: str) -> None:
    def one(id: str, **metadata: object) -> QueryRecord:
        chunk = Chunk(0, id, "document_id", "the same text", metadata=metadata)
        return QueryRecord(f"of {id}", "q", retrievals=[Retrieval("q", (chunk,))], started=NOON)

    records = [one("a", page=1), one("b", page=2), one("c"), one("d", page=4)]
    with Store(url) as first, Store(url) as second:  # each remembers texts by itself
        first.put_records(records[:2])
        second.put_records(records[2:3])
        second.put_records(records[3:])
        first.put_records([records[0]])
        assert sorted(first.records(), key=lambda one: one.id) == records
        assert second.stats().tables["texts"].rows == 4  # one text, and what records have in common


def test_a_text_that_was_no_chunks_first(url: str, record) -> None:
    text = "the application failed with this long message"
    failed = QueryRecord("1", "q", retrievals=[Retrieval("q", error=text)])
    chunk = record("q", text, id="2")
    with Store(url) as store:
        store.put_records([failed])
        store.put_records([chunk])
        store.put_records([replace(chunk, id="3")])
        assert list(store.records()) == [failed, chunk, replace(chunk, id="3")]


def test_what_another_process_removed_is_written_again(url: str, record) -> None:
    with Store(url) as first, Store(url) as second:
        first.put_records([record("q", "a text that both processes remember")])
        second.put_records([record("q", "a text that both processes remember")])
        assert first.delete(question="q")["records"] == 2
        assert first.stats().tables["texts"].rows == 0
        again = record("q", "a text that both processes remember")
        second.put_records([again])
        first.put_records([again])
        assert list(first.records()) == [again]


def test_what_is_remembered_is_bounded(store: Store, record, monkeypatch) -> None:
    monkeypatch.setattr("ctxeval.store.texts.MAX_BYTES", 2000)
    records = [
        record(f"question {n}", f"text {n}, and more of it", started=NOON) for n in range(20)
    ]
    for one in records:
        store.put_records([one])
        assert store._texts._bytes <= 2000
    store.put_records(records)
    assert sorted(one.id for one in store.records()) == sorted(one.id for one in records)


def test_the_file_is_nobody_elses_business(file: Path, record) -> None:
    with Store(file) as store:
        store.put_records([record()])
        modes = {path.name: path.stat().st_mode & 0o777 for path in file.parent.iterdir()}
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
