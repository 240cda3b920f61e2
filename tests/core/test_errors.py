from __future__ import annotations

import copy
import pickle

import pytest

from ctxeval import errors
from ctxeval.errors import CtxEvalError, MissingExtraError, near, short

ALL = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, Exception)
]


def make(error: type[CtxEvalError]) -> CtxEvalError:
    if error is MissingExtraError:
        return MissingExtraError("The report", "jinja2", "report")
    return error("what was wrong: what to do")


def drawn() -> dict[str, tuple[str, ...]]:
    """Read the tree at the top of errors.py: each error with its parents."""
    assert errors.__doc__ is not None
    parents: dict[str, tuple[str, ...]] = {}
    path: list[str] = []
    for line in errors.__doc__.splitlines():
        name = next((word for word in line.split() if word.endswith("Error")), "")
        if name not in vars(errors):
            continue
        depth = (line.index(name) - 4) // 4
        path[depth:] = [name]
        also = line.partition("(also a")[2].strip("n )")
        over = path[depth - 1] if depth else "Exception"
        parents[name] = (over, also) if also else (over,)
    return parents


def test_the_tree_is_as_drawn() -> None:
    assert drawn() == {
        error.__name__: tuple(base.__name__ for base in error.__bases__) for error in ALL
    }


@pytest.mark.parametrize("error", ALL)
def test_the_root_is_ours_and_no_runtime_error(error: type[CtxEvalError]) -> None:
    assert issubclass(error, CtxEvalError)
    assert not issubclass(error, RuntimeError)
    assert error.__doc__


@pytest.mark.parametrize("error", ALL)
def test_an_error_can_be_sent(error: type[CtxEvalError]) -> None:
    raised = make(error)
    for again in (pickle.loads(pickle.dumps(raised)), copy.copy(raised), copy.deepcopy(raised)):
        assert type(again) is error
        assert str(again) == str(raised)


def test_a_missing_extra_names_the_install_line() -> None:
    error = MissingExtraError("The report", "jinja2", "report")
    assert str(error) == (
        "The report needs jinja2, which is not installed: pip install 'ctxeval[report]'"
    )
    assert error.name == pickle.loads(pickle.dumps(error)).name == "jinja2"
    assert isinstance(error, ImportError)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        pytest.param("colour", "did you mean 'color'?", id="one is near"),
        pytest.param("COLOR", "did you mean 'color'?", id="whatever the case"),
        pytest.param("sizes", "did you mean 'size'?", id="another is near"),
        pytest.param("zzz", "it is one of color, size", id="none is near"),
        pytest.param(3, "it is one of color, size", id="no word"),
    ],
)
def test_near(word: object, said: str) -> None:
    assert near(word, ["size", "color"]) == said


def test_near_names_several() -> None:
    assert near("ab", ["abc", "abd"]) in (
        "did you mean 'abc' or 'abd'?",
        "did you mean 'abd' or 'abc'?",
    )


def test_short_cuts_what_is_long() -> None:
    assert short("a") == "'a'"
    assert short("a" * 58) == repr("a" * 58)
    assert short("a" * 59) == "'" + "a" * 58 + "…"
    assert len(short(list(range(1000)))) == 60


def test_near_of_nothing() -> None:
    assert near("a", []) == "there is none"
