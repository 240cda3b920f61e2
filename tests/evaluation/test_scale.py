"""A million samples from Parquet to Parquet, in bounded memory."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("scipy")
pytest.importorskip("typer")

import pyarrow as pa
import pyarrow.parquet as parquet


def table(path, n):
    lists = [[f"doc-{(n * 7 + k) % 40}" for k in range(10)] for n in range(40)]
    expected = [[f"doc-{n}", f"doc-{(n * 3) % 40}"] for n in range(40)]
    batch = pa.table(
        {
            "retrieved_context_ids": [lists[k % 40] for k in range(20_000)],
            "reference_context_ids": [expected[k % 37] for k in range(20_000)],
        }
    )
    with parquet.ParquetWriter(path, batch.schema) as writer:
        for _ in range(n // 20_000):
            writer.write_table(batch)


def score(tmp_path, n):
    table(tmp_path / "in.parquet", n)
    code = (
        "import resource, sys; from ctxeval.cli import main\n"
        "try: main()\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    )
    metrics = ("-m", "id_based_context_recall", "-m", "ndcg@10")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            "score",
            "in.parquet",
            *metrics,
            "-o",
            "out.parquet",
            "--json",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    return json.loads(done.stdout), int(done.stderr.split()[-1]) / 1024


def test_from_parquet_to_parquet(tmp_path):
    told, _ = score(tmp_path, 20_000)
    written = parquet.read_table(tmp_path / "out.parquet")
    assert written.num_rows == told["samples"] == 20_000
    assert set(written.column("ndcg@10_status").to_pylist()) == {"scored"}
    mean = sum(written.column("ndcg@10").to_pylist()) / 20_000
    assert told["metrics"][1]["interval"]["mean"] == pytest.approx(mean)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_million_samples_in_less_than_a_gigabyte(tmp_path):
    told, megabytes = score(tmp_path, 1_000_000)
    assert told["samples"] == 1_000_000
    assert megabytes < 1000
