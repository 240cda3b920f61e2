"""What a store holds can be counted, exported, pruned and deleted."""

from __future__ import annotations

import io
import json
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from ctxeval import QueryRecord, Store, StoreError

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def rows_of(store: Store) -> dict[str, int]:
    return {name: count.rows for name, count in store.stats().tables.items()}


def test_tokens_add_up(store: Store) -> None:
    day = date(2026, 3, 1)
    assert store.tokens_of(day) == 0
    assert store.add_tokens(day, 5) == 5
    assert store.add_tokens(day, 2**40) == 5 + 2**40
    assert store.tokens_of(day) == 5 + 2**40
    assert store.tokens_of(day + timedelta(days=1)) == 0


def test_stats(store: Store, record) -> None:
    assert set(rows_of(store).values()) == {0}
    store.put_records([record("q", "text")])
    stats = store.stats()
    assert (stats.place, stats.schema) == (store.place, 2)
    assert stats.tables["records"].rows == 1
    assert 50 < stats.tables["records"].bytes < 500
    assert stats.size > 1000


def test_deleting_by_question_removes_its_texts(file: Path, record) -> None:
    with Store(file) as store:
        shared = "a chunk that another question found too"
        gone = record("Who is Anna?", "a chunk of Anna's alone", shared, answer="Anna B.")
        stays = record("Who is Otto?", shared)
        store.put_records([gone, stays])
        rows = [{"sample": {"user_input": q, "response": q * 9}} for q in ("who is ANNA?", "other")]
        store.put_run("run", {}, rows)
        assert store.delete(question="Who is  anna?") == {
            "records": 1, "cells": 0, "rows": 1, "texts": 2,
        }  # fmt: skip
        assert list(store.records()) == [stays]
        assert list(store.run("run").rows()) == rows[1:]
        assert store.run("run").size == 1
        content = b"".join(path.read_bytes() for path in file.parent.iterdir())
    for left in (content, file.read_bytes()):
        assert b"anna" not in left.lower()
        assert shared.encode() in left


def test_deleting_by_time(store: Store, record) -> None:
    old, young = (record("q", f"text {hour}", started=NOON + hour * HOUR) for hour in (0, 2))
    store.put_records([old, young, record("other", started=NOON)])
    assert store.delete(question="q", before=NOON + HOUR)["records"] == 1
    assert store.delete(before=NOON + HOUR)["records"] == 1
    assert list(store.records()) == [young]
    with pytest.raises(StoreError, match="give question=, before=, or both"):
        store.delete()


def test_pruning_what_is_old(store: Store, record) -> None:
    today = datetime.now(UTC)
    old, young = record("q", "old text", started=NOON), record("q", "young text", started=today)
    store.put_records([old, young])
    store.put_run("run", {}, [{"sample": {"user_input": "q"}}])
    store.put_many([("key", {"value": True})])
    store.add_tokens(NOON.date(), 3)
    store.add_tokens(today.date(), 4)
    removed = store.prune(before=today - HOUR)
    assert removed == {"records": 1, "runs": 0, "cells": 0, "usage": 1, "texts": 1}
    assert list(store.records()) == [young]
    assert store.prune() == {"texts": 0}
    time.sleep(0.01)
    store.prune(before=datetime.now(UTC), keep=["cells", "runs"])
    assert rows_of(store) == {
        "records": 0, "texts": 0, "cells": 1, "runs": 1, "rows": 1, "usage": 1, "unsent": 0
    }  # fmt: skip
    with pytest.raises(StoreError, match=r"keep: 'cell' is unknown: did you mean 'cells'\?"):
        store.prune(keep=["cell"])


def test_pruning_gives_the_space_back(file: Path, record) -> None:
    with Store(file) as store:
        store.put_records(record("q", f"text {n} " * 200, started=NOON) for n in range(500))
        big = store.stats().size
        store.prune(before=NOON + HOUR)
        assert store.stats().size < big / 4
    assert file.stat().st_size < big / 4


def test_pruning_removes_what_a_killed_process_left(store: Store, monkeypatch) -> None:
    class Killed(BaseException):
        pass

    def rows():
        yield from ({"sample": {"user_input": "q" * 30}} for _ in range(600))
        monkeypatch.setattr("ctxeval.store.runs.remove", None)  # so that nothing is cleaned up
        raise Killed

    with pytest.raises(TypeError):
        store.put_run("run", {}, rows())
    monkeypatch.undo()
    assert rows_of(store)["rows"] == 500
    store.prune()
    assert rows_of(store)["rows"] == 500  # it may still be going on
    later = datetime.now(UTC) + timedelta(days=2)

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return later

    monkeypatch.setattr("ctxeval.store.upkeep.datetime", Later)
    store.prune()
    assert rows_of(store)["rows"] == rows_of(store)["texts"] == 0


def test_export(store: Store, tmp_path: Path, record) -> None:
    asked = record("Was heißt \ud800 hier?", "ein Text")
    store.put_records([asked])
    store.put_run("run", {"k": 4}, [{"id": "1"}, {"id": "2"}])
    store.put_many([("key", {"value": True})])
    store.add_tokens(NOON.date(), 3)
    path = tmp_path / "export.jsonl"
    assert store.export(path) == 6
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line.pop("kind") for line in lines] == ["record", "run", "row", "row", "cell", "usage"]
    assert QueryRecord.from_dict(lines[0]) == asked
    assert lines[1].items() >= {"id": "run", "size": 2, "meta": {"k": 4}}.items()
    assert lines[2] == {"run": "run", "row": {"id": "1"}}
    assert lines[4]["finding"] == {"value": True}
    assert lines[5] == {"day": "2026-03-01", "tokens": 3}
    assert path.stat().st_mode & 0o777 == 0o600
    file = io.StringIO()
    assert store.export(file) == 6
    assert file.getvalue() == path.read_text(encoding="utf-8")
    with pytest.raises(StoreError, match="give a path that can be written"):
        store.export(tmp_path / "missing" / "export.jsonl")
