"""Why values are missing: reasons of the same kind, and metrics with the same, together."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ctxeval.report.wording import line

_OWN = re.compile(r"\d+|(?<!\w)(['\"]).*\1(?!\w)", re.DOTALL)
"""What reasons of the same kind have of their own: numbers, and what is quoted."""

UNASKED = "the query lacks the fields, so the metric was not asked"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why results have no value.

    Attributes:
        metrics: The metrics' names.
        status: "undefined", "failed" or "skipped".
        reason: Why.
        queries: In how many queries, of each of the metrics.
    """

    metrics: tuple[str, ...]
    status: str
    reason: str
    queries: int


def kind_of(reason: str) -> str:
    """Give what a reason shares with others of its kind."""
    return _OWN.sub("", reason)


def gathered(
    told: Mapping[tuple[str, str, str], int], skipped: Mapping[str, int]
) -> tuple[Reason, ...]:
    """Give the reasons, the most frequent first.

    Args:
        told: In how many queries there is no value, by metric, status and reason.
        skipped: How many queries each metric skipped, those that it was not asked included.
    """
    counts = Counter(told)
    for metric, queries in skipped.items():
        known = (n for key, n in told.items() if key[:2] == (metric, "skipped"))
        counts[metric, "skipped", UNASKED] = queries - sum(known)
    kinds: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for (metric, status, reason), queries in counts.items():
        if queries > 0:
            kinds[metric, status, kind_of(reason)][reason] += queries
    alike: dict[tuple[int, str, str], list[str]] = {}
    for (metric, status, _), of_kind in kinds.items():
        ((reason, _),) = of_kind.most_common(1)
        if len(of_kind) > 1:
            reason = f"{line(reason, 250)} (and {len(of_kind) - 1:,} like it)"
        alike.setdefault((of_kind.total(), status, reason), []).append(metric)
    return tuple(
        Reason(tuple(metrics), status, reason, queries)
        for (queries, status, reason), metrics in sorted(
            alike.items(), key=lambda entry: (-entry[0][0], entry[0])
        )
    )
