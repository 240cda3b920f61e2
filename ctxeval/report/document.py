"""The report as one HTML file: no script, no request, nothing outside of it."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime

from ctxeval.report import plots
from ctxeval.report.content import BINS, Report
from ctxeval.report.html import environment

CHUNKS = 10
CHARACTERS = 400
REASONS = 20
BYTES = 1_500_000
"""So much HTML may the opened queries of a section take."""


def render_report(report: Report, made: datetime | None = None) -> str:
    """Render a report.

    Args:
        report: What it says.
        made: When it was made; None: now.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    templates = environment()
    style = "".join(
        templates.get_template(name).render() for name in ("query.css.j2", "report.css.j2")
    )
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    ends = [abs(end) for one in report.changes for end in (one.low, one.high, one.change) if end]
    return templates.get_template("report.html.j2").render(
        report=report,
        style=style,
        digest=digest,
        made=(made or datetime.now()).strftime("%Y-%m-%d %H:%M"),
        most=max(ends, default=0.0) or 0.01,
        bins=BINS,
        plots=plots,
        chunks=CHUNKS,
        characters=CHARACTERS,
        most_reasons=REASONS,
        most_bytes=BYTES,
    )
