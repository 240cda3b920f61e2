"""Metrics by id on Ray, beside the same rows scored here: `python -m benchmarks on_ray`.

Reads Parquet, scores, and compares every value. RESULTS.md says in which environment.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import ctxeval
from benchmarks.ids_peers import METRICS, queries
from benchmarks.measuring import report

ROWS, FILES, CPUS = 100_000, 10, 2


def main() -> None:
    retrieved, expected = queries(ROWS)
    lists = pa.list_(pa.string())
    table = pa.table(
        {
            "id": list(range(ROWS)),
            "retrieved_context_ids": pa.array(retrieved, lists),
            "reference_context_ids": pa.array(expected, lists),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        each = ROWS // FILES
        for n in range(FILES):
            pq.write_table(table.slice(n * each, each), Path(folder) / f"{n}.parquet")
        found, starting, scoring, memory = _on_ray(folder)
    here = ctxeval.score_table(table, METRICS)
    columns = here.column_names[table.num_columns :]
    assert found.sort_by("id").select(columns).equals(here.select(columns))
    assert found.num_rows == ROWS
    report(f"start Ray and score {ROWS:,} rows, wall", starting + scoring, "s", limit=30)
    report("of that, to start Ray", starting, "s")
    report("the most memory of a worker", memory, "MB")


def _on_ray(folder: str) -> tuple[pa.Table, float, float, float]:
    begun = time.perf_counter()
    import ray

    from ctxeval_ray import score_dataset

    ray.init(num_cpus=CPUS, include_dashboard=False, log_to_driver=False)
    started = time.perf_counter()
    scored = score_dataset(ray.data.read_parquet(folder), METRICS).materialize()
    done = time.perf_counter()
    memory = max(map(_megabytes, psutil.Process().children(recursive=True)), default=0.0)
    found: Any = pa.concat_tables(ray.get(scored.to_arrow_refs()))
    ray.shutdown()
    return found, started - begun, done - started, memory


def _megabytes(process: psutil.Process) -> float:
    """Give what a worker takes for itself, without what all share."""
    try:
        worker = "ray::" in " ".join(process.cmdline())
        return process.memory_full_info().uss / 2**20 if worker else 0.0
    except psutil.NoSuchProcess:
        return 0.0
