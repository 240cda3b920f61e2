"""Labelling in a notebook: a real kernel asks, and somebody answers."""

from __future__ import annotations

import pytest

pytest.importorskip("ipykernel")
pytest.importorskip("jupyter_client")

from jupyter_client.manager import start_new_kernel

from ctxeval.calibration.labels import read_labels

CELL = """
import ctxeval
samples = [{"user_input": "Where?", "retrieved_contexts": ["Here.", "Nowhere.", "There."]}]
print("count", ctxeval.label_samples(samples, "labels.jsonl"))
"""


def test_a_letter_and_enter_each(tmp_path):
    kernels, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    answers = iter(["y", "y", "u", "n", "q"])
    seen: list[str] = []

    def say(message):
        seen.append(message["content"]["prompt"])
        client.input(next(answers))

    outputs: list[dict] = []
    try:
        reply = client.execute_interactive(
            CELL, allow_stdin=True, stdin_hook=say, output_hook=outputs.append, timeout=60
        )
        assert reply["content"]["status"] == "ok", reply
    finally:
        client.stop_channels()
        kernels.shutdown_kernel(now=True)
        kernels.context.destroy()
    assert len(seen) == 5
    assert "y yes · n no" in seen[0]
    printed = "".join(one["content"].get("text", "") for one in outputs)
    assert "Chunk: Nowhere." in printed
    assert "count 2" in printed
    assert any(one["msg_type"] == "clear_output" for one in outputs), "one pair at a time"
    assert [one.label for one in read_labels(tmp_path / "labels.jsonl")] == [True, False]
