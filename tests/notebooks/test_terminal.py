"""`%ctxeval` in a plain IPython: text instead of HTML."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from notebook_cells import CHAIN, JUDGE

for needed in ("IPython", "langchain_core", "rich", "scipy"):
    pytest.importorskip(needed)


def ipython(*cells, tmp_path):
    """Type cells into an IPython."""
    (tmp_path / "first.py").write_text(CHAIN + JUDGE)
    options = ["--simple-prompt", "--no-banner", "--colors=nocolor", "--no-confirm-exit"]
    done = subprocess.run(
        [sys.executable, "-m", "IPython", *options, "-i", str(tmp_path / "first.py")],
        input="\n".join([*cells, "exit", ""]),
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "IPYTHONDIR": str(tmp_path), "COLUMNS": "100"},
    )
    return done.stdout, done.stderr


def test_it_shows_text_and_no_html(tmp_path):
    said, wrong = ipython(
        "%load_ext ctxeval",
        "t = %ctxeval on --references references --model judge",
        "chain.invoke('Can I send it back?');",
        "%ctxeval report",
        "%ctxeval onn",
        "%ctxeval off",
        "t",
        tmp_path=tmp_path,
    )
    cell, report, off, whole = (
        part for part in said.split("In [")[3:] if "ctxeval" in part or "answer" in part
    )
    for text in (cell, report, whole):
        assert "answer: We ship within two days." in text
        assert "not relevant by id" in text
        assert "faq-9" in text
        assert "<" not in text
        assert max(map(len, text.splitlines())) <= 100
    assert "is being judged" in cell
    assert "%ctxeval report shows them" in cell
    assert "context_recall" in report
    assert "is being judged" not in report
    assert "1 query" in off
    assert wrong.strip() == "UsageError: %ctxeval onn: unknown: did you mean 'on'?"
