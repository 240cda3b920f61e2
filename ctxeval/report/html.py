"""Render views as HTML, by Jinja2: for the notebook and for the report.

Every chunk, question and answer is hostile text: it is made harmless by `clean` and escaped
by the templates, all of it. What is shown is words and numbers; styles only help to read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ctxeval.extras import load
from ctxeval.report import wording
from ctxeval.report.view import QueryView

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> Environment:
    """Give the environment of the templates: it escapes all text and knows no undefined name.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    jinja2: Any = load("jinja2", "HTML", "report")
    made: Environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ctxeval.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "clean": wording.clean,
        "line": wording.line,
        "split": wording.split,
        "number": wording.number,
        "change": wording.change,
        "percent": wording.percent,
        "count": wording.count,
        "range": wording.span,
        "spark": wording.spark,
        "missed": wording.missed,
        "title": wording.title,
        "visible": wording.visible,
        "holds": wording.holds,
        "given": wording.given,
        "evidence": wording.evidence,
        "lost": wording.lost,
        "chosen": wording.chosen,
        "seconds": wording.seconds,
        "relevance": wording.relevance,
        "coverage": wording.coverage,
        "remark": wording.remark,
        "grouped": wording.grouped,
    }
    return made


def render_queries(
    views: Sequence[QueryView],
    *,
    queries: int = 20,
    chunks: int = 10,
    characters: int = 600,
    size: int = 300_000,
    unfolded: int = 3,
    head: str = "",
    style: bool = True,
) -> str:
    """Render queries as a piece of HTML, to be put into a page or a notebook.

    Args:
        views: The queries.
        queries: How many are shown at most.
        chunks: How many chunks of a stage are shown, and as many relevant ones behind them.
        characters: How many characters of a text are shown at most.
        size: How many bytes of HTML may be made; queries that don't fit are counted.
        unfolded: How many queries stand open; the others are a line that opens.
        head: HTML to be put before the queries, as part of the piece.
        style: Put the style sheet in front?

    Returns:
        HTML that is readable without its style sheet; what is left out is counted in it.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    template = environment().get_template("queries.html.j2")
    sheet = environment().get_template("query.css.j2").render()
    parts = [f"<style>\n{sheet}</style>\n"] if style else []
    parts.append(head)
    room = size - sum(len(part.encode()) for part in parts) - 200
    shown = 0
    for view in views[:queries]:
        part = template.render(
            query=view,
            chunks=chunks,
            characters=characters,
            heading=0,  # a notebook would list headings in its table of contents
            unfolded=shown < unfolded,
            bars=True,
        )
        room -= len(part.encode())
        if room < 0 and (shown or len(part.encode()) > size):
            break
        parts.append(part)
        shown += 1
    left = len(views) - shown
    if left:
        parts.append(f"<p>{left} more {'query' if left == 1 else 'queries'}</p>\n")
    return f'<div class="ctxeval">\n{"".join(parts)}</div>\n'
