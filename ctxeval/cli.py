"""The command line: `ctxeval --help`."""

from __future__ import annotations

import io
import sys


def main() -> None:
    """Run the command line.

    Exits with 1 and one line on standard error where something was wrong.
    """
    try:
        from ctxeval.commands import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"the command line needs {error.name}: pip install 'ctxeval[cli]'")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal may know fewer letters than texts have: "?" is better than a traceback.
            stream.reconfigure(errors="replace")
    app()


if __name__ == "__main__":
    main()
