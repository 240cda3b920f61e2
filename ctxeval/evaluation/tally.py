"""What one metric says of many samples: counted row by row, summed up at the end."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxeval.evaluation.statistics import Interval, mean_interval
from ctxeval.metrics import ContextRecall
from ctxeval.report.content import coverage
from ctxeval.result import MetricResult
from ctxeval.verdicts import Verdicts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

STATUSES = ("scored", "undefined", "failed", "skipped")


class Summary(NamedTuple):
    """What one metric says of all samples.

    Attributes:
        metric: Its name.
        interval: The mean of the scored values with its interval; None where none was scored.
        scored: How many samples have a value.
        undefined: Of how many nothing was expected.
        failed: How many could not be judged.
        skipped: How many lack a field, also where "auto" therefore did not ask the metric.
        bounds: The mean if what failed had its least, and if it had its greatest possible
            value.
        signature: What decided the values besides the samples; several where they differ.
        flips: On which share of the verdicts that decide it the repeats disagreed;
            None where nothing was judged repeatedly. The interval includes what that does to
            the mean: the values scatter by it too.
    """

    metric: str
    interval: Interval | None
    scored: int
    undefined: int
    failed: int
    skipped: int
    bounds: tuple[float, float] | None
    signature: str
    flips: float | None = None

    @property
    def coverage(self) -> float:
        """The share of the samples that could have a value which have one."""
        return coverage(self.scored, self.failed, self.skipped)

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, for JSON."""
        interval = None if self.interval is None else self.interval._asdict()
        return {**self._asdict(), "interval": interval, "coverage": self.coverage}


@dataclass(slots=True)
class Tally:
    """One metric's results, compact.

    Attributes:
        rows: The numbers of the rows that have a result, in order.
        values: Their values, NaN for none.
        statuses: Their statuses, as indices into `STATUSES`.
        low: The sum of the least values that those which failed could have.
        high: The sum of the greatest.
        signatures: What decided the values besides the samples.
        repeated: How many verdicts were voted on.
        flipped: On how many of these the votes differ.
        lacking: The numbers of the rows whose result has no value, in order.
        why: Why each of these has none, as an index into `reasons`.
        reasons: Each status with its reason, and its index.
    """

    rows: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    statuses: bytearray = field(default_factory=bytearray)
    low: float = 0.0
    high: float = 0.0
    signatures: dict[str, None] = field(default_factory=dict)
    repeated: int = 0
    flipped: int = 0
    lacking: array[int] = field(default_factory=lambda: array("q"))
    why: array[int] = field(default_factory=lambda: array("i"))
    reasons: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, row: int, result: MetricResult) -> None:
        """Count a row's result."""
        self.add_told(row, result.value, STATUSES.index(result.status), result.reason)
        if result.status == "failed":
            low, high = result.bounds or (0.0, 1.0)
            self.low += low
            self.high += high
        self.signatures.setdefault(result.signature)
        verdicts = result.verdicts
        if type(verdicts) is Verdicts:  # others are worked out late, and never voted on
            # A judge's verdicts are shared: of these, a metric reads one kind.
            claims = result.metric == ContextRecall.name
            for verdict in verdicts.units if claims else verdicts.chunks:
                if verdict.votes:
                    self.repeated += 1
                    self.flipped += verdict.flipped

    def add_told(self, row: int, value: float | None, status: int, reason: str) -> None:
        """Count what is told of a row's result: its status as an index into `STATUSES`."""
        self.rows.append(row)
        self.values.append(float("nan") if value is None else value)
        self.statuses.append(status)
        if value is None:
            self.explain(row, STATUSES[status], reason)

    def explain(self, row: int, status: str, reason: str) -> None:
        """Say why a row that was counted has no value."""
        self.lacking.append(row)
        self.why.append(self.known_reason(status, reason))

    def add_column(
        self,
        first: int,
        values: npt.NDArray[np.float64],
        statuses: npt.NDArray[np.int8],
        counted: npt.NDArray[np.bool_],
    ) -> None:
        """Count the results of many rows, without the reasons of those that have no value.

        Args:
            first: The number of the first row.
            values: The values, whatever where there is none.
            statuses: Indices into `STATUSES`.
            counted: Which rows have a result.
        """
        import numpy as np  # here, so that `import ctxeval.evaluation` stays quick

        rows = np.flatnonzero(counted) + first
        values = np.where(statuses == STATUSES.index("scored"), values, np.nan)[counted]
        statuses = statuses[counted]
        self.rows.frombytes(rows.astype(np.int64).tobytes())
        self.values.frombytes(values.tobytes())
        self.statuses += statuses.tobytes()

    def known_reason(self, status: str, reason: str) -> int:
        """Give the index of a reason."""
        return self.reasons.setdefault((status, reason), len(self.reasons))

    def failures(self) -> dict[tuple[str, str], int]:
        """Count the results without a value, by status and reason."""
        counts = Counter(self.why)
        return {told: counts[index] for told, index in self.reasons.items() if counts[index]}

    def count(self, status: str) -> int:
        """Say how many results have a status."""
        return self.statuses.count(STATUSES.index(status))

    def results(self) -> Iterator[tuple[int, float | None, str]]:
        """Go through row, value and status of each result."""
        for row, value, status in zip(self.rows, self.values, self.statuses, strict=True):
            yield row, None if status else value, STATUSES[status]

    def scored(self) -> list[tuple[int, float]]:
        """Give row and value of what has one."""
        return [
            (row, value)
            for row, value, status in zip(self.rows, self.values, self.statuses, strict=True)
            if status == 0
        ]

    def of_places(self, places: Sequence[int]) -> Tally:
        """Give the results of some rows, which are numbered anew; none of these failed.

        Args:
            places: The numbers of the rows, in ascending order.
        """
        import numpy as np

        kept, there = _found(self.rows, places)
        made = Tally(signatures=dict(self.signatures), reasons=self.reasons)
        made.rows.frombytes(there.tobytes())
        made.values.frombytes(np.frombuffer(self.values)[kept].tobytes())
        made.statuses += np.frombuffer(self.statuses, np.int8)[kept].tobytes()
        kept, there = _found(self.lacking, places)
        made.lacking.frombytes(there.tobytes())
        made.why.frombytes(np.frombuffer(self.why, np.int32)[kept].tobytes())
        return made

    def summary(
        self, metric: str, size: int, names: Sequence[object] | None, confidence: float
    ) -> Summary:
        """Sum up.

        Args:
            metric: The metric's name.
            size: How many samples there are, those without a result of this metric included.
            names: What names each sample's cluster; None: each is one.
            confidence: How often such intervals should hold the true mean.
        """
        scored = self.scored()
        values = [value for _, value in scored]
        groups = None if names is None else [names[place] for place, _ in scored]
        undefined, failed = self.count("undefined"), self.count("failed")
        bounds = None
        if scored or failed:
            n = len(scored) + failed
            bounds = ((sum(values) + self.low) / n, (sum(values) + self.high) / n)
        return Summary(
            metric,
            mean_interval(values, confidence, clusters=groups) if values else None,
            len(scored),
            undefined,
            failed,
            size - len(scored) - undefined - failed,
            bounds,
            " | ".join(self.signatures),
            self.flipped / self.repeated if self.repeated else None,
        )


def _found(
    rows: array[int], places: Sequence[int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Find rows at places: give the indices of those that are there, and of their places."""
    import numpy as np

    numbers, wanted = np.frombuffer(rows, np.int64), np.asarray(places, np.int64)
    if not len(numbers):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    at = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    there = np.flatnonzero(numbers[at] == wanted)
    return at[there], there
