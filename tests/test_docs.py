"""Every Python block of the documents runs as it stands, and prints what stands below it."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from ctxeval import MissingExtraError

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(
    r"(?P<mark><!--[^\n]*-->\n)?```python\n(?P<code>.*?)```(?:\n\n```text\n(?P<output>.*?)```)?",
    re.DOTALL,
)
FRAMEWORKS = ("langchain_core", "llama_index")


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
    for framework in FRAMEWORKS:
        if re.search(rf"^(from|import) {framework}", code, re.MULTILINE):
            pytest.importorskip(framework)
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
