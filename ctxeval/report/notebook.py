"""What a notebook shows of queries: HTML, and the same as text for whoever shows no HTML."""

from __future__ import annotations

from collections.abc import Sequence

from ctxeval.errors import MissingExtraError
from ctxeval.report import wording
from ctxeval.report.view import QueryView


def bundle(
    views: Sequence[QueryView], notes: Sequence[str] = (), width: int = 110
) -> dict[str, str]:
    """Write queries in the forms that a notebook chooses from, by their MIME type.

    Args:
        views: The queries; of more than 20 the rest is counted.
        notes: What should be said besides, a line each.
        width: How many columns the text has.

    Returns:
        The text as "text/plain", and the HTML as "text/html" if jinja2 is installed.
    """
    lines = [wording.line(note, 500) for note in notes]
    try:
        from ctxeval.report.html import environment, render_queries

        html = environment().get_template("notes.html.j2").render(notes=lines)
        html += render_queries(views) if views else ""
    except MissingExtraError as error:
        return {"text/plain": _text(views, [*lines, str(error)], width)}
    return {"text/plain": _text(views, lines, width), "text/html": html}


def print_queries(views: Sequence[QueryView], notes: Sequence[str] = ()) -> None:
    """Print queries in a terminal, in colours where it has any; the text of `bundle` otherwise."""
    lines = [wording.line(note, 500) for note in notes]
    try:
        from rich.console import Console

        from ctxeval.report.text import show_queries
    except ModuleNotFoundError as error:
        if error.name != "rich":
            raise
        print(_text(views, lines, 0))
        return
    print(*lines, sep="\n", end="\n" if lines else "")
    show_queries(views, Console())


def _text(views: Sequence[QueryView], lines: Sequence[str], width: int) -> str:
    try:
        from ctxeval.report.text import queries_as_text
    except ModuleNotFoundError as error:
        if error.name != "rich":
            raise
        n = len(views)
        missing = MissingExtraError("the text of queries", "rich", "report")
        return "\n".join([*lines, f"{n} {'query' if n == 1 else 'queries'}", str(missing)])
    return "\n".join([*lines, queries_as_text(views, width=width)]).strip()
