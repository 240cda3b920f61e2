"""`ctxeval demo`, run as a user runs it."""

import json
import os
import subprocess
import sys

import pytest

from ctxeval import Evaluation
from ctxeval.evaluation.statistics import Interval, mean_interval

pytest.importorskip("bm25s")
pytest.importorskip("jinja2")
pytest.importorskip("langchain_core")
pytest.importorskip("matplotlib")
pytest.importorskip("rich")
pytest.importorskip("scipy")
pytest.importorskip("typer")


def ctxeval(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "ctxeval.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        encoding="utf-8",
        cwd=folder,
        env={**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"},
        check=True,
    ).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def found(folder):
    return json.loads(ctxeval(folder, "demo", "--json", "-o", "found.jsonl"))


def test_the_json_adds_up(found):
    queries = found["queries"]
    assert len(queries) >= 35
    hits = [any(id in query["retrieved"] for id in query["expected"]) for query in queries]
    assert found["metrics"]["hit_rate@10"]["mean"] == pytest.approx(sum(hits) / len(queries))
    assert 0.5 <= found["metrics"]["hit_rate@10"]["mean"] <= 0.9
    for metric in found["metrics"].values():
        assert metric["low"] < metric["mean"] < metric["high"]
        assert metric["n"] == len(queries)
    for query in queries:
        ranks = [
            query["retrieved"].index(id) + 1 for id in query["expected"] if id in query["retrieved"]
        ]
        assert query["scores"]["reciprocal_rank"] == (1 / min(ranks) if ranks else 0)


def test_the_text_tells_means_worst_questions_and_what_is_next(found, folder):
    printed = ctxeval(folder, "demo")
    for name, metric in found["metrics"].items():
        line = next(line for line in printed.splitlines() if name in line)
        assert f"{metric['mean']:.3f}" in line
        assert f"{metric['low']:.3f}–{metric['high']:.3f}" in line
        assert f"{metric['n']}/{len(found['queries'])}" in line
    assert printed.count("missed:") + printed.count("found late:") == 5
    assert 'config={"callbacks": [handler]}' in printed
    assert max(map(len, printed.splitlines())) <= 90
    *_, show, report = printed.splitlines()
    for command in (show, report):
        name, *arguments = command.split()
        assert name == "ctxeval"
        told = ctxeval(folder, *arguments)
        assert "ndcg@10" in told or "The report is in ctxeval-demo.html" in told
    assert (folder / "ctxeval-demo.html").stat().st_size > 10_000


def test_the_run_holds_what_was_found(found, folder):
    assert found["run"] == "found.jsonl"
    run = Evaluation.load(folder / "found.jsonl")
    for name, metric in found["metrics"].items():
        assert mean_interval(list(run.values(name).values())) == Interval(**metric)


def test_the_version():
    assert ctxeval(".", "--version").startswith("ctxeval 0.")
