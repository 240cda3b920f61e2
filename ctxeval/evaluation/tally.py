"""What one metric says of many samples: counted row by row, summed up at the end."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
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
    """One metric's results, compact: by row, the value (NaN for none) and the status."""

    rows: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    statuses: bytearray = field(default_factory=bytearray)
    low: float = 0.0
    high: float = 0.0
    signatures: dict[str, None] = field(default_factory=dict)
    repeated: int = 0
    flipped: int = 0

    def add(self, row: int, result: MetricResult) -> None:
        """Count a row's result."""
        self.rows.append(row)
        self.values.append(float("nan") if result.value is None else result.value)
        self.statuses.append(STATUSES.index(result.status))
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

    def add_column(
        self,
        first: int,
        values: npt.NDArray[np.float64],
        statuses: npt.NDArray[np.int8],
        *,
        skipped: bool,
    ) -> None:
        """Count the results of many rows, of which none failed.

        Args:
            first: The number of the first row.
            values: The values, whatever where there is none.
            statuses: Indices into `STATUSES`.
            skipped: Count those that were skipped? Otherwise they have no result.
        """
        import numpy as np  # here, so that `import ctxeval.evaluation` stays quick

        rows = np.arange(first, first + len(values), dtype=np.int64)
        values = np.where(statuses == STATUSES.index("scored"), values, np.nan)
        if not skipped:
            kept = statuses != STATUSES.index("skipped")
            rows, values, statuses = rows[kept], values[kept], statuses[kept]
        self.rows.frombytes(rows.tobytes())
        self.values.frombytes(values.tobytes())
        self.statuses += statuses.tobytes()

    def count(self, status: str) -> int:
        """Say how many results have a status."""
        return self.statuses.count(STATUSES.index(status))

    def scored(self) -> list[tuple[int, float]]:
        """Give row and value of what has one."""
        return [
            (row, value)
            for row, value, status in zip(self.rows, self.values, self.statuses, strict=True)
            if status == 0
        ]

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
