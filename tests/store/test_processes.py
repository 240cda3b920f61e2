"""Several processes use one store: every row is there once, whatever becomes of the writers."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
import time
from datetime import date
from pathlib import Path

import pytest

from ctxeval import Store

WRITER = """
import sys
from datetime import date
from ctxeval import Chunk, QueryRecord, Retrieval, Store

url, me = sys.argv[1], int(sys.argv[2])
with Store(url) as store:
    for batch in range(6):
        records = []
        for n in range(20):
            texts = [f"a chunk that all have, number {n}", f"a chunk of {me} alone, {batch}, {n}"]
            chunks = tuple(Chunk(r, f"{me}-{n}", "document_id", t) for r, t in enumerate(texts))
            name = f"{me} {batch} {n}"
            records.append(QueryRecord(name, name, retrievals=[Retrieval(name, chunks)]))
        records.append(QueryRecord("all write this one", "q", f"{me}"))
        store.put_records(records)
        findings = [("shared", {"value": batch}), (f"of {me}", {"value": batch})]
        store.put_many(findings if me % 2 else findings[::-1])
        store.add_tokens(date(2026, 3, 1), 1)
    store.put_run("shared", {"by": me}, [{"id": str(n)} for n in range(700)])
    store.put_run(f"of {me}", {}, [{"id": f"{me} {n}"} for n in range(10)])
    if me == 0:
        store.prune()  # while the others write
"""


def test_eight_processes(url: str, start, finish) -> None:
    finish(*[start(WRITER, url, n) for n in range(8)])
    with Store(url) as store:
        records = {one.id: one for one in store.records()}
        names = {f"{me} {batch} {n}" for me in range(8) for batch in range(6) for n in range(20)}
        assert set(records) == {*names, "all write this one"}
        assert store.stats().tables["records"].rows == len(records)
        for name in names:
            me, batch, n = name.split()
            shared, alone = records[name].chunks()
            assert shared.text == f"a chunk that all have, number {n}"
            assert alone.text == f"a chunk of {me} alone, {batch}, {n}"
            assert shared.id == alone.id == f"{me}-{n}"
        keys = ["shared", *(f"of {me}" for me in range(8))]
        for findings in store.get_many(keys).values():
            assert sorted(finding["value"] for finding in findings) == list(range(6))
        assert store.stats().tables["cells"].rows == 54
        assert store.tokens_of(date(2026, 3, 1)) == 48
        assert len(store.runs()) == 9
        assert [row["id"] for row in store.run("shared").rows()] == [str(n) for n in range(700)]
        assert store.stats().tables["rows"].rows == 780
        # 20 that all have, 960 of one each, and what records have in common
        assert 980 <= store.stats().tables["texts"].rows <= 1000
        store.prune()
        assert [len(one.chunks()) for one in store.records()].count(2) == 960


ENDLESS = """
import itertools, sys
from ctxeval import Chunk, QueryRecord, Retrieval, Store

with Store(sys.argv[1]) as store:
    for n in itertools.count():
        chunk = Chunk(0, f"{n}", "document_id", f"text {n} " * 500)
        stage = Retrieval("q", (chunk,))
        store.put_records([QueryRecord(f"{n}-{m}", "q", retrievals=[stage]) for m in range(3)])
        print(n, flush=True)
"""


def test_a_killed_writer_costs_nothing_that_it_had_written(url: str, start) -> None:
    for _ in range(3):
        process = start(ENDLESS, url)
        for _ in range(20):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        said = process.communicate()[0].split()
        written = int(said[-1]) if said else 19
        with Store(url) as store:
            numbers = [one.id.split("-") for one in store.records()]
            for n in range(written + 1):
                assert sum(1 for of, _ in numbers if of == str(n)) == 3
            assert len(numbers) % 3 == 0  # a batch is there as a whole or not at all
            for one in store.records():
                assert one.chunks()[0].text == f"text {one.id.split('-')[0]} " * 500
            store.put_many([("key", {"value": True})])
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()


FORKING = """
import os, sys, threading, time
from ctxeval import QueryRecord, Store

store = Store(sys.argv[1])
store.put_records([QueryRecord("parent", "q")])
go_on = True

def write():
    n = 0
    while go_on:
        n += 1
        store.put_records([QueryRecord(f"thread {n}", "q" * 30)])
        store.get_many(["key"])

threads = [threading.Thread(target=write) for _ in range(2)]
for thread in threads:
    thread.start()
children = []
for n in range(8):
    time.sleep(0.02)
    child = os.fork()
    if not child:
        for m in range(10):
            store.put_records([QueryRecord(f"child {n} {m}", "q")])
        seen = {one.id for one in store.records()}
        os._exit(0 if {"parent", *(f"child {n} {m}" for m in range(10))} <= seen else 1)
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
go_on = False
for thread in threads:
    thread.join()
assert codes == [0] * 8, codes
ids = {one.id for one in store.records()}
assert len([one for one in ids if one.startswith("child")]) == 80
store.close()
print("fine")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_in_the_middle_of_writing(url: str, start, finish) -> None:
    code = FORKING
    if sys.version_info >= (3, 12):  # which warns of forks beside threads
        code = "import warnings; warnings.simplefilter('ignore')\n" + code
    assert finish(start(code, url)) == ["fine\n"]


def test_a_fork_leaves_no_connection_open(file: Path, record) -> None:
    with Store(file) as store:
        store.put_records([record()])
        beside = file.with_name("store.db-wal")
        assert beside.exists()
        store._database.hold()
        assert not beside.exists()  # SQLite removes it with the last connection
        store._database.release()
        store.put_records([record()])


def test_a_fork_waits_for_what_is_under_way(file: Path) -> None:
    order = []
    with Store(file) as store:
        store.stats()
        under_way = threading.Event()

        def work(connection: object) -> None:
            under_way.set()
            time.sleep(0.1)
            order.append("work")

        thread = threading.Thread(target=store._database.write, args=(work,))
        thread.start()
        under_way.wait()
        store._database.hold()
        order.append("fork")
        store._database.release()
        thread.join()
    assert order == ["work", "fork"]
