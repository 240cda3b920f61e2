"""What sinks did not take is known as long as the record is."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta

from ctxeval import QueryRecord, Store, TraceSpan

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def put(store: Store, *ids: str) -> None:
    store.put_records(QueryRecord(id, f"question {id}", started=NOON) for id in ids)


def test_each_sink_has_its_own(store: Store) -> None:
    put(store, "a", "b", "c")
    store.put_unsent([("x", "a"), ("y", "a"), ("x", "b"), ("x", "a")])
    store.put_unsent([("x", "a")])
    assert store.count_unsent() == {"x": 2, "y": 1}
    assert [one.id for one in store.unsent("x")] == ["a", "b"]
    store.sent("x", "a")
    assert [one.id for one in store.unsent("x")] == ["b"]
    assert [one.id for one in store.unsent("y")] == ["a"]
    assert list(store.unsent("z")) == []


def test_they_are_read_while_they_are_taken_out(store: Store) -> None:
    ids = [f"{n:04}" for n in range(1200)]  # more than a page
    put(store, *ids)
    store.put_unsent(("x", id) for id in ids[:20] + ids[-20:])
    seen = []
    for record in store.unsent("x"):
        seen.append(record.id)
        store.sent("x", record.id)
    assert seen == ids[:20] + ids[-20:]
    assert store.count_unsent() == {}


def test_a_record_that_is_put_again_is_still_unsent(store: Store) -> None:
    put(store, "a")
    store.put_unsent([("x", "a")])
    traced = TraceSpan("a" * 32, "b" * 16)
    store.put_records([QueryRecord("a", "question a", answer="new", traced=traced)])
    assert [(one.answer, one.traced) for one in store.unsent("x")] == [("new", traced)]


def test_one_may_be_noted_before_its_record_is_there(store: Store) -> None:
    store.put_unsent([("x", "a")])
    assert store.count_unsent() == {}
    put(store, "a")
    assert store.count_unsent() == {"x": 1}


def test_with_the_record_it_is_forgotten(store: Store) -> None:
    put(store, "a", "b")
    store.put_unsent([("x", "a")])
    store.put_unsent([("x", "b")])
    store.delete(question="question a")
    assert [one.id for one in store.unsent("x")] == ["b"]
    store.prune(before=NOON + timedelta(days=1))
    assert store.stats().tables["unsent"].rows == 0


def test_any_names_will_do(store: Store) -> None:
    put(store, "\ud800")
    store.put_unsent([("sink \0 ü \ud800", "\ud800")])
    assert store.count_unsent() == {"sink \0 ü \ud800": 1}


def test_it_is_exported(store: Store) -> None:
    put(store, "a")
    store.put_unsent([("x", "a")])
    written = io.StringIO()
    store.export(written)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert {"kind": "unsent", "sink": "x", "record": "a"} in lines
