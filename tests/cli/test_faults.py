"""What a command was given wrongly is said, and nothing is left behind."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("scipy")
pytest.importorskip("sqlalchemy")

from typer.testing import CliRunner

import ctxeval
from ctxeval.commands import app


def row(id, **more):
    return {"id": id, "retrieved_context_ids": ["a"], "reference_context_ids": ["a"], **more}


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def command(*arguments, code=0):
        done = CliRunner().invoke(app, [str(one) for one in arguments])
        assert done.exit_code == code, done.output
        return done.output if code else done.stdout

    return command


@pytest.fixture
def write(tmp_path):
    def lines(name, *rows):
        (tmp_path / name).write_text("".join(json.dumps(one) + "\n" for one in rows))
        return name

    return lines


@pytest.fixture
def kept(run, write):
    """Two runs that share no sample."""
    for name, ids in (("one", "ab"), ("other", "xy")):
        write(f"{name}-samples.jsonl", *map(row, ids))
        run("score", f"{name}-samples.jsonl", "-m", "hit_rate@1", "-o", f"{name}.jsonl")
    return run


def test_several_metrics_in_one_option(run, write):
    write("s.jsonl", row("a"))
    for given in (["--metrics", "ndcg@10,mrr"], ["-m", "ndcg@10", "--metric", "mrr"]):
        found = json.loads(run("score", "s.jsonl", *given, "--json"))
        assert [one["metric"] for one in found["metrics"]] == ["ndcg@10", "reciprocal_rank"]


@pytest.mark.parametrize("rows", [[{"foo": 1}], [{"foo": 1}, 5, "x"]])
def test_a_file_of_bad_rows_alone_is_an_error(run, write, rows):
    write("s.jsonl", *rows)
    told = run("score", "s.jsonl", "-m", "mrr", "--skip-bad", code=2)
    assert "no sample is left: s.jsonl, line 1: unknown field 'foo'" in told


def test_one_bad_row_in_a_list_costs_no_other(run, tmp_path):
    (tmp_path / "s.json").write_text(json.dumps([row("a"), 5, None, row("b")]))
    found = json.loads(run("score", "s.json", "-m", "mrr", "--skip-bad", "--json"))
    assert (found["samples"], found["bad"]) == (2, 2)


@pytest.mark.parametrize("name", ["run.csv", "run", "run.jsonlines"])
def test_a_run_has_a_suffix_that_can_be_read_back(run, write, name):
    write("s.jsonl", row("a"))
    told = run("score", "s.jsonl", "-m", "mrr", "-o", name, code=2)
    assert "is no suffix of a run: give .jsonl or .parquet" in told


def test_a_run_that_never_began_leaves_nothing(run, tmp_path):
    run("score", "nowhere.jsonl", "-o", "run.jsonl", code=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n", [0, -3])
def test_how_many_of_the_worst(kept, n):
    assert f"n: {n} is no integer >= 1" in kept("worst", "one.jsonl", "hit_rate@1", "-n", n, code=2)


def test_runs_without_a_common_sample_are_not_compared(kept):
    told = kept("compare", "one.jsonl", "other.jsonl", code=2)
    assert "no id is in both: 'a' before, 'x' now" in told


def test_a_floor_given_twice_is_told(kept):
    twice = ["--minimum", "hit_rate@1=0.1", "--minimum", "hit_rate@1=0.9"]
    assert "hit_rate@1 is given twice" in kept("gate", "one.jsonl", *twice, code=2)


@pytest.mark.parametrize(
    "arguments", [["stats"], ["prune", "2026-01-31"], ["export", "all.jsonl"]], ids=lambda a: a[0]
)
def test_looking_at_a_store_does_not_make_it(run, tmp_path, arguments):
    assert "there is no store" in run("store", *arguments, code=2)
    assert list(tmp_path.iterdir()) == []


def test_half_a_surrogate_pair_reaches_the_terminal_and_the_table(run, write):
    broken = {"retrieved_context_ids": ["\ud83d"], "reference_context_ids": ["\ud83d"]}
    write("s.jsonl", {"id": "\ud800", "user_input": "\ud800?", **broken})
    run("score", "s.jsonl", "-m", "hit_rate@1", "-o", "run.jsonl")
    found = json.loads(run("worst", "run.jsonl", "hit_rate@1", "--json"))
    assert found[0]["id"] == "\ud800"
    run("score", "s.jsonl", "-m", "hit_rate@1", "-o", "run.parquet")
    table = pytest.importorskip("pyarrow.parquet").read_table("run.parquet")
    assert table.column("id").to_pylist() == ["\\ud800"]


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "ctxeval", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("ctxeval ")


def test_further_columns_go_to_the_metadata(run, write):
    name = write("in.jsonl", row(1, topic="a", ms=3), row(2, topic="b", ms=4))
    assert "metadata_columns" in run("score", name, code=2)
    run("score", name, "-m", "ndcg", "--metadata-columns", "topic,ms", "-o", "run.jsonl")
    rows = ctxeval.Evaluation.load("run.jsonl").worst("ndcg", 2)
    assert [one.sample.metadata for one in rows] == [
        {"topic": "a", "ms": 3},
        {"topic": "b", "ms": 4},
    ]


def test_bad_rows_among_further_columns_are_left_out(run, write):
    name = write(
        "in.jsonl",
        row(1, topic="a"),
        row(1.5, retrieved_context_ids_=[], topic=3),
        row(2, other=1),
        row(3, topic="c"),
    )
    asked = ("score", name, "-m", "ndcg", "--metadata-columns", "topic", "--skip-bad")
    printed = run(*asked)
    assert "2 samples" in printed
    assert "2 bad rows were left out" in printed
    bad = []
    samples = ctxeval.read_samples(name, metadata_columns=["topic"])
    assert len(ctxeval.evaluate(samples, "ndcg", on_bad=bad.append)) == 2
    assert ["line 2" in str(bad[0]), "line 3" in str(bad[1])] == [True, True]


def test_further_columns_do_not_make_a_run_replace_its_samples(run, write, tmp_path):
    name = write("in.jsonl", row(1, topic="a"))
    before = (tmp_path / name).read_text()
    told = run("score", name, "--metadata-columns", "topic", "-o", name, code=2)
    assert "would replace" in told
    samples = ctxeval.read_samples(name, metadata_columns=["topic"])
    with pytest.raises(ctxeval.InvalidArgumentError, match="would replace"):
        ctxeval.evaluate(samples, "ndcg", output=name)
    assert (tmp_path / name).read_text() == before


def test_a_run_of_parquet_that_is_not_there(run):
    assert "cannot be read: No such file" in run("show", "nowhere.parquet", code=2)


def test_messages_name_the_commands_options(run, write, tmp_path):
    write("in.jsonl", {"reference": "r", "retrieved_contexts": ["x"]})
    said = run("score", str(tmp_path / "in.jsonl"), "-m", "context_recall", code=2)
    assert "add --model NAME" in said
    assert "llm" not in said
    assert "--engine ray" in run("score", str(tmp_path / "*.parquet"), code=2)
    assert "--engine ray" in run("score", str(tmp_path), code=2)
    assert "--engine ray" not in run("score", str(tmp_path / "none.jsonl"), code=2)
