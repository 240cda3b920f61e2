"""A run that is killed goes on from what was judged."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("openai")
pytest.importorskip("scipy")
pytest.importorskip("sqlalchemy")
pytest.importorskip("typer")

from openai_server import OpenAIServer

from ctxeval.testing import ScriptedLLM

SAMPLES, CONCURRENCY = 500, 16


@pytest.mark.skipif(os.name == "nt", reason="needs kill -9")
def test_what_was_judged_before_the_kill_is_not_judged_again(tmp_path):
    lines = [
        {"user_input": f"q{n}", "retrieved_contexts": [f"useful {n}", f"other {n}"]}
        for n in range(SAMPLES)
    ]
    file = tmp_path / "samples.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    llm = ScriptedLLM(lambda question, text: text.startswith("useful"))
    with OpenAIServer(llm, latency=0.02) as server:
        command = [
            *(sys.executable, "-m", "ctxeval.cli", "score", file, "-m", "context_relevance"),
            *("--model", "judge", "--base-url", server.url, "--store", tmp_path / "kept.db"),
            *("--concurrency", str(CONCURRENCY), "--json"),
        ]
        first = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        deadline = time.monotonic() + 60
        while server.statuses[200] < SAMPLES // 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
        first.wait(10)
        before = server.statuses[200]
        assert SAMPLES // 3 <= before < SAMPLES
        again = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
        (metric,) = json.loads(again.stdout)["metrics"]
        assert (metric["scored"], metric["interval"]["mean"]) == (SAMPLES, 0.5)
        # What was under way at the kill may have been answered without anybody to keep it.
        assert server.statuses[200] <= SAMPLES + 2 * CONCURRENCY
