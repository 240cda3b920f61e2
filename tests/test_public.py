"""The public surface is what `ctxeval.__all__` lists: sorted, documented, cheap to import."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import ctxeval
from ctxeval import CtxEvalError, Metric
from ctxeval.judges.judge import Judge, ModelFreeJudge
from ctxeval.metrics import RankMetric, SpanMetric

NOT_AT_IMPORT = (
    "asyncio",
    "httpx",
    "httpx2",
    "langchain_core",
    "llama_index",
    "numpy",
    "openai",
    "opentelemetry",
    "pandas",
    "pyarrow",
    "rapidfuzz",
    "ray",
    "sqlalchemy",
)
LISTS = sorted(
    name
    for name in ("ctxeval", "ctxeval.export", "ctxeval.ragas", "ctxeval.testing")
    if hasattr(importlib.import_module(name), "__all__")
)


def run_python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def as_ruff_sorts(name: str) -> tuple[int, list[str | int]]:
    """RUF022: constants, then classes, then the rest, each with numbers by their value."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    parts: list[Any] = re.split(r"(\d+)", name)
    return kind, [int(part) if part.isdigit() else part for part in parts]


def public() -> dict[str, Any]:
    return {name: getattr(ctxeval, name) for name in ctxeval.__all__}


@pytest.mark.parametrize("name", ["ctxeval", "ctxeval_langchain", "ctxeval_llamaindex"])
def test_no_public_name_is_a_submodules(name):
    """The import system would put the module where the lazily loaded name should be."""
    package = pytest.importorskip(name)
    modules = {one.name for one in pkgutil.iter_modules(package.__path__)}
    assert not modules.intersection(package.__all__)


@pytest.mark.parametrize("module", LISTS)
def test_all_is_sorted_without_repeats_and_importable(module: str) -> None:
    imported = importlib.import_module(module)
    names = imported.__all__
    assert names == sorted(set(names), key=as_ruff_sorts)
    for name in names:
        assert getattr(imported, name) is not None
        assert not name.startswith("_")


def test_every_name_is_there_in_a_fresh_process() -> None:
    star = "from ctxeval import *; import json; print(json.dumps(sorted(set(dir()) - {'json'})))"
    found = {name for name in json.loads(run_python(star)) if not name.startswith("__")}
    assert found == set(ctxeval.__all__)
    listed = "import ctxeval, json; print(json.dumps(dir(ctxeval)))"
    assert set(ctxeval.__all__) <= set(json.loads(run_python(listed)))


def test_nothing_public_is_missing() -> None:
    public()  # loads what is loaded at first use
    there = {
        name
        for name, value in vars(ctxeval).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__.startswith("ctxeval")
    }
    assert {"Sample", "score"} <= there
    assert there - set(ctxeval.__all__) == set()


def subclasses(of: type) -> Iterator[type]:
    for one in of.__subclasses__():
        if one.__module__.startswith("ctxeval."):
            yield one
            yield from subclasses(one)


@pytest.mark.parametrize(
    ("root", "inner"),
    [
        pytest.param(CtxEvalError, set(), id="errors"),
        pytest.param(Metric, {RankMetric, SpanMetric}, id="metrics"),
        pytest.param(Judge, {ModelFreeJudge}, id="judges"),
    ],
)
def test_no_kind_is_missing(root: type, inner: set[type]) -> None:
    import_everything()
    kinds = {
        kind
        for kind in subclasses(root)
        if not kind.__name__.startswith("_") and kind.__module__ != "ctxeval.ragas"
    }
    assert kinds - inner <= set(public().values())
    assert inner <= kinds


def import_everything() -> None:
    for module in pkgutil.walk_packages(ctxeval.__path__, "ctxeval."):
        if module.name.split(".")[1] in ("errors", "judges", "metric", "metrics", "llm"):
            importlib.import_module(module.name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'ctxeval' has no attribute 'Faithfulness'"):
        _ = ctxeval.Faithfulness


def test_import_loads_no_framework_and_nothing_slow() -> None:
    code = "import ctxeval, sys, json; print(json.dumps(list(sys.modules)))"
    loaded = {name.partition(".")[0] for name in json.loads(run_python(code))}
    assert "pydantic" in loaded
    assert loaded.isdisjoint(NOT_AT_IMPORT)


def test_scoring_by_id_loads_no_framework_either() -> None:
    code = (
        "import ctxeval, sys, json\n"
        "ids = {'retrieved_context_ids': ['a'], 'reference_context_ids': ['a']}\n"
        "assert ctxeval.score(ids)['reciprocal_rank'].value == 1\n"
        "assert ctxeval.NDCG(10).score(ids).value == 1\n"
        "print(json.dumps(list(sys.modules)))"
    )
    loaded = {name.partition(".")[0] for name in json.loads(run_python(code))}
    assert loaded.isdisjoint(set(NOT_AT_IMPORT) - {"asyncio"})


def test_import_says_nothing_and_starts_no_thread() -> None:
    code = (
        "import logging, threading, warnings\n"
        "import ctxeval\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
        "assert logging.getLogger('ctxeval').handlers == []"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")


def members(of: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(of).items():
        function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        own = inspect.isfunction(function) or isinstance(value, property)
        module = getattr(function, "__module__", "") or getattr(
            getattr(value, "fget", None), "__module__", ""
        )
        if own and not name.startswith("_") and module.startswith("ctxeval"):
            yield f"{of.__name__}.{name}", value


def test_everything_public_is_documented() -> None:
    documented = {
        name: value
        for name, value in public().items()
        if inspect.isclass(value) or inspect.isfunction(value)
    }
    for value in list(documented.values()):
        if inspect.isclass(value):
            documented.update(members(value))
    without = [name for name, value in documented.items() if not own_docstring(value)]
    assert without == []
    assert "Metric.score" in documented
    assert "LLM.complete" in documented


def own_docstring(value: Any) -> str | None:
    """Give the docstring that it has itself, not one inherited or made by dataclass."""
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    made = inspect.isclass(value) and text is not None and text.startswith(f"{value.__name__}(")
    return None if made else text


def test_the_modules_are_documented() -> None:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "ctxeval":
            assert module.__doc__, name


def test_the_package_is_marked_as_typed() -> None:
    from importlib.resources import files

    assert files("ctxeval").joinpath("py.typed").is_file()
