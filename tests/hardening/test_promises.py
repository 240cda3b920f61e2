"""Each promise names tests that there are, and each slow one says so."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
NAMED = re.findall(r"(slow(?:, as root)?: )?`(tests/[\w/]+\.py)::(\w+)`", PAGE)
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| (?!promise|---)", line)]


def functions(path):
    """Give the tests of a file by name, each with whether it is slow."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name: any("slow" in ast.unparse(one) for one in node.decorator_list)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def test_each_promise_has_a_test():
    assert len(ROWS) > 30
    for row in ROWS:
        assert row.count("|") == 3, row
        assert "`tests/" in row.split("|")[2], row


@pytest.mark.parametrize(("slow", "path", "name"), NAMED)
def test_a_named_test_is_there(slow, path, name):
    found = functions(path)
    assert name in found
    assert found[name] == bool(slow), "slow ones are called so"


def test_no_promise_is_held_by_words_that_name_nothing():
    assert PAGE.count("`tests/") == len(NAMED) + PAGE.count("`tests/support/injections.py`")


def test_security_names_the_page_and_no_address():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "](docs/promises.md)" in text
    assert not re.search(r"\S+@\S+\.\w+|https?://", text)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (ROOT / target).exists(), target


def test_contributing_names_the_command_for_slow_tests():
    assert "pytest -q -m slow" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
