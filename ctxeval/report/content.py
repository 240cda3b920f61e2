"""What a report says, as plain data: HTML and terminal show the same."""

from __future__ import annotations

from dataclasses import dataclass

from ctxeval.report.agreement import Agreement
from ctxeval.report.funnel import Funnel
from ctxeval.report.missing import Missing
from ctxeval.report.ranking import Ranking
from ctxeval.report.reasons import Reason
from ctxeval.report.shown import Shown
from ctxeval.verdicts import Usage

BINS = ("0", *(f"0.{n}–0.{n + 1}" for n in range(9)), "0.9–1", "1")
"""What the bars of a distribution stand for: exactly 0, exactly 1, and tenths in between."""


def histogram(values: list[float]) -> tuple[int, ...]:
    """Count values by `BINS`.

    Args:
        values: Scores in [0, 1].

    Examples:
        >>> histogram([0.0, 0.05, 0.95, 1.0, 1.0])
        (1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2)
    """
    counts = [0] * len(BINS)
    for value in values:
        inner = 1 + min(9, int(value * 10))
        counts[0 if value == 0 else len(BINS) - 1 if value == 1 else inner] += 1
    return tuple(counts)


def coverage(scored: int, failed: int, skipped: int) -> float:
    """Give the share of those that could have a value which have one, in [0, 1]."""
    possible = scored + failed + skipped
    return scored / possible if possible else 0.0


@dataclass(frozen=True, slots=True)
class Trust:
    """What people's labels say of the judge behind a metric.

    Attributes:
        mean: The mean, corrected for the judge's errors; None where it can't be.
        low: The lower end of its 95 % interval; None where it can't be estimated.
        high: Its upper end; likewise.
        labels: How many labels it rests on.
        told: What else there is to say, a sentence each.
        doubts: What speaks against the judge, likewise.
    """

    mean: float | None
    low: float | None
    high: float | None
    labels: int
    told: tuple[str, ...]
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """What one metric says of all queries.

    Attributes:
        metric: Its name.
        mean: The mean of the scored values; None where none was scored.
        low: The lower end of the mean's 95 % interval; None where it can't be estimated.
        high: Its upper end; likewise.
        method: How the interval was found.
        scored: How many queries have a value.
        undefined: Of how many nothing was expected.
        failed: How many could not be judged.
        skipped: How many lack a field.
        bounds: The mean if what failed had its least, and its greatest possible value.
        signature: What decided the values besides the samples.
        counts: The distribution, by `BINS`.
        before: That of the baseline; None where there is none.
        flips: On which share of the verdicts the repeats disagreed; None where none was
            repeated.
        trust: What people's labels say of the judge; None where it was not calibrated.
    """

    metric: str
    mean: float | None
    low: float | None
    high: float | None
    method: str
    scored: int
    undefined: int
    failed: int
    skipped: int
    bounds: tuple[float, float] | None
    signature: str
    counts: tuple[int, ...]
    before: tuple[int, ...] | None = None
    flips: float | None = None
    trust: Trust | None = None

    @property
    def coverage(self) -> float:
        """The share of the queries that could have a value which have one."""
        return coverage(self.scored, self.failed, self.skipped)


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one metric, by pairs of the same query.

    Attributes:
        metric: Its name.
        before: Its mean over the pairs in the baseline; None without pairs.
        now: Its mean over the pairs now; likewise.
        change: The mean difference; likewise.
        low: The lower end of the difference's 95 % interval; None where it can't be estimated.
        high: Its upper end; likewise.
        method: How the interval was found.
        p: The p-value, adjusted for the number of metrics, as it is written.
        better: How many queries got a greater value.
        worse: How many got a smaller one.
        pairs: How many have a value in both.
        dropped: How many have not.
        detectable: Which difference so many pairs would show; None where none differ.
        verdict: "better", "worse" or "no significant change".
        note: What makes the comparison doubtful; "" where nothing does.
    """

    metric: str
    before: float | None
    now: float | None
    change: float | None
    low: float | None
    high: float | None
    method: str
    p: str
    better: int
    worse: int
    pairs: int
    dropped: int
    detectable: float | None
    verdict: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What a report says.

    Attributes:
        name: The run's name; "" where it has none.
        baseline: The baseline's name; None where there is none.
        queries: How many queries there are.
        queries_before: How many the baseline has.
        scores: One per metric.
        changes: One per metric that both have.
        funnel: The stages; None where nothing was judged.
        ranking: The ranks; None where no chunk was judged, or none was retrieved in the end.
        worst: The queries with the lowest values.
        fallen: The queries that lost most against the baseline.
        reasons: Why values are missing, the most frequent first.
        missing: The queries that lack one.
        agreements: How far judges agree with themselves, where they were asked repeatedly.
        usage: What the judging cost.
        usage_before: What the baseline's cost.
        odd: What is odd about a model's verdicts, a sentence each.
        notes: What the report leaves out, a sentence each.
    """

    name: str
    baseline: str | None
    queries: int
    queries_before: int
    scores: tuple[Score, ...]
    changes: tuple[Change, ...]
    funnel: Funnel | None
    ranking: Ranking | None
    worst: tuple[Shown, ...]
    fallen: tuple[Shown, ...]
    reasons: tuple[Reason, ...]
    missing: Missing
    agreements: tuple[Agreement, ...]
    usage: Usage
    usage_before: Usage | None
    odd: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
