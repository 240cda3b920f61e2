"""What the evaluation of a data set brought: a row per query, and means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ctxeval import Evaluation, MetricResult, MissingExtraError, Row, Sample, Usage


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """One query.

    Attributes:
        sample: Question, expectation, and what was retrieved, as it was scored.
        results: A result per metric, by name; "failed" where `error` is set.
        error: What went wrong before scoring; None where nothing did.
    """

    sample: Sample
    results: dict[str, MetricResult]
    error: str | None = None

    @property
    def id(self) -> str:
        """The query's id."""
        return self.sample.key

    @property
    def query(self) -> str | None:
        """The question."""
        return self.sample.user_input

    @property
    def retrieved_ids(self) -> tuple[str, ...]:
        """The ids of what was retrieved, best first."""
        return self.sample.retrieved_context_ids or ()


class Mean(NamedTuple):
    """The mean of a metric, and of how many of the results.

    Attributes:
        value: The mean over the scored results; None where there is none.
        scored: How many those are.
        undefined: How many have nothing that is expected.
        failed: How many could not be had.
        skipped: How many lack a field that the metric needs.
    """

    value: float | None
    scored: int
    undefined: int
    failed: int
    skipped: int


class DatasetResult:
    """What the evaluation of a data set brought.

    Args:
        rows: A row per query, in the order of the data set.
    """

    def __init__(self, rows: Sequence[DatasetRow]) -> None:
        """See the class."""
        self.rows = list(rows)

    @property
    def failed(self) -> list[DatasetRow]:
        """The rows whose retrieval failed."""
        return [row for row in self.rows if row.error is not None]

    def means(self) -> dict[str, Mean]:
        """Give each metric's mean over what was scored, with the counts of what was not."""
        by_name: dict[str, list[MetricResult]] = {}
        for row in self.rows:
            for name, result in row.results.items():
                by_name.setdefault(name, []).append(result)
        return {name: _mean(results) for name, results in by_name.items()}

    def advice(self) -> dict[str, int]:
        """Say what to know of the results, commonest first, and of how many queries."""
        said = Counter(
            reason
            for row in self.rows
            for reason in dict.fromkeys(one.reason for one in row.results.values() if one.reason)
        )
        return dict(said.most_common())

    def usage(self) -> Usage:
        """Add up what judging cost; metrics that share a judging count once."""
        shared = {
            id(result.usage): result.usage
            for row in self.rows
            for result in row.results.values()
            if result.usage is not None
        }
        return sum(shared.values(), Usage())

    def evaluation(self) -> Evaluation:
        """Give the same as an `Evaluation`: for intervals, comparisons and gates."""
        return Evaluation(Row(row.id, row.sample, row.results) for row in self.rows)

    def to_pandas(self) -> Any:
        """Make a DataFrame with a row per query.

        Its columns are id, query, response, retrieved_ids, error, and for each metric its
        value, under its name, and its status.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            if error.name != "pandas":
                raise
            raise MissingExtraError("to_pandas()", "pandas", "pandas") from error
        return pd.DataFrame([_cells(row) for row in self.rows])

    def __repr__(self) -> str:
        """Show the means and how many results each rests on."""
        shown = [
            f"{name}={'none' if mean.value is None else format(mean.value, '.3f')} of {mean.scored}"
            for name, mean in self.means().items()
        ]
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"DatasetResult({len(self.rows)} queries{failed}: {', '.join(shown)})"


def _mean(results: Sequence[MetricResult]) -> Mean:
    values = [result.value for result in results if result.value is not None]
    counts = Counter(result.status for result in results)
    mean = sum(values) / len(values) if values else None
    return Mean(mean, len(values), counts["undefined"], counts["failed"], counts["skipped"])


def _cells(row: DatasetRow) -> dict[str, Any]:
    cells: dict[str, Any] = {
        "id": row.id,
        "query": row.query,
        "response": row.sample.response,
        "retrieved_ids": list(row.retrieved_ids),
        "error": row.error,
    }
    for name, result in row.results.items():
        cells[name] = result.value
        cells[f"{name} status"] = result.status
    return cells
