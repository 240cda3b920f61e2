"""A query that a report opens, and why."""

from __future__ import annotations

from dataclasses import dataclass

from ctxeval.report.view import MetricView, QueryView


@dataclass(frozen=True, slots=True)
class Shown:
    """One query that the report opens.

    Attributes:
        view: The query.
        values: The metrics by which it stands out: name, value, and the baseline's value.
        before: The query in the baseline, where it is compared with it.
        lacking: The metrics that it has no value of, where it is shown for that, those that
            failed first.
    """

    view: QueryView
    values: tuple[tuple[str, float, float | None], ...] = ()
    before: QueryView | None = None
    lacking: tuple[MetricView, ...] = ()
