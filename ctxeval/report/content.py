"""What a report says, as plain data: HTML and terminal show the same."""

from __future__ import annotations

from dataclasses import dataclass

from ctxeval.report.view import QueryView
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
class FunnelStage:
    """One stage of all queries that have it.

    Attributes:
        kind: "retrieve", "rerank" or "prompt".
        name: The retriever's name.
        queries: How many queries have the stage.
        failed: In how many it failed.
        chunks: How many chunks it gave, over all queries.
        relevant: How many of these are relevant, repeats aside.
        unjudged: Of how many no verdict is known.
        judged: In how many queries anything was judged.
        empty: In how many it gave nothing, without failing.
        lost: How many relevant chunks it was given and did not pass on; None where it was
            given none.
        covered: How many units of what was expected its chunks cover.
        expected: How many units were expected of it.
        unknown: Of how many of these it is not known whether its chunks cover them.
        hits: In how many queries it holds a relevant chunk.
        seconds: How long it took, in the median; None where that is not known.
    """

    kind: str
    name: str
    queries: int
    failed: int
    chunks: int
    relevant: int
    unjudged: int
    judged: int
    empty: int
    lost: int | None
    covered: int
    expected: int
    unknown: int
    hits: int
    seconds: float | None

    @property
    def known(self) -> int:
        """Of how many expected units it is known whether they were found."""
        return self.expected - self.unknown

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the numbers leave out, a few words each."""
        queries = "query" if self.empty == 1 else "queries"
        chunks = "chunk" if self.unjudged == 1 else "chunks"
        told = (
            (self.failed, f"failed in {self.failed:,}"),
            (self.empty, f"gave nothing in {self.empty:,} {queries}"),
            (self.unjudged, f"{self.unjudged:,} {chunks} not judged"),
            (self.unknown, f"{self.unknown:,} of what was expected not judged"),
        )
        return tuple(words for n, words in told if n)


@dataclass(frozen=True, slots=True)
class Funnel:
    """Where relevant chunks get lost.

    Attributes:
        judge: Who says which chunks are relevant.
        stages: The stages that most queries have, first one first.
        left: How many stages there are besides.
    """

    judge: str
    stages: tuple[FunnelStage, ...]
    left: int = 0


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank of what the queries retrieved in the end.

    Attributes:
        rank: From 1.
        chunks: How many queries have a chunk there.
        relevant: Per judge, how many of these chunks are relevant and how many were judged.
        score: What the retriever gave them, in the mean; None where that is not known.
    """

    rank: int
    chunks: int
    relevant: tuple[tuple[int, int], ...]
    score: float | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """How relevant the chunks are, rank by rank.

    Attributes:
        judges: Who says so.
        ranks: The ranks, best first.
        left: How many chunks stand behind them.
    """

    judges: tuple[str, ...]
    ranks: tuple[Rank, ...]
    left: int = 0


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


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far a judge that was asked repeatedly agrees with itself.

    Attributes:
        judge: The judge.
        what: "chunks" or "claims".
        verdicts: How many verdicts were voted on.
        votes: How many votes were cast.
        unread: How many of these could not be read.
        unanimous: On how many all readable votes agree.
        agreement: The share of pairs of votes that agree, in the mean; None without pairs.
        kappa: Fleiss' kappa: the same, beyond chance; None where chance alone would agree.
    """

    judge: str
    what: str
    verdicts: int
    votes: int
    unread: int
    unanimous: int
    agreement: float | None
    kappa: float | None


@dataclass(frozen=True, slots=True)
class Shown:
    """One query that the report opens.

    Attributes:
        view: The query.
        values: The metrics by which it stands out: name, value, and the baseline's value.
        before: The query in the baseline, where it is compared with it.
    """

    view: QueryView
    values: tuple[tuple[str, float, float | None], ...]
    before: QueryView | None = None


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
    agreements: tuple[Agreement, ...]
    usage: Usage
    usage_before: Usage | None
    odd: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
