"""What stands behind `%ctxeval`: a line is read, and a recorder is made of it."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from ctxeval.capture.recorder import Recorder
from ctxeval.errors import CtxEvalError, InvalidArgumentError, near, short, with_options

if TYPE_CHECKING:
    from ctxeval.llm.protocol import LLM

USAGE = """\
%ctxeval on [--metrics NAME …] [--references FILE] [--model NAME] [--base-url URL]
    From now on, each cell that retrieves shows what it found and how good that was.
    FILE, and the NAME of the model, may also be variables that hold references or a model.
    t = %ctxeval on … keeps what is captured: t.records, t.to_pandas()
%ctxeval report [FILE.html]
    Shows all of it, once every score is there, or writes it to a file.
%ctxeval off
    Captures nothing more."""

MAX_PENDING = 10_000
"""How many queries wait at most: a loop over a test set may be quicker than its scores."""

_COMMANDS = ("on", "off", "report", "help")


class _Parser(argparse.ArgumentParser):
    """Reads options, and raises what the others raise where they are wrong."""

    def error(self, message: str) -> NoReturn:
        raise InvalidArgumentError(f"{self.prog}: {message}: %ctxeval help shows the options")


def parsed(line: str) -> argparse.Namespace:
    """Read the line of a magic.

    Args:
        line: What stands behind `%ctxeval`.

    Returns:
        The `command` and its options.

    Raises:
        InvalidArgumentError: It can't be read; the message says what is wrong in one line.
    """
    try:
        words = shlex.split(line, posix=os.name == "posix")
    except ValueError as error:
        raise InvalidArgumentError(f"%ctxeval: {short(line)}: {error}") from None
    command, *rest = words or ["help"]
    if command not in _COMMANDS:
        raise InvalidArgumentError(f"%ctxeval {command}: unknown: {near(command, _COMMANDS)}")
    parser = _Parser(prog=f"%ctxeval {command}", add_help=False, allow_abbrev=False)
    parser.set_defaults(command=command)
    if command == "on":
        parser.add_argument("--metrics", nargs="+", action="extend", default=[])
        parser.add_argument("--references")
        parser.add_argument("--model")
        parser.add_argument("--base-url")
    elif command == "report":
        parser.add_argument("file", nargs="?")
    options = [option for action in parser._actions for option in action.option_strings]
    read, unknown = parser.parse_known_args(rest)
    if unknown:
        first = unknown[0]
        remedy = near(first.partition("=")[0], options) if options else "leave it out"
        raise InvalidArgumentError(f"%ctxeval {command}: {short(first)} is unknown: {remedy}")
    return read


def recorder_of(read: argparse.Namespace, variables: Mapping[str, Any]) -> Recorder:
    """Make the recorder that `%ctxeval on` asks for.

    Args:
        read: The options.
        variables: Those of the notebook, by name.

    Raises:
        CtxEvalError: A metric is unknown, a file can't be read, a model can't be had.
    """
    names = [name for word in read.metrics for name in word.split(",") if name]
    try:
        return Recorder(
            "auto" if names in ([], ["auto"]) else names,
            _variable(read.references, variables),
            _model(read.model, read.base_url, variables),
            max_pending=MAX_PENDING,
        )
    except CtxEvalError as error:
        raise CtxEvalError(with_options(str(error))) from None


def _variable(name: str | None, variables: Mapping[str, Any]) -> Any:
    return variables.get(name, name) if name is not None and name.isidentifier() else name


def _model(name: str | None, base_url: str | None, variables: Mapping[str, Any]) -> LLM | None:
    model = _variable(name, variables)
    if model is None:
        if base_url is not None:
            raise InvalidArgumentError("--base-url: no model is given: add --model NAME")
        return None
    if not isinstance(model, str):
        if not hasattr(model, "complete"):
            raise InvalidArgumentError(
                f"--model: the variable {name} holds {short(model)}, which is no model of ctxeval: "
                "wrap it by as_llm of ctxeval_langchain or ctxeval_llamaindex"
            )
        chosen: LLM = model
        return chosen
    from ctxeval.llm.factory import llm_factory

    return llm_factory(model, base_url=base_url)
