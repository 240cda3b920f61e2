"""Did it get better or worse? Always by pairs of the same sample."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

from ctxeval.errors import InvalidArgumentError, short
from ctxeval.evaluation.evaluation import Evaluation
from ctxeval.evaluation.statistics import Difference, holm, paired_difference


class Change(NamedTuple):
    """What became of one metric.

    Attributes:
        metric: Its name.
        baseline: Its mean over the pairs, before.
        candidate: Its mean over the pairs, now.
        difference: Candidate minus baseline, with interval and p; None without pairs.
        p_adjusted: The p-value, adjusted for the number of metrics by Holm's method.
        pairs: How many samples have a value in both.
        dropped: How many have not.
        note: What makes the comparison doubtful or keeps from it; "" where nothing does.
    """

    metric: str
    baseline: float | None
    candidate: float | None
    difference: Difference | None
    p_adjusted: float | None
    pairs: int
    dropped: int
    note: str = ""

    @property
    def p_shown(self) -> str:
        """The adjusted p-value as it is written, never as 0."""
        if self.p_adjusted is None:
            return "–"
        return f"{self.p_adjusted:.3f}" if self.p_adjusted >= 0.001 else "<0.001"

    @property
    def verdict(self) -> str:
        """Say "better", "worse" or "no significant change", at the 5 % level."""
        if self.difference is None or self.p_adjusted is None or self.p_adjusted >= 0.05:
            return "no significant change"
        return "better" if self.difference.interval.mean > 0 else "worse"

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, for JSON."""
        found = self.difference
        difference = found and {**found._asdict(), "interval": found.interval._asdict()}
        return {**self._asdict(), "verdict": self.verdict, "difference": difference}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of each metric.

    Attributes:
        changes: One per metric that both evaluations have.
    """

    changes: tuple[Change, ...]

    def __getitem__(self, metric: str) -> Change:
        """Give the change of a metric."""
        for change in self.changes:
            if change.metric == metric:
                return change
        raise KeyError(metric)

    def __str__(self) -> str:
        """Write a table for a terminal."""
        lines = [f"{'metric':42} {'before':>7} {'now':>7} {'change':>8} {'p':>6}  pairs"]
        for one in self.changes:
            if one.difference is None or one.p_adjusted is None:
                lines.append(f"{one.metric:42} {one.note}")
                continue
            mean = one.difference.interval.mean
            lines.append(
                f"{one.metric:42} {one.baseline:7.3f} {one.candidate:7.3f} {mean:+8.3f} "
                f"{one.p_shown:>6}  {one.pairs} ({one.dropped} dropped)  {one.verdict}"
                + (f"  [{one.note}]" if one.note else "")
            )
        return "\n".join(lines)


def compare(
    baseline: Evaluation | str | PathLike[str],
    candidate: Evaluation | str | PathLike[str],
    metrics: Iterable[str] | None = None,
) -> Comparison:
    """Compare two evaluations by the samples that both have, paired by id.

    Args:
        baseline: What it was: an evaluation, or the file that it was saved to.
        candidate: What it is, likewise.
        metrics: The metrics to compare; None: all that both have.

    Raises:
        InvalidArgumentError: They share no metric, or a sample's id stands in one twice.
        MissingExtraError: scipy is not installed.
    """
    baseline, candidate = Evaluation.of(baseline), Evaluation.of(candidate)
    shared = [name for name in candidate.metrics if name in baseline.metrics]
    wanted = shared if metrics is None else [metrics] if isinstance(metrics, str) else list(metrics)
    if not wanted:
        raise InvalidArgumentError(
            f"the two share no metric: {', '.join(baseline.metrics) or 'none'} here, "
            f"{', '.join(candidate.metrics) or 'none'} there"
        )
    found = []
    for metric in wanted:
        pairs, dropped = _pairs(baseline, candidate, metric)
        difference = paired_difference([b - a for a, b in pairs]) if pairs else None
        found.append((metric, pairs, dropped, difference))
    tested = [difference.p for *_, difference in found if difference is not None]
    adjusted = iter(holm(tested))
    before = {one.metric: one.signature for one in baseline.summary()}
    after = {one.metric: one.signature for one in candidate.summary()}
    changes = []
    for metric, pairs, dropped, difference in found:
        n = len(pairs)
        changes.append(
            Change(
                metric,
                sum(a for a, _ in pairs) / n if n else None,
                sum(b for _, b in pairs) / n if n else None,
                difference,
                None if difference is None else next(adjusted),
                n,
                dropped,
                _note(baseline, candidate, pairs, before[metric] != after[metric]),
            )
        )
    return Comparison(tuple(changes))


def _pairs(
    baseline: Evaluation, candidate: Evaluation, metric: str
) -> tuple[list[tuple[float, float]], int]:
    """Pair the values by the samples' ids, and count the samples without a pair of values."""
    before, after = baseline.values(metric), candidate.values(metric)
    pairs = [(value, after[name]) for name, value in before.items() if name in after]
    return pairs, len(set(baseline.ids) | set(candidate.ids)) - len(pairs)


def _note(baseline: Evaluation, candidate: Evaluation, pairs: Sized, differs: bool) -> str:
    if pairs:
        return "judged in different ways" if differs else ""
    if not baseline.ids or not candidate.ids or set(baseline.ids) & set(candidate.ids):
        return "no sample has a value in both"
    return f"no id is in both: {short(baseline.ids[0])} before, {short(candidate.ids[0])} now"
