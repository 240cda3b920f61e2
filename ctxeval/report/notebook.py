"""What a notebook shows of queries: HTML, and the same as text for whoever shows no HTML."""

from __future__ import annotations

from collections.abc import Sequence

from ctxeval.errors import MissingExtraError
from ctxeval.report import wording
from ctxeval.report.content import Score
from ctxeval.report.view import QueryView

QUERIES = 20
"""How many queries an output shows at most."""


def bundle(
    views: Sequence[QueryView],
    notes: Sequence[str] = (),
    scores: Sequence[Score] = (),
    width: int = 110,
) -> dict[str, str]:
    """Write queries in the forms that a notebook chooses from, by their MIME type.

    Args:
        views: The queries; of more than `QUERIES` the rest is counted.
        notes: What should be said besides, a line each.
        scores: The metrics over all queries, to be shown first.
        width: How many columns the text has.

    Returns:
        The text as "text/plain", and the HTML as "text/html" if jinja2 is installed.
    """
    lines = [wording.line(note, 500) for note in notes]
    try:
        from ctxeval.report.html import environment, render_queries

        head = ""
        if scores:
            table = environment().get_template("scores.html.j2")
            head = table.render(scores=scores, queries=len(views))
        head += environment().get_template("notes.html.j2").render(notes=lines)
        html = render_queries(views, queries=QUERIES, head=head)
    except MissingExtraError as error:
        return {"text/plain": _text(views, [*lines, str(error)], scores, width)}
    return {"text/plain": _text(views, lines, scores, width), "text/html": html}


def print_queries(
    views: Sequence[QueryView], notes: Sequence[str] = (), scores: Sequence[Score] = ()
) -> None:
    """Print the same in a terminal, in colours where it has any."""
    lines = [wording.line(note, 500) for note in notes]
    try:
        from rich.console import Console

        from ctxeval.report.terminal import show_scores
        from ctxeval.report.text import show_queries
    except ModuleNotFoundError as error:
        if error.name != "rich":
            raise
        print(_text(views, lines, (), 0))
        return
    if scores:
        show_scores(scores, Console())
    print(*lines, sep="\n", end="\n" if lines else "")
    show_queries(views, Console(), queries=QUERIES)


def _text(
    views: Sequence[QueryView], lines: Sequence[str], scores: Sequence[Score], width: int
) -> str:
    try:
        from ctxeval.report.text import as_text, queries_as_text
    except ModuleNotFoundError as error:
        if error.name != "rich":
            raise
        n = len(views)
        missing = MissingExtraError("the text of queries", "rich", "report")
        return "\n".join([*lines, f"{n} {'query' if n == 1 else 'queries'}", str(missing)])
    table = []
    if scores:
        from ctxeval.report.terminal import show_scores

        table = [as_text(lambda console: show_scores(scores, console), width)]
    return "\n".join([*table, *lines, queries_as_text(views, queries=QUERIES, width=width)]).strip()
