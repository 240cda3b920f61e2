"""Everything fails at once and at random, and nothing is lost without being counted.

The application, its load and the failing judge, store and sinks are those of `soak.py`, which
runs in a process of its own; what happens to disks and databases meanwhile is done here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")
pytest.importorskip("sqlalchemy")

from postgres_server import running_postgres

import ctxeval

SUPPORT = Path(__file__).parent.parent / "support"
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def soak(
    store: str, queries: int, seconds: int, *, fork_every: int = 0, seed: int = 1
) -> subprocess.Popen[str]:
    """Begin to ask so many queries in so many seconds, or in as many as the machine needs."""
    options = {"queries": queries, "seconds": seconds, "seed": seed, "fork-every": fork_every}
    command = [sys.executable, str(SUPPORT / "soak.py"), store]
    command += [f"--{name}={value}" for name, value in options.items()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str], timeout: float) -> dict[str, Any]:
    """Wait for what became of the queries."""
    try:
        said, wrong = process.communicate(timeout=timeout)
    finally:
        process.kill()
    assert process.returncode == 0, wrong[-5000:]
    report: dict[str, Any] = json.loads(said)
    print(json.dumps(report, indent=1), wrong[-5000:])
    return report


def check(report: dict[str, Any], queries: int) -> None:
    """See that each query is stored or counted, and that the application noticed nothing."""
    assert report["asked"] == report["compared"] == queries + 20 * report["forks"]
    assert report["different"] == [], "the answers are those without ctxeval, to the bit"
    assert report["stored"] + report["missing"] == report["asked"]
    assert report["missing"] <= sum(report["lost"].values())
    assert report["unknown"] == 0
    assert report["open"] == 0
    assert report["errors"] == {}
    assert report["flushed"]
    for delivery in report["deliveries"].values():
        assert delivery["waiting"] == 0
        assert delivery["sent"] + delivery["kept"] + delivery["lost"] == report["taken"]


def check_memory(report: dict[str, Any]) -> None:
    before, after = report["memory"]
    assert after <= 1.1 * before, f"{before:,} bytes after the warm-up, {after:,} at the end"


def wait_for_records(url: str, n: int, process: subprocess.Popen[str]) -> None:
    while process.poll() is None:
        with ctxeval.Store(url) as store:
            if store.stats().tables["records"].rows >= n:
                return
        time.sleep(0.5)


def meanwhile(do: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    return thread


def test_ten_seconds(tmp_path: Path):
    report = finished(soak(f"{tmp_path / 'store.db'}", 1000, 8, fork_every=400), 110)
    check(report, 1000)
    assert report["forks"] == 2
    assert report["stored"] > 500


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_threads_tasks_and_forks(tmp_path: Path):
    report = finished(soak(f"{tmp_path / 'store.db'}", 60_000, 180, fork_every=6000), 3500)
    check(report, 60_000)
    check_memory(report)
    assert report["forks"] == 10
    assert report["stored"] > 30_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a folder on a disk of 48 MB."""
    if sys.platform != "linux" or os.getuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small disk can't be mounted: {done.stderr}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_full_disk(small_disk: Path):
    store, filler = small_disk / "store.db", small_disk / "filler"
    process = soak(str(store), 15_000, 45, seed=2)
    filled: list[int] = []

    def fill() -> None:
        wait_for_records(str(store), 1000, process)
        for _ in range(2):
            with filler.open("wb", buffering=0) as file:
                for size in (2**20, 2**12):
                    try:
                        while file.write(b"\0" * size) == size:
                            pass
                    except OSError:
                        pass
            filled.append(filler.stat().st_size)
            time.sleep(6)
            filler.unlink()
            time.sleep(4)

    filling = meanwhile(fill)
    report = finished(process, 1700)
    filling.join(30)
    assert len(filled) == 2
    check(report, 15_000)
    check_memory(report)
    assert report["lost"]["the store failed"] > 100, "the disk was full"
    assert report["late"] > 0.5, "and is used again when it is not"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_database_that_restarts():
    with running_postgres() as server:
        process = soak(server.url, 25_000, 75, fork_every=10_000, seed=3)

        def restart() -> None:
            wait_for_records(server.url, 1000, process)
            for _ in range(2):
                server.stop()
                time.sleep(3)
                server.start()
                time.sleep(6)

        restarting = meanwhile(restart)
        report = finished(process, 1700)
        restarting.join(60)
        assert not restarting.is_alive()
    check(report, 25_000)
    check_memory(report)
    assert report["lost"]["the store failed"] > 100, "the database was away"
    assert report["late"] > 0.5, "and is used again when it is back"
