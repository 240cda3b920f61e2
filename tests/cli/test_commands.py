"""The command line, run as a user runs it."""

import json
import os
import subprocess
import sys

import pytest

for needed in ("typer", "rich", "scipy"):
    pytest.importorskip(needed)

SAMPLES = [
    {
        "id": str(n),
        "user_input": f"q{n}",
        "retrieved_context_ids": ids,
        "reference_context_ids": [1],
    }
    for n, ids in enumerate([[1], [2, 1], [3], [1, 2], [2], [1], [2, 1], [1], [4, 1], [1]])
]


@pytest.fixture
def ctxeval(tmp_path):
    def run(*arguments, code=0, **environment):
        done = subprocess.run(
            [sys.executable, "-m", "ctxeval.cli", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=100,
            encoding="utf-8",
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "120", **environment},
        )
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    return run


@pytest.fixture
def samples(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(sample) + "\n" for sample in SAMPLES))
    return path


def test_score_show_worst(ctxeval, samples):
    printed = ctxeval("score", samples, "-m", "reciprocal_rank", "-o", "run.jsonl")
    assert "10 samples" in printed
    assert "0.650" in printed  # 5 × 1, 3 × 1/2, 2 × 0
    shown = json.loads(ctxeval("show", "run.jsonl", "--json"))
    assert shown["metrics"][0]["interval"]["mean"] == pytest.approx(0.65)
    assert shown["metrics"][0]["scored"] == 10
    worst = json.loads(ctxeval("worst", "run.jsonl", "reciprocal_rank", "-n", 2, "--json"))
    assert [row["id"] for row in worst] == ["2", "4"]
    assert "no chunk with this id was retrieved" in ctxeval("worst", "run.jsonl", "reciprocal_rank")


def test_compare_and_gate(ctxeval, samples, tmp_path):
    worse = tmp_path / "worse.jsonl"
    lines = [json.dumps({**s, "retrieved_context_ids": [9]}) + "\n" for s in SAMPLES]
    worse.write_text("".join(lines))
    ctxeval("score", samples, "-m", "reciprocal_rank", "-o", "good.jsonl")
    ctxeval("score", worse, "-m", "reciprocal_rank", "-o", "bad.jsonl")
    assert "worse" in ctxeval("compare", "good.jsonl", "bad.jsonl")
    (change,) = json.loads(ctxeval("compare", "good.jsonl", "bad.jsonl", "--json"))
    assert change["difference"]["interval"]["mean"] == pytest.approx(-0.65)
    ctxeval("gate", "good.jsonl", "--baseline", "bad.jsonl")
    assert "FAIL" in ctxeval("gate", "bad.jsonl", "--baseline", "good.jsonl", code=1)
    assert "FAIL" in ctxeval("gate", "bad.jsonl", "--minimum", "reciprocal_rank=0.3", code=1)


def test_bad_rows(ctxeval, samples):
    samples.write_text(samples.read_text() + '{"id": "x", "contexts": 3}\n{\n')
    told = ctxeval("score", samples, "-m", "reciprocal_rank", code=2)
    assert "line 11" in told
    assert "contexts" in told
    printed = ctxeval("score", samples, "-m", "reciprocal_rank", "--skip-bad")
    assert "10 samples" in printed
    assert "2 bad rows were left out" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score", "nowhere.jsonl"], "nowhere.jsonl"),
        (["show", "nowhere.jsonl"], "cannot be read"),
        (["gate", "samples.jsonl"], "is no run of ctxeval"),
        (["score", "samples.jsonl", "-m", "ndgc@10"], "ndcg@10"),
        (["score", "samples.jsonl", "-m", "context_recall"], "add --model"),
    ],
    ids=["no file", "no run", "not a run", "no such metric", "no model"],
)
def test_what_is_wrong_is_one_line_without_a_traceback(ctxeval, samples, arguments, message):
    told = ctxeval(*arguments, code=2)
    assert message in told
    assert "Traceback" not in told


def test_a_key_is_needed_and_comes_from_the_environment(ctxeval, samples):
    pytest.importorskip("openai")
    told = ctxeval("score", samples, "--model", "m", code=2, OPENAI_API_KEY="", OPENAI_BASE_URL="")
    assert "OPENAI_API_KEY" in told


def test_a_store_is_looked_after(ctxeval, tmp_path):
    pytest.importorskip("sqlalchemy")
    from ctxeval import QueryRecord, Store

    with Store(tmp_path / "kept.db") as store:
        store.put_records([QueryRecord("r1", "q")])
    stats = json.loads(ctxeval("store", "stats", "kept.db", "--json"))
    assert stats["tables"]["records"][0] == 1
    assert "lines written" in ctxeval("store", "export", "all.jsonl", "kept.db")
    assert '"r1"' in (tmp_path / "all.jsonl").read_text()
    assert "1 records" in ctxeval("store", "prune", "2999-01-01", "kept.db")


@pytest.mark.parametrize("command", ["demo", "score", "show", "report", "worst", "compare", "gate"])
def test_each_command_has_help_with_an_example(ctxeval, command):
    assert "Example: ctxeval" in " ".join(ctxeval(command, "--help").split())


def test_escapes_do_not_reach_the_terminal(ctxeval, tmp_path):
    hostile = "\x1b[31mred\x1b[0m [bold]x[/bold] \x07"
    sample = {
        "user_input": hostile,
        "retrieved_contexts": [hostile],
        "reference_contexts": ["quite another text"],
    }
    (tmp_path / "hostile.jsonl").write_text(json.dumps(sample) + "\n")
    ctxeval("score", "hostile.jsonl", "-m", "non_llm_context_recall", "-o", "run.jsonl")
    printed = ctxeval("worst", "run.jsonl", "non_llm_context_recall")
    assert "\x1b" not in printed
    assert "\x07" not in printed
    assert "[bold]x[/bold]" in printed


def test_a_report_is_written_and_shown(ctxeval, samples, tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    ctxeval("score", samples, "-m", "reciprocal_rank", "-o", "run.jsonl")
    (tmp_path / "before.jsonl").write_text((tmp_path / "run.jsonl").read_text())
    told = ctxeval("report", "run.jsonl", "--baseline", "before.jsonl", "-o", "report.html")
    assert "report.html" in told
    page = (tmp_path / "report.html").read_text("utf-8")
    shown = ctxeval("show", "run.jsonl", "--baseline", "before.jsonl")
    for heading in ("What changed", "Where relevant chunks get lost", "Worst queries", "Cost"):
        assert heading in page
        assert heading in shown
    assert "no chunk with this id was retrieved" in shown
    told = ctxeval("report", "run.jsonl", "-o", "nowhere/report.html", code=2)
    assert "its directory does not exist" in told


def test_a_terminal_of_few_letters_gets_what_it_can_show(ctxeval, samples):
    ctxeval("score", samples, "-m", "reciprocal_rank", "-o", "run.jsonl")
    shown = ctxeval("show", "run.jsonl", PYTHONIOENCODING="ascii")
    assert "0.650" in shown
    assert "Worst queries" in shown
