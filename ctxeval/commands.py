"""The commands of the command line."""

from __future__ import annotations

import json
import sys
from typing import Annotated, NoReturn

import typer
from rich.console import Console

import ctxeval
from ctxeval.errors import CtxEvalError

app = typer.Typer(
    name="ctxeval",
    help="Measure how good the retrieval of a RAG application is, query by query, and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ctxeval {ctxeval.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure how good the retrieval of a RAG application is, query by query, and why."""


@app.command()
def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
) -> None:
    """Evaluate a BM25 retriever over Python's own language reference.

    No key, no network. Example: ctxeval demo
    """
    try:
        from ctxeval.demo.run import run_demo
        from ctxeval.demo.show import show, to_data

        found = run_demo()
        if as_json:
            print(json.dumps(to_data(found), indent=2))
        else:
            show(found, Console())
    except CtxEvalError as error:
        _stop(error)


def _stop(error: CtxEvalError) -> NoReturn:
    print(f"ctxeval: {error}", file=sys.stderr)
    raise typer.Exit(1)
