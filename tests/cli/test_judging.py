"""`ctxeval judge check` against a server, `ctxeval label` in a real terminal."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from openai_server import OpenAIServer
from typer.testing import CliRunner

from ctxeval.calibration.labels import read_labels
from ctxeval.commands import app
from ctxeval.testing import ScriptedLLM

SAMPLES = [
    {"id": "one", "user_input": "Where?", "retrieved_contexts": ["Here it is.", "Nowhere [bold]x"]},
    {"id": "two", "user_input": "When?", "retrieved_contexts": ["Now.\x1b[31m"]},
]


@pytest.fixture
def samples(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in SAMPLES))
    return path


class Terminal:
    """A terminal of tmux's, on a server of its own."""

    def __init__(self, folder):
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", os.devnull]

    def __call__(self, *arguments):
        done = subprocess.run(
            [*self._tmux, *arguments], capture_output=True, text=True, check=True, timeout=20
        )
        return done.stdout

    def start(self, command):
        self("new-session", "-d", "-x", "90", "-y", "30", command)

    def wait_for(self, *texts, there=True):
        deadline = time.monotonic() + 60
        while True:
            shown = self("capture-pane", "-p")
            if all((text in shown) == there for text in texts):
                return shown
            assert time.monotonic() < deadline, shown
            time.sleep(0.05)

    def wait_for_none_of(self, *texts):
        self.wait_for(*texts, there=False)

    def press(self, key):
        self("send-keys", key)


@pytest.fixture
def terminal(tmp_path):
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed: apt-get install tmux")
    made = Terminal(tmp_path)
    yield made
    subprocess.run([*made._tmux, "kill-server"], capture_output=True, check=False)


def test_one_key_a_chunk_undo_and_going_on(terminal, samples, tmp_path):
    labels = tmp_path / "labels.jsonl"
    command = [sys.executable, "-m", "ctxeval", "label", str(samples), "-o", str(labels)]
    terminal.start(f"sh -c '{shlex.join(command)}; exec sh'")
    shown = terminal.wait_for("0 labelled, 3 left", "sample one", "Here it is.", "Where?")
    assert "y yes · n no" in shown
    terminal.press("y")
    terminal.wait_for("1 labelled, 2 left", "Nowhere [bold]x")
    terminal.press("x")
    terminal.wait_for("that key means nothing here")
    terminal.press("y")
    terminal.wait_for("2 labelled, 1 left", "When?")
    terminal.press("u")
    terminal.wait_for("1 labelled, 2 left", "Nowhere")
    assert [one.label for one in read_labels(labels)] == [True]
    terminal.press("n")
    terminal.wait_for("2 labelled, 1 left", "Now.�[31m")
    terminal.press("q")
    terminal.wait_for("2 labelled, 1 left:", "labels.jsonl")
    terminal("send-keys", "clear", "Enter")
    terminal.wait_for_none_of("labelled")
    terminal("send-keys", shlex.join(command), "Enter")
    terminal.wait_for("2 labelled, 1 left", "When?", "y yes")
    terminal.press("1")
    terminal.wait_for("3 labelled, 0 left", "u takes it back")
    terminal.press("u")
    terminal.wait_for("2 labelled, 1 left", "When?", "y yes")
    terminal.press("2")
    terminal.wait_for("3 labelled, 0 left", "u takes it back")
    terminal.press("Enter")
    terminal.wait_for("3 labelled, 0 left:", "labels.jsonl")
    kept = [(one.pair.sample, one.pair.chunks[0], one.label) for one in read_labels(labels)]
    assert kept == [
        ("one", "Here it is.", True),
        ("one", "Nowhere [bold]x", False),
        ("two", "Now.\x1b[31m", 2),
    ]


def test_ctrl_c_keeps_what_is_labelled(terminal, samples, tmp_path):
    labels = tmp_path / "labels.jsonl"
    command = [sys.executable, "-m", "ctxeval", "label", str(samples), "-o", str(labels)]
    terminal.start(f"sh -c '{shlex.join(command)}; exec sh'")
    terminal.wait_for("0 labelled, 3 left")
    terminal.press("n")
    terminal.wait_for("1 labelled, 2 left")
    terminal.press("C-c")
    terminal.wait_for("1 labelled, 2 left:", "labels.jsonl")
    assert [one.label for one in read_labels(labels)] == [False]


def test_without_a_terminal_it_says_so(samples, tmp_path):
    command = [sys.executable, "-m", "ctxeval", "label", str(samples), "-o", "labels.jsonl"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        cwd=tmp_path, start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "no terminal to read keys from" in done.stderr
    assert "ctxeval.label_samples" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["label", "samples.jsonl", "-o", "labels.csv"], "'.csv' is no suffix"),
        (["label", "nowhere.jsonl", "-o", "labels.jsonl"], "nowhere.jsonl: it can't be read"),
        (["label", "samples.jsonl", "-o", "l.jsonl", "--purpose", "x"], "purpose: 'x'"),
        (["label", "samples.jsonl", "-o", "bad.jsonl"], "bad.jsonl, line 1: label: 'perhaps'"),
    ],
)
def test_what_is_wrong_is_one_line(samples, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.jsonl").write_text('{"user_input": "q", "chunk": "c", "label": "perhaps"}\n')
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert message in done.output


class TestCheck:
    @pytest.fixture
    def check(self, tmp_path, monkeypatch):
        pytest.importorskip("openai")
        pytest.importorskip("sklearn")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        lines = [
            {
                "user_input": f"q{n % 6}",
                "chunk": f"{'good' if n % 2 else 'bad'} {n}",
                "label": n % 2 == 1,
            }
            for n in range(60)
        ]
        (tmp_path / "labels.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))

        def command(server, *arguments, code=0):
            given = ["judge", "check", "labels.jsonl", "--model", "m", "--base-url", server.url]
            done = subprocess.run(
                [sys.executable, "-m", "ctxeval", *given, *arguments],
                capture_output=True,
                encoding="utf-8",
                env={**os.environ, "PYTHONIOENCODING": "utf-8"},
                timeout=100,
            )
            assert done.returncode == code, done.stderr
            return done.stdout if code == 0 else done.stdout + done.stderr

        return command

    def server(self, **options):
        return OpenAIServer(
            ScriptedLLM(relevant=lambda q, c: 0.7 if "good" in c else 0.6), **options
        )

    def test_all_modes_with_the_calibration_of_the_best(self, check, tmp_path):
        from ctxeval import Calibration, LLMJudge, llm_factory

        with self.server() as server:
            printed = check(server, "-o", "calibration.json")
            assert "60 labelled pairs for 'question': 30 yes, 30 no" in printed
            assert "Recommended: mode='logprob', threshold=0.65" in printed
            calibration = Calibration.load(tmp_path / "calibration.json")
            judge = LLMJudge(llm_factory("m", base_url=server.url), "logprob")
            assert judge.with_calibration(calibration).threshold == pytest.approx(0.65)

    def test_modes_by_name_and_json(self, check):
        with self.server() as server:
            found = json.loads(check(server, "--mode", "joint", "--mode", "pointwise", "--json"))
        judges = found["question"]["judges"]
        assert [one["mode"] for one in judges] == ["joint", "pointwise"]
        assert [one["usage"]["requests"] for one in judges] == [6, 60]
        assert judges[0]["calibration"]["specificity"] == 0

    def test_repeats(self, check, tmp_path):
        from ctxeval import Calibration

        with self.server() as server:
            arguments = ["--mode", "logprob", "--repeats", "3"]
            printed = check(server, *arguments, "-o", "calibration.json")
            assert "logprob: 0.0% of the verdicts flip between repeats" in printed
            assert "Recommended: mode='logprob', repeats=3, threshold=0.65" in printed
            assert "repeats=3" in Calibration.load(tmp_path / "calibration.json").judge
            told = check(server, "--repeats", "2", code=2)
            assert "repeats: 2 is even" in told

    def test_an_embedding_that_fails_is_one_line(self, check, tmp_path):
        (tmp_path / "mine.py").write_text("def embed(texts):\n    raise OSError('no GPU')\n")
        with self.server() as server:
            told = check(server, "--embed", "mine:embed", code=2)
        assert "--embed: mine:embed failed on " in told
        assert "OSError: no GPU: give a function" in told
        assert "Traceback" not in told
        assert server.requests == 0

    def test_an_endpoint_without_log_probabilities(self, check):
        with self.server(accepts=("json_schema strict", "text", "max_tokens")) as server:
            printed = check(server, "--mode", "logprob", "--mode", "joint")
            assert "logprob could not judge: " in printed
            assert "Recommended: mode='joint'" in printed
            check(server, "--mode", "logprob", code=1)

    def test_an_unknown_mode(self, check):
        with self.server() as server:
            told = check(server, "--mode", "logprobs", code=2)
        assert "--mode: 'logprobs' is unknown: did you mean 'logprob'" in told
