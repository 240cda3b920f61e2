"""Every Python block of the documents runs as it stands, and prints what stands below it."""

import contextlib
import io
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ctxeval import MissingExtraError

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(
    r"(?P<mark><!--[^\n]*-->\n)?```python\n(?P<code>.*?)```(?:\n\n```text\n(?P<output>.*?)```)?",
    re.DOTALL,
)
FRAMEWORKS = ("langchain_core", "llama_index", "pyarrow")
ENGINES = ("ray", "pyspark", "daft")
"""Each runs in a process of its own, with whatever it starts."""


def blocks():
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for number, block in enumerate(BLOCK.finditer(path.read_text()), start=1):
            yield pytest.param(block, id=f"{path.name}-{number}")


@pytest.mark.parametrize("block", list(blocks()))
def test_a_block_runs_and_prints_what_stands_below_it(block):
    code = block["code"]
    if block["mark"] and "needs a key" in block["mark"]:
        compile(code, "block", "exec")
        return
    imported = [
        name
        for name in (*FRAMEWORKS, *ENGINES)
        if re.search(rf"^(from|import) {name}\b", code, re.MULTILINE)
    ]
    for name in imported:
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    if set(imported) & set(ENGINES):
        quiet = {"RAY_USAGE_STATS_ENABLED": "0", "DO_NOT_TRACK": "1", "DAFT_ANALYTICS_ENABLED": "0"}
        run = [sys.executable, "-c", code]
        done = subprocess.run(run, capture_output=True, text=True, env={**os.environ, **quiet})
        assert done.returncode == 0, done.stderr
        assert done.stdout == (block["output"] or "")
        return
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "block", "exec"), {"__name__": "__main__"})
    except MissingExtraError as error:
        pytest.skip(str(error))
    assert printed.getvalue() == (block["output"] or "")


def test_the_readme_has_blocks_with_output():
    found = [block for block in BLOCK.finditer((ROOT / "README.md").read_text()) if block["output"]]
    assert len(found) >= 4


def test_links_lead_somewhere():
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+?\.md)\)", path.read_text()):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_the_two_commands_stand_in_the_readme():
    commands = re.findall(r"```sh\n(.*?)\n```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert [command for command in commands if command.endswith("ctxeval demo")]
    assert [command for command in commands if command.endswith("pytest -q")]
