"""What all commands share: errors as one line, output for people and for machines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console

from ctxeval.errors import CtxEvalError, with_options

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


@contextmanager
def errors() -> Iterator[None]:
    """Turn our errors into one line and exit code 2."""
    try:
        yield
    except CtxEvalError as error:
        print(f"ctxeval: {with_options(str(error))}", file=sys.stderr)
        raise typer.Exit(2) from None


def console() -> Console:
    """Give what prints for people."""
    # Piped output is for reading elsewhere: it is not cut to a terminal's width.
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160)


def print_json(data: Any) -> None:
    """Print for machines."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair, or a terminal of few letters
        text = json.dumps(data, indent=2)
    print(text)
