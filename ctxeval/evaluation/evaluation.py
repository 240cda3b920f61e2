"""The result of many samples × many metrics."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ctxeval.errors import InvalidArgumentError, near
from ctxeval.evaluation.rows import Row, json_line, read_run, write_run
from ctxeval.evaluation.statistics import Interval, mean_interval
from ctxeval.extras import load
from ctxeval.result import MetricResult
from ctxeval.verdicts import Usage

_STATUSES = ("scored", "undefined", "failed", "skipped")


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
    """

    metric: str
    interval: Interval | None
    scored: int
    undefined: int
    failed: int
    skipped: int
    bounds: tuple[float, float] | None
    signature: str

    @property
    def coverage(self) -> float:
        """The share of the samples that could have a value which have one."""
        possible = self.scored + self.failed + self.skipped
        return self.scored / possible if possible else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, for JSON."""
        interval = None if self.interval is None else self.interval._asdict()
        return {**self._asdict(), "interval": interval, "coverage": self.coverage}


@dataclass(slots=True)
class _Column:
    """One metric's results, compact: by row, the value (NaN for none) and the status."""

    rows: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    statuses: bytearray = field(default_factory=bytearray)
    low: float = 0.0
    high: float = 0.0
    signatures: dict[str, None] = field(default_factory=dict)

    def add(self, row: int, result: MetricResult) -> None:
        self.rows.append(row)
        self.values.append(float("nan") if result.value is None else result.value)
        self.statuses.append(_STATUSES.index(result.status))
        if result.status == "failed":
            low, high = result.bounds or (0.0, 1.0)
            self.low += low
            self.high += high
        self.signatures.setdefault(result.signature)

    def count(self, status: str) -> int:
        return self.statuses.count(_STATUSES.index(status))

    def scored(self) -> list[tuple[int, float]]:
        """Give row and value of what has one."""
        return [
            (row, value)
            for row, value, status in zip(self.rows, self.values, self.statuses, strict=True)
            if status == 0
        ]


class Evaluation:
    """The results of many samples × many metrics.

    Made by `evaluate`, or read by `Evaluation.load`. Values and ids are kept in memory; the
    rows too, unless they went to a file.

    Args:
        rows: The rows.
        path: The file that holds them, where they are not to be kept in memory.
    """

    def __init__(self, rows: Iterable[Row] = (), path: Path | None = None) -> None:
        """See the class."""
        self.ids: list[str] = []
        self.usage = Usage()
        self._path = path
        self._kept: list[Row] = []
        self._columns: dict[str, _Column] = {}
        for row in rows:
            self._add(row)

    def _add(self, row: Row) -> None:
        place = len(self.ids)
        self.ids.append(row.id)
        usages: dict[int, Usage] = {}
        for name, result in row.results.items():
            self._columns.setdefault(name, _Column()).add(place, result)
            if result.usage is not None:  # metrics that share a judging share its usage
                usages[id(result.usage)] = result.usage
        for usage in usages.values():
            self.usage += usage
        if self._path is None:
            self._kept.append(row)

    def __len__(self) -> int:
        """Count the samples."""
        return len(self.ids)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics' names."""
        return tuple(self._columns)

    @property
    def readable(self) -> bool:
        """Can the rows be gone through? Not where only their values went to a table."""
        return self._path is None or self._path.suffix != ".parquet"

    @property
    def rows(self) -> Iterator[Row]:
        """Go through the rows, in the order of the samples."""
        return iter(self._kept) if self._path is None else read_run(self._path)

    @property
    def name(self) -> str:
        """The name of the file that holds the rows; "" where they are in memory."""
        return "" if self._path is None else self._path.stem

    def of_ids(self, ids: Iterable[str]) -> Iterator[Row]:
        """Go through the rows with these ids."""
        wanted = set(ids)
        if self._path is not None:
            return read_run(self._path, wanted)
        return (row for row in self._kept if row.id in wanted)

    def _column(self, metric: str) -> _Column:
        if metric not in self._columns:
            raise InvalidArgumentError(
                f"metric: {metric!r} was not scored: {near(metric, self._columns)}"
            )
        return self._columns[metric]

    def places(self, metric: str) -> list[tuple[int, float]]:
        """Give the scored values of a metric, each with the place of its row."""
        return self._column(metric).scored()

    def values(self, metric: str) -> dict[str, float]:
        """Give the scored values of a metric, by the sample's id.

        Raises:
            InvalidArgumentError: There is no such metric, or an id stands there twice.
        """
        values: dict[str, float] = {}
        for place, value in self._column(metric).scored():
            name = self.ids[place]
            if name in values:
                raise InvalidArgumentError(
                    f"two samples have the id {name!r}: give each an id of its own to compare them"
                )
            values[name] = value
        return values

    def summary(
        self,
        *,
        clusters: str | Callable[[Row], object] | None = None,
        confidence: float = 0.95,
    ) -> list[Summary]:
        """Say of each metric its mean with interval, and how many samples it rests on.

        Args:
            clusters: Where samples depend on each other (questions on one document): a
                key of their metadata, or a function of the row, that names the group. The
                interval is then that of whole groups.
            confidence: How often such intervals should hold the true mean.
        """
        names: list[object] | None = None
        if clusters is not None:
            read = _by_metadata(clusters) if isinstance(clusters, str) else clusters
            names = [read(row) for row in self.rows]
        return [self._summary(name, names, confidence) for name in self._columns]

    def _summary(self, metric: str, names: list[object] | None, confidence: float) -> Summary:
        column = self._column(metric)
        scored = column.scored()
        values = [value for _, value in scored]
        groups = None if names is None else [names[place] for place, _ in scored]
        undefined, failed = column.count("undefined"), column.count("failed")
        bounds = None
        if scored or failed:
            n = len(scored) + failed
            bounds = ((sum(values) + column.low) / n, (sum(values) + column.high) / n)
        return Summary(
            metric,
            mean_interval(values, confidence, clusters=groups) if values else None,
            len(scored),
            undefined,
            failed,
            len(self) - len(scored) - undefined - failed,
            bounds,
            " | ".join(column.signatures),
        )

    def worst(self, metric: str, n: int = 5) -> list[Row]:
        """Give the rows with the lowest values of a metric, lowest first.

        Their `results[metric].verdicts` tell which chunk or claim failed.
        """
        scored = sorted(self._column(metric).scored(), key=lambda entry: (entry[1], entry[0]))
        places = {place: rank for rank, (place, _) in enumerate(scored[:n])}
        found = [(places[i], row) for i, row in enumerate(self.rows) if i in places]
        return [row for _, row in sorted(found, key=lambda entry: entry[0])]

    def groups(self, key: str | Callable[[Row], object]) -> dict[object, Evaluation]:
        """Split by a key of the samples' metadata, or by a function of the row."""
        read = _by_metadata(key) if isinstance(key, str) else key
        groups: dict[object, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(read(row), []).append(row)
        return {name: Evaluation(rows) for name, rows in groups.items()}

    def failures(self) -> dict[tuple[str, str, str], int]:
        """Count, by metric, status and reason, the results that have no value."""
        counts: dict[tuple[str, str, str], int] = {}
        for row in self.rows:
            for name, result in row.results.items():
                if result.value is None:
                    key = (name, result.status, result.reason)
                    counts[key] = counts.get(key, 0) + 1
        return counts

    def report(
        self, path: str | PathLike[str], baseline: Evaluation | str | PathLike[str] | None = None
    ) -> Path:
        """Write a report that people can look at: one HTML file that needs nothing else.

        Scores with intervals and distributions, what changed against the baseline, where
        relevant chunks get lost, the worst queries opened to the chunk and the claim that
        failed, why values are missing, what the judging cost.

        Args:
            path: The file.
            baseline: What to compare with: another evaluation, or the file of a run.

        Returns:
            The path.

        Raises:
            InvalidArgumentError: The file can't be written, or the two can't be compared.
            MissingExtraError: jinja2, matplotlib or scipy is not installed.
        """
        from ctxeval.evaluation.reporting import write_report

        return write_report(self, Path(path), baseline)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write everything to a file, one JSON object a line, for `Evaluation.load`."""
        path = Path(path)
        if path == self._path:
            return path
        for _ in write_run(path, self.rows):
            pass
        return path

    @classmethod
    def load(cls, path: str | PathLike[str], *, keep: bool = True) -> Evaluation:
        """Read what `save` wrote.

        Args:
            path: The file.
            keep: Keep the rows in memory? Otherwise they are read again where needed.

        Raises:
            InvalidArgumentError: It is no run.
            InvalidSampleError: A line is broken.
        """
        path = Path(path)
        return cls(read_run(path), None if keep else path)

    def to_dicts(self) -> Iterator[dict[str, Any]]:
        """Give one flat dict per sample: id, question, metadata, each value and status."""
        for row in self.rows:
            yield {
                "id": row.id,
                "user_input": row.sample.user_input,
                **row.sample.metadata,
                **{name: result.value for name, result in row.results.items()},
                **{f"{name}_status": result.status for name, result in row.results.items()},
            }

    def to_pandas(self) -> Any:
        """Give a pandas DataFrame of `to_dicts`.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        pd = load("pandas", "to_pandas()", "pandas")
        return pd.DataFrame(list(self.to_dicts()))

    def to_arrow(self) -> Any:
        """Give a pyarrow Table of `to_dicts`.

        Raises:
            MissingExtraError: pyarrow is not installed.
        """
        pa = load("pyarrow", "to_arrow()", "arrow")
        return pa.Table.from_pylist(list(self.to_dicts()))

    def to_jsonl(self, path: str | PathLike[str]) -> None:
        """Write `to_dicts` to a file, one JSON object a line, for other tools."""
        with Path(path).open("w", encoding="utf-8") as lines:
            for row in self.to_dicts():
                lines.write(json_line(row))

    def __repr__(self) -> str:
        """Show means with their coverage, for a terminal."""
        lines = [f"Evaluation of {len(self)} samples"]
        for name, column in self._columns.items():
            values = [value for _, value in column.scored()]
            mean = f"{sum(values) / len(values):.3f}" if values else "no value"
            lines.append(f"  {name:42} {mean:>8}  ({len(values)} of {len(self)} scored)")
        return "\n".join(lines)


def _by_metadata(key: str) -> Callable[[Row], object]:
    return lambda row: row.sample.metadata.get(key)


def scored_pairs(
    baseline: Evaluation, candidate: Evaluation, metric: str
) -> tuple[list[tuple[float, float]], int]:
    """Pair the values of two evaluations by the samples' ids.

    Returns:
        Baseline's and candidate's value of each pair, and how many samples of either have
        no partner with a value.
    """
    before, after = baseline.values(metric), candidate.values(metric)
    pairs: Sequence[str] = [name for name in before if name in after]
    everyone = set(baseline.ids) | set(candidate.ids)
    return [(before[name], after[name]) for name in pairs], len(everyone) - len(pairs)
