"""The commands that look after a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ctxeval.errors import StoreError
from ctxeval.import_by_name import imported
from ctxeval.terminal import AsJson, errors, print_json

if TYPE_CHECKING:
    from ctxeval.capture.sinks import Sink
    from ctxeval.store import Store

store_app = typer.Typer(help="Look after a store.", no_args_is_help=True)
StoreUrl = Annotated[str, typer.Argument(help="The store: a file or a URL.")]


def _there(url: str) -> Store:
    """Open a store that is there: looking at one must not make it."""
    from ctxeval.store import Store
    from ctxeval.store.place import find

    path = find(url).path
    if path is not None and not path.exists():
        raise StoreError(f"{path}: there is no store: give its file or URL")
    return Store.of(url)


@store_app.command("stats")
def store_stats(url: StoreUrl = "ctxeval.db", as_json: AsJson = False) -> None:
    """Say what a store holds. Example: ctxeval store stats ctxeval.db."""
    with errors():
        stats = _there(url).stats()
        if as_json:
            print_json(asdict(stats))
            return
        print(f"{stats.place}: {stats.size} bytes")
        for name, count in stats.tables.items():
            print(f"  {name}: {count.rows}")


@store_app.command("prune")
def store_prune(
    before: Annotated[datetime, typer.Argument(help="Everything older goes: 2026-01-31.")],
    url: StoreUrl = "ctxeval.db",
    as_json: AsJson = False,
) -> None:
    """Forget what is older than a day. Example: ctxeval store prune 2026-01-31."""
    with errors():
        removed = _there(url).prune(before.astimezone())
        if as_json:
            print_json(removed)
            return
        print(f"removed: {', '.join(f'{n} {name}' for name, n in removed.items())}")


@store_app.command("export")
def store_export(
    to: Annotated[Path, typer.Argument(help="The file: JSON, one object a line.")],
    url: StoreUrl = "ctxeval.db",
    as_json: AsJson = False,
) -> None:
    """Write everything to a file. Example: ctxeval store export all.jsonl."""
    with errors():
        lines = _there(url).export(to)
        print_json({"lines": lines}) if as_json else print(f"{lines} lines written to {to}")


@store_app.command("resend")
def store_resend(
    sinks: Annotated[str, typer.Argument(help="Your sinks, as MODULE:NAME: one, or a list.")],
    url: StoreUrl = "ctxeval.db",
    as_json: AsJson = False,
) -> None:
    """Send what sinks did not take; exit with 1 if they leave some again.

    Example: ctxeval store resend myapp.telemetry:sinks ctxeval.db
    """
    with errors():
        from ctxeval.capture.resending import resend

        store = _there(url)
        found = resend(store, _sinks(sinks))
        others = {name: n for name, n in store.count_unsent().items() if name not in found}
        if as_json:
            data = {name: one._asdict() for name, one in found.items()}
            print_json({"sinks": data, "others": others})
        else:
            for name, one in found.items():
                why = f": {one.error}" if one.error else ""
                print(f"{name}: {one.sent} sent, {one.left} left{why}")
            for name, n in others.items():
                print(f"{name}: {n} left, which is none of these sinks")
        if any(one.left for one in found.values()):
            raise typer.Exit(1)


def _sinks(given: str) -> Sequence[Sink]:
    """Import the sinks that the user's own code makes, from where the command was given too."""
    found = imported(given, "sinks", "myapp.telemetry:sinks")
    return found if isinstance(found, (list, tuple)) else [found]
