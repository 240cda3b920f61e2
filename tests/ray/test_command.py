"""`ctxeval score --engine ray`, in a process that starts a Ray of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("ray.data", reason="Ray is not installed")
pytest.importorskip("typer", reason="the command line is not installed")
pytest.importorskip("scipy", reason="scipy is not installed")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.filterwarnings("default")  # Ray warns of itself


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ctxeval.cli", "score", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(2):
        rows: list[dict[str, Any]] = [
            {"id": n, "retrieved_context_ids": ["a", "b"], "reference_context_ids": ["b"]}
            for n in range(10 * number, 10 * number + 10)
        ]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"part-{number}.parquet")
    return tmp_path


def test_a_pattern_is_scored_to_a_folder(folder: Path) -> None:
    wanted = ["-m", "reciprocal_rank,id_based_context_recall"]
    said = run(folder, "--engine", "ray", "part-*.parquet", *wanted, "-o", "scores", "--json")
    told = json.loads(said)
    assert told["samples"] == 20
    means = {one["metric"]: one["scored"] for one in told["metrics"]}
    assert means == {"reciprocal_rank": 20, "id_based_context_recall": 20}
    scored = pq.read_table(folder / "scores").sort_by("id")
    assert scored["id"].to_pylist() == list(range(20))
    assert set(scored["reciprocal_rank"].to_pylist()) == {0.5}
    again = run(folder, "--engine", "ray", "part-*.parquet", "-o", "scores", code=2)
    assert again == "ctxeval: output: there is something at scores: give a new folder\n"


def test_columns_that_look_like_those_of_a_metric(folder: Path) -> None:
    """They are the user's own: no metric was asked for by these names."""
    table = pq.read_table(folder / "part-0.parquet")
    table = table.append_column("order", pa.array([7] * 10))
    table = table.append_column("order_status", pa.array(["shipped"] * 10))
    pq.write_table(table, folder / "orders.parquet")
    told = json.loads(run(folder, "--engine", "ray", "orders.parquet", "-m", "ndcg@10", "--json"))
    assert [one["metric"] for one in told["metrics"]] == ["ndcg@10"]


def test_what_is_wrong_is_one_line(folder: Path) -> None:
    rows = [{"id": "bad", "retrieved_context_ids": ["", "b"], "reference_context_ids": ["b"]}]
    pq.write_table(pa.Table.from_pylist(rows), folder / "bad.parquet")
    said = run(folder, "--engine", "ray", "bad.parquet", "-m", "ndcg@10", code=2)
    assert said.splitlines()[-1].startswith("ctxeval: bad.parquet: ")
    assert "retrieved_context_ids" in said.splitlines()[-1]
    said = run(folder, "--engine", "ray", "nothing-*.parquet", code=2)
    assert said.startswith("ctxeval: nothing-*.parquet: there are no such files (")
    said = run(folder, "--engine", "spark", "bad.parquet", code=2)
    assert said == "ctxeval: --engine: 'spark' is unknown: there is ray\n"
    said = run(folder, "--engine", "ray", "--dry-run", "bad.parquet", code=2)
    assert said == "ctxeval: --dry-run: no engine rehearses: leave out --engine\n"


def test_files_that_do_not_go_together_are_one_line(folder: Path) -> None:
    rows = [{"id": "x", "retrieved_context_ids": ["b"], "reference_context_ids": ["b"]}]
    pq.write_table(pa.Table.from_pylist(rows), folder / "part-of-words.parquet")
    said = run(folder, "--engine", "ray", "part-*.parquet", "-m", "ndcg@10", code=2)
    assert said.splitlines()[-1].startswith("ctxeval: part-*.parquet: they can't be read together:")
    assert "Field id has incompatible types" in said.splitlines()[-1]
    (folder / "part-none.parquet").write_text("no Parquet")
    said = run(folder, "--engine", "ray", "part-n*.parquet", "-m", "ndcg@10", code=2)
    assert said.splitlines()[-1].endswith("give files of Parquet, each column of one type")
    said = run(folder, "--engine", "ray", "part-0.parquet", "-o", "run.jsonl", code=2)
    assert said.startswith("ctxeval: output: run.jsonl would be a folder of Parquet files: ")


def test_why_there_is_no_value_is_told(folder: Path) -> None:
    rows = [
        {"id": 1, "retrieved_context_ids": ["b", ""], "reference_context_ids": ["b"]},
        {"id": 2, "retrieved_context_ids": None, "reference_context_ids": ["b"]},
        {"id": 3, "retrieved_context_ids": ["b"], "reference_context_ids": []},
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "bad.parquet")
    said = run(folder, "--engine", "ray", "bad.parquet", "-m", "ndcg@10", "--skip-bad")
    for why in ("undefined: nothing is expected", "failed: the row is no", "skipped: a field that"):
        assert f"1 × ndcg@10 {why}" in said
