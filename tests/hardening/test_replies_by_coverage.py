"""The reader of replies under atheris, which looks for inputs that reach new lines."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from injections import INJECTIONS

SUPPORT = Path(__file__).parent.parent / "support"
REPLY = {
    "claims": [
        {"id": 1, "reason": "Stated.", "supporting_chunks": [1, "chunk 2"], "verdict": "yes"}
    ],
    "chunks": [{"id": "2", "reason": "", "verdict": "No."}, {"id": 1, "verdict": True}],
}
WORDS = [
    *(
        "<think>",
        "</think>",
        "```json",
        '{"chunks": [',
        '{"claims": [',
        '"verdict": "yes"',
        '"id": 1',
    ),
    *('"supporting_chunks": [', '"reason": "', "}]}", '{"', "null", "1e999", "\\ud800"),
]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_input_that_was_found_breaks_it(tmp_path):
    pytest.importorskip("atheris", reason="atheris is not installed: pip install atheris")
    corpus, words = tmp_path / "corpus", tmp_path / "words"
    corpus.mkdir()
    seeds = [json.dumps(REPLY), f"<think>{json.dumps(REPLY)}</think>```\n{json.dumps(REPLY)}"]
    for number, text in enumerate([*seeds, *INJECTIONS.values()]):
        # An integer is read from the end, a text's kind from its first byte.
        content = b"\x01" + text[:4000].encode("ascii", "replace") + b"\1\1\1\1\1"
        (corpus / str(number)).write_bytes(content)
    escaped = (word.replace("\\", "\\\\").replace('"', '\\"') for word in WORDS)
    words.write_text("".join(f'"{word}"\n' for word in escaped))
    done = subprocess.run(
        [
            *(sys.executable, str(SUPPORT / "fuzz_replies.py"), str(corpus), f"-dict={words}"),
            *("-runs=200000", "-max_total_time=120", "-seed=1", "-max_len=4096", "-timeout=20"),
            f"-artifact_prefix={tmp_path}/",
        ],
        capture_output=True, text=True, timeout=800, cwd=tmp_path,
    )  # fmt: skip
    print(done.stderr[-300:])
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Done" in done.stderr
