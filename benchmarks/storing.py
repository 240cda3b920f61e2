"""What a record of ten chunks, scored by id, costs to keep: CPU time, and bytes on disk."""

from __future__ import annotations

import gc
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measuring import report
from ctxeval import Chunk, QueryRecord, Recorder, Retrieval, Store

RECORDS, ROUNDS, POOL = 500, 25, 500
RANDOM = random.Random(7)
REFERENCES = [
    {
        "user_input": f"How does number {n} work?",
        "reference_context_ids": [f"document-{RANDOM.randrange(POOL)}" for _ in range(3)],
    }
    for n in range(200)
]


def _chunk(number: int) -> Chunk:
    text = " ".join(f"word{RANDOM.randrange(10**6)}" for _ in range(55))
    where = {"source": f"docs/chapter-{number % 40}.md", "page": number}
    return Chunk(0, f"document-{number}", "document_id", text, metadata=where)


def _record(number: int, chunks: list[Chunk]) -> QueryRecord:
    found = [replace(c, rank=rank, score=RANDOM.random()) for rank, c in enumerate(chunks)]
    now = datetime.now(UTC)
    question = f"How does number {number % len(REFERENCES)} work?"
    return QueryRecord(
        f"{RANDOM.getrandbits(128):032x}",
        question,
        f"Number {number} works as follows. {number:0100}",
        retrievals=[Retrieval(question, tuple(found), "Shop")],
        metadata={"session": f"session-{number}"},
        started=now,
        ended=now,
    )


def _scored(records: Iterator[QueryRecord]) -> list[QueryRecord]:
    recorder = Recorder(references=REFERENCES, max_pending=RECORDS, max_records=None)
    for order, record in enumerate(records):
        recorder.submit(order, order, lambda record=record: record)  # type: ignore[misc]
    scored = recorder.records
    recorder.close()
    return scored


def _measure(name: str, rounds: Iterator[list[QueryRecord]], limit: float, size: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        best, before, count = float("inf"), 0, 0
        with Store(path) as store:
            for number, records in enumerate(rounds):
                gc.collect()
                start = time.process_time()
                store.put_records(records)
                spent = (time.process_time() - start) / len(records)
                if number:  # the first round brings what recurs
                    best = min(best, spent)
                    count += len(records)
                else:
                    before = store.stats().size
        with Store(path) as store:
            bytes_each = (path.stat().st_size - before) / count
            start = time.process_time()
            assert sum(1 for _ in store.records(limit=4 * RECORDS)) == 4 * RECORDS
            reading = (time.process_time() - start) / (4 * RECORDS)
    report(f"keep a record, {name}", 1e6 * best, "µs", limit=limit)
    report(f"keep a record, {name}, on disk", bytes_each, "bytes", limit=size)
    report(f"read a record, {name}", 1e6 * reading, "µs")


def main() -> None:
    pool = [_chunk(number) for number in range(POOL)]
    numbers = iter(range(10**9))
    recurring = (
        _scored(_record(n, RANDOM.sample(pool, 10)) for n in range(RECORDS)) for _ in range(ROUNDS)
    )
    _measure("its chunks recur", recurring, 40, 1000)
    fresh = (
        _scored(_record(n, [_chunk(next(numbers)) for _ in range(10)]) for n in range(RECORDS))
        for _ in range(ROUNDS)
    )
    _measure("its chunks are new", fresh, 80, 10_000)
