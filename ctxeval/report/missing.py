"""Queries that lack a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from ctxeval.report.reasons import UNASKED, kind_of
from ctxeval.report.shown import Shown
from ctxeval.report.view import MetricView, QueryView
from ctxeval.report.wording import line

OPENED = {"failed": 100, "undefined": 50, "skipped": 50}
"""So many queries are opened of each status, what matters most first; for reasons of one kind at
most half as many."""

NAMED = 1000
"""So many more are named of each status."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The queries that lack a value of any metric.

    Attributes:
        opened: Those that can be opened, those that failed first.
        named: Others, which are only named: of the query there is no more than its id and question.
        left: How many more there are, which are only counted.
    """

    opened: tuple[Shown, ...] = ()
    named: tuple[Shown, ...] = ()
    left: int = 0


class MissingCollector:
    """Takes views, and keeps what they lack.

    Args:
        metrics: The names of the metrics that a query may have a value of.
    """

    def __init__(self, metrics: Sequence[str] = ()) -> None:
        """See the class."""
        self._metrics = metrics
        self._of_kind: Counter[tuple[str, str]] = Counter()
        self._opened: dict[str, list[Shown]] = {status: [] for status in OPENED}
        self._named: dict[str, list[Shown]] = {status: [] for status in OPENED}

    def add(self, view: QueryView) -> None:
        """Take one more view."""
        lacking = [metric for metric in view.metrics if metric.value is None]
        known = {metric.name for metric in view.metrics}
        unasked = [name for name in self._metrics if name not in known]
        lacking += [MetricView(name, None, "skipped", UNASKED) for name in unasked]
        if lacking:
            order = list(OPENED)
            lacking.sort(key=lambda metric: order.index(metric.status))
            self._add_query(view, tuple(lacking))

    def _add_query(self, view: QueryView, lacking: tuple[MetricView, ...]) -> None:
        kind = status, _ = lacking[0].status, kind_of(lacking[0].reason)
        opened, named = self._opened[status], self._named[status]
        most = OPENED[status]
        if len(opened) < most and self._of_kind[kind] < most // 2:
            self._of_kind[kind] += 1
            opened.append(Shown(view, lacking=lacking))
        elif len(named) < NAMED:
            brief = QueryView(view.id, line(view.question, 200), None, view.status)
            named.append(Shown(brief, lacking=lacking))

    def summed(self, lacking: int) -> Missing:
        """Give the queries.

        Args:
            lacking: How many lack a value, those that were not taken included.
        """
        opened, named = (
            tuple(chain.from_iterable(of_each.values())) for of_each in (self._opened, self._named)
        )
        return Missing(opened, named, lacking - len(opened) - len(named))
