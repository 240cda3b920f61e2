"""Runs are streamed in and out, and are there as a whole or not at all."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxeval import Store, StoreError, evaluate
from ctxeval.evaluation.rows import Row

TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
KEYS = st.sampled_from(["", "a", "sample", "user_input"])
DATA = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=4,
)


@settings(suppress_health_check=list(HealthCheck), max_examples=40)
@given(rows=st.lists(st.dictionaries(KEYS, DATA, max_size=3), max_size=3), id=TEXT)
def test_rows_come_back_as_they_were_put(store: Store, rows: list[Any], id: str) -> None:
    put = store.put_run(id, {"n": len(rows)}, rows)
    kept = store.run(id)
    assert list(kept.rows()) == rows
    assert (kept.id, kept.meta, kept.size) == (id, {"n": len(rows)}, len(rows))
    assert put == kept


def test_an_evaluation(store: Store) -> None:
    samples = [
        {"user_input": f"q{n}", "retrieved_context_ids": ["a"], "reference_context_ids": ["a", "b"]}
        for n in range(3)
    ]
    rows = list(evaluate(samples).rows)
    store.put_run("baseline", {"k": 4}, (row.to_dict() for row in rows))
    kept = [Row.from_dict(row) for row in store.run("baseline").rows()]
    assert [row.sample for row in kept] == [row.sample for row in rows]
    assert [json.dumps(row.to_dict()) for row in kept] == [json.dumps(r.to_dict()) for r in rows]


def rows_of(count: int, text: str = "x" * 3000) -> Iterator[dict[str, Any]]:
    return ({"sample": {"user_input": f"q{n}", "response": f"{n} {text}"}} for n in range(count))


def test_memory_does_not_grow_with_the_rows(store: Store, monkeypatch) -> None:
    monkeypatch.setattr("ctxeval.store.texts.MAX_BYTES", 1_000_000)
    count, size = 6000, 3000
    tracemalloc.start()
    store.put_run("long", {}, rows_of(count))
    assert sum(1 for _ in store.run("long").rows()) == count
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < count * size / 2


def test_nothing_is_there_until_all_is(store: Store) -> None:
    seen = []

    def watching() -> Iterator[dict[str, Any]]:
        for row in rows_of(1200, ""):
            seen.append([run.size for run in store.runs()])
            yield row

    store.put_run("r", {}, rows_of(2, ""))
    store.put_run("r", {}, watching())
    assert seen == [[2]] * 1200
    assert [run.size for run in store.runs()] == [1200]
    assert store.stats().tables["rows"].rows == 1200


def test_one_that_fails_leaves_nothing(store: Store) -> None:
    def failing() -> Iterator[dict[str, Any]]:
        yield from rows_of(700)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.put_run("r", {}, failing())
    assert store.runs() == []
    assert [store.stats().tables[name].rows for name in ("runs", "rows")] == [0, 0]
    store.prune()
    assert store.stats().tables["texts"].rows == 0


def test_one_that_goes_while_it_is_read_says_so(store: Store) -> None:
    reading = store.put_run("r", {}, rows_of(700, "")).rows()
    next(reading)
    again = store.put_run("r", {}, rows_of(1, ""))
    with pytest.raises(StoreError, match="the run 'r' was deleted or replaced: get it again"):
        list(reading)
    assert len(list(again.rows())) == 1


def test_an_unknown_run_says_which_there_are(store: Store) -> None:
    with pytest.raises(StoreError, match=r"holds no run 'basline': it holds no runs at all"):
        store.run("basline")
    begun = datetime.now(UTC)
    store.put_run("baseline", {}, [])
    store.put_run("other", {}, [])
    with pytest.raises(StoreError, match=r"holds no run 'basline': did you mean 'baseline'\?"):
        store.run("basline")
    first, second = store.runs()
    assert (first.id, second.id) == ("baseline", "other")
    assert begun <= first.stored <= second.stored <= datetime.now(UTC)
