"""The examples in docstrings hold."""

import doctest
import importlib
import pkgutil

import pytest

from ctxeval import MissingExtraError

PACKAGES = ("ctxeval", "ctxeval_langchain", "ctxeval_llamaindex", "ctxeval_ray")


def modules():
    for package in PACKAGES:
        path = importlib.util.find_spec(package).submodule_search_locations
        yield package
        for found in pkgutil.walk_packages(path, f"{package}."):
            yield found.name


@pytest.mark.parametrize("name", list(modules()))
def test_examples(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:  # a framework or an extra that is not installed
        if str(error.name).partition(".")[0] in PACKAGES:
            raise
        pytest.skip(f"{name} needs {error.name}")
    runner = doctest.DebugRunner(optionflags=doctest.ELLIPSIS)
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        try:
            runner.run(example)
        except doctest.UnexpectedException as raised:
            cause = raised.exc_info[1]
            if isinstance(cause, (MissingExtraError, ModuleNotFoundError)):
                pytest.skip(str(cause))  # a package that an example imports, or an extra
            raise cause from None


def test_there_are_examples():
    found = doctest.DocTestFinder().find(importlib.import_module("ctxeval.formulas.precision"))
    assert sum(len(example.examples) for example in found) >= 3
