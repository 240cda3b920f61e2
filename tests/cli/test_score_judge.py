"""`ctxeval score` says how a model is asked, and shows what its calibration makes of the mean."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("scipy")
pytest.importorskip("sklearn")
pytest.importorskip("openai")

from openai_server import OpenAIServer
from typer.testing import CliRunner

from ctxeval import Calibration, LLMJudge, calibrate, llm_factory
from ctxeval.commands import app
from ctxeval.testing import ScriptedLLM


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    samples = [
        {"id": n, "user_input": "q", "retrieved_contexts": [f"good {n}", f"bad {n}"]}
        for n in range(6)
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))

    def command(*arguments, code=0):
        done = CliRunner().invoke(app, [str(one) for one in arguments])
        assert done.exit_code == code, done.output
        return done.output if code else done.stdout

    return command


@pytest.fixture
def ask(run):
    """What asks the server, in a process of its own, whose end closes its connections."""

    def command(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "ctxeval", *map(str, arguments)],
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return command


@pytest.fixture
def server():
    llm = ScriptedLLM(relevant=lambda question, chunk: 0.7 if "good" in chunk else 0.6)
    with OpenAIServer(llm) as running:
        yield running


def saved(path, server, mode="logprob", threshold=0.65, **options):
    judge = LLMJudge(llm_factory("m", base_url=server.url), mode, **options)
    told = [0.7] * 90 + [0.6] * 10 + [0.7] * 20 + [0.6] * 80
    labels = [True] * 100 + [False] * 100
    if mode == "logprob":
        judge = judge.with_threshold(threshold)
        judged = [one >= threshold for one in told]
    else:
        judged = [one > 0.65 for one in told]
    made = calibrate(judged, labels, judge=judge, purpose="question").to_dict()
    if mode == "logprob":
        made |= {"threshold": threshold, "threshold_interval": (0.6, 0.7)}
    Calibration.from_dict(made).save(path)
    return str(path)


def test_how_the_model_is_asked(ask, server):
    given = ["s.jsonl", "-m", "context_relevance", "--model", "m", "--base-url", server.url]
    for threshold, mean in (("0.65", 0.5), ("0.75", 0.0)):
        asked = ["--mode", "logprob", "--threshold", threshold, "--repeats", "3", "--json"]
        (found,) = json.loads(ask("score", *given, *asked))["metrics"]
        assert found["interval"]["mean"] == mean
        assert f"llm(logprob, threshold={threshold}, repeats=3" in found["signature"]


def test_a_calibration_sets_the_threshold_and_corrects_the_mean(run, ask, server, tmp_path):
    file = saved(tmp_path / "c.json", server)
    given = ["s.jsonl", "-m", "context_relevance", "--model", "m", "--base-url", server.url]
    told = ask("score", *given, "--mode", "logprob", "--calibration", file, "-o", "run.jsonl")
    assert "corrected, by 200 labels" in told
    assert "0.429" in told  # (0.5 + 0.8 - 1) / (0.9 + 0.8 - 1)
    for command in (["show", "run.jsonl"], ["report", "run.jsonl", "-o", "r.html"]):
        told = run(*command, "--calibration", file)
    assert "corrected for the judge’s errors" in (tmp_path / "r.html").read_text("utf-8")
    (found,) = json.loads(run("show", "run.jsonl", "--calibration", file, "--json"))["metrics"]
    assert found["trust"]["mean"] == pytest.approx(0.3 / 0.7)
    assert found["interval"]["mean"] == 0.5


def test_what_does_not_fit_is_one_line(run, ask, server, tmp_path):
    file = saved(tmp_path / "c.json", server)
    model = ["--model", "m", "--base-url", server.url]
    given = ["score", "s.jsonl", "-m", "context_relevance"]
    for arguments, message in (
        ([*model, "--calibration", file], "calibration: it is of llm(logprob"),
        ([*model, "--calibration", tmp_path / "none.json"], "none.json cannot be read"),
        (["--calibration", file], "--calibration: it is of a model as a judge: give --model"),
        (
            [*model, "--mode", "logprob", "--threshold", 0.3, "--calibration", file],
            "--threshold: the calibration has the fitted one",
        ),
        (["--mode", "joint"], "--mode: it says how a model is asked: give --model"),
        (["--repeats", 3], "--repeats: it says how a model is asked"),
        ([*model, "--mode", "joined"], "did you mean 'joint'?"),
        ([*model, "--repeats", 2], "repeats: 2 is even"),
        ([*model, "--threshold", 0.3], "threshold: mode='joint' gives verdicts"),
        ([*model, "--mode", "joint", "--engine", "ray"], "--mode: --engine asks a model as it is"),
    ):
        told = run(*given, *arguments, code=2)
        assert message in " ".join(told.split()), arguments
    ask(*given, *model, "-o", "run.jsonl")
    told = run("report", "run.jsonl", "-o", "r.html", "--calibration", file, code=2)
    assert "was judged as context_relevance/1 llm(joint" in told
    assert not (tmp_path / "r.html").exists()


def test_a_check_takes_an_embedding_of_the_users_own(run, ask, server, tmp_path):
    (tmp_path / "models_of_mine.py").write_text(
        "def embed(texts):\n    return [[1.0, float('good' in text)] for text in texts]\n"
    )
    labels = [
        {"user_input": f"q{n % 6}", "chunk": f"{'good' if n % 2 else 'bad'} {n}", "label": n % 2}
        for n in range(40)
    ]
    lines = "".join(json.dumps({**one, "label": bool(one["label"])}) + "\n" for one in labels)
    (tmp_path / "labels.jsonl").write_text(lines)
    given = ["judge", "check", "labels.jsonl", "--model", "m", "--base-url", server.url]
    told = ask(*given, "--mode", "joint", "--embed", "models_of_mine:embed", "-o", "c.json")
    assert "best sentence" in told
    found = Calibration.load(tmp_path / "c.json")
    assert [one.baseline for one in found.beside] == ["word overlap", "best sentence"]
    assert "--embed: 'models_of_mine:none' can't be had" in run(
        *given, "--embed", "models_of_mine:none", code=2
    )
