"""Score the rows of a table column by column, where a metric can, else row by row."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ctxeval.errors import InvalidSampleError
from ctxeval.evaluation.columns.by_id import score_ids
from ctxeval.evaluation.columns.formulas import Floats, Formula, formula_of
from ctxeval.evaluation.columns.ids import Bools
from ctxeval.evaluation.columns.reading import (
    IdColumn,
    arrow,
    read_ids,
    read_rows,
    read_texts,
    samples,
    size,
)
from ctxeval.evaluation.columns.suspects import PARALLEL, suspects
from ctxeval.evaluation.columns.texts import Texts, by_text, score_texts
from ctxeval.metric import Metric
from ctxeval.record.rows import Row
from ctxeval.sample import Sample
from ctxeval.scoring import score_all

STATUSES = ("scored", "undefined", "failed", "skipped")
SCORED, UNDEFINED, FAILED, SKIPPED = range(4)
Codes = npt.NDArray[np.int8]

AT_ONCE = 2**18
"""How many ids are looked at at once, roughly: so many stay near the processor."""


@dataclass(frozen=True, slots=True)
class Scores:
    """What one metric says of some rows.

    Attributes:
        values: The numbers, 0 where there is none.
        statuses: Indices into `STATUSES`.
    """

    values: Floats
    statuses: Codes


class TableScorer:
    """Scores batches of rows by the same metrics.

    Args:
        metrics: Metrics that call no model.
        place: What messages call the table.
        raising: Raise what is wrong with a row? Otherwise its metrics have failed.

    Attributes:
        names: The metrics' names.
        fields: The columns that are read where they are there.
    """

    def __init__(self, metrics: Sequence[Metric], place: str, *, raising: bool) -> None:
        """See the class."""
        self._metrics = metrics
        self._place = place
        self._raising = raising
        self._formulas: dict[str, Formula] = {}
        self._by_text: dict[tuple[object, ...], list[Metric]] = {}
        for metric in metrics:
            if (formula := formula_of(metric)) is not None:
                self._formulas[metric.name] = formula
            elif by_text(metric):
                self._by_text.setdefault(metric.judge.shared_by, []).append(metric)
        self.names = tuple(metric.name for metric in metrics)
        self._needs = {field for metric in metrics for field in metric.needs}
        sides = [side for side in PARALLEL if self._needs.intersection(side)]
        self.fields = tuple(sorted(self._needs.union(*sides)))

    def needed(
        self, names: Container[str], column: Callable[[str], Any], rows: int
    ) -> dict[str, Any]:
        """Give the columns that are needed, and those that run in parallel with them.

        Args:
            names: The columns that there are.
            column: Gives one.
            rows: How many rows there are, for columns that there are not.
        """
        return {
            name: column(name) if name in names else arrow().nulls(rows)
            for name in self.fields
            if name in names or name in self._needs
        }

    def score(self, batch: Any, first: int) -> Iterator[dict[str, Scores]]:
        """Score a record batch of the needed columns, a piece after the other.

        Args:
            batch: The rows.
            first: The number of the first one, for messages.

        Raises:
            InvalidSampleError: A row is no sample.
        """
        step = max(1, AT_ONCE * len(batch) // max(sum(map(size, batch.columns)), 1))
        for start in range(0, len(batch), step):
            yield self._score(batch.slice(start, step), first + start)

    def score_rows(self, rows: Iterable[Row]) -> dict[str, Scores]:
        """Score rows that make no columns.

        Raises:
            InvalidSampleError: A row is no sample.
        """
        return self._row_by_row(read_rows(rows), self._metrics)[0]

    def _score(self, batch: Any, first: int) -> dict[str, Scores]:
        ids = _ids(batch) if self._formulas else None
        texts = _texts(batch) if self._by_text else None
        by_column: set[str] = set()
        if ids is not None:
            by_column.update(self._formulas)
        if texts is not None:
            by_column.update(m.name for group in self._by_text.values() for m in group)
        rest = [metric for metric in self._metrics if metric.name not in by_column]
        scores: dict[str, Scores] = {}
        if rest:
            scores, wrong = self._row_by_row(samples(batch, self._place, first), rest)
        else:
            wrong = self._wrong(batch, suspects(batch, _known(ids)), first)
        if ids is not None:
            scores |= self._by_id(batch, *ids, wrong, first)
        if texts is not None:
            missing = texts[0].missing | texts[1].missing
            for metrics in self._by_text.values():
                values, expects = score_texts(*texts, metrics)
                statuses = _statuses(expects, missing, wrong)
                scores |= {name: Scores(of_one, statuses) for name, of_one in values.items()}
        return scores

    def _by_id(
        self, batch: Any, retrieved: IdColumn, expected: IdColumn, wrong: Bools, first: int
    ) -> dict[str, Scores]:
        values, expects, alone = score_ids(retrieved, expected, self._formulas)
        alone = alone[~wrong[alone]]
        if len(alone):
            metrics = [metric for metric in self._metrics if metric.name in self._formulas]
            read = samples(batch, self._place, first, alone.tolist())
            by_row, _ = self._row_by_row(read, metrics)
            for name, scores in by_row.items():
                values[name][alone] = scores.values
                expects[alone] = scores.statuses == SCORED
        statuses = _statuses(expects, retrieved.missing | expected.missing, wrong)
        return {name: Scores(of_one, statuses) for name, of_one in values.items()}

    def _row_by_row(
        self, rows: Iterable[Sample | InvalidSampleError], metrics: Sequence[Metric]
    ) -> tuple[dict[str, Scores], Bools]:
        """Score rows by the metrics' own code, and mark those that are no samples."""
        read = []
        wrong = []
        for one in rows:
            self._raise(one)
            wrong.append(not isinstance(one, Sample))
            if isinstance(one, Sample):
                read.append(one)
        fine = ~np.array(wrong, np.bool_)
        results = score_all(read, metrics)
        scores = {}
        for metric in metrics:
            of_metric = [result[metric.name] for result in results]
            values = np.zeros(len(fine))
            values[fine] = [0.0 if one.value is None else one.value for one in of_metric]
            statuses = np.full(len(fine), FAILED, np.int8)
            statuses[fine] = [STATUSES.index(one.status) for one in of_metric]
            scores[metric.name] = Scores(values, statuses)
        return scores, ~fine

    def _wrong(self, batch: Any, suspects: Bools, first: int) -> Bools:
        """Mark the rows that are no samples: those that look suspicious are read one by one."""
        wrong = np.zeros(len(batch), np.bool_)
        rows = np.flatnonzero(suspects).tolist()
        for row, read in zip(rows, samples(batch, self._place, first, rows), strict=True):
            self._raise(read)
            wrong[row] = isinstance(read, InvalidSampleError)
        return wrong

    def _raise(self, read: Sample | InvalidSampleError) -> None:
        if self._raising and isinstance(read, InvalidSampleError):
            raise read


def _ids(batch: Any) -> tuple[IdColumn, IdColumn] | None:
    retrieved = read_ids(batch.column("retrieved_context_ids"), graded=False)
    expected = read_ids(batch.column("reference_context_ids"), graded=True)
    return None if retrieved is None or expected is None else (retrieved, expected)


def _texts(batch: Any) -> tuple[Texts, Texts] | None:
    retrieved = read_texts(batch.column("retrieved_contexts"))
    references = read_texts(batch.column("reference_contexts"))
    return None if retrieved is None or references is None else (retrieved, references)


def _known(ids: tuple[IdColumn, IdColumn] | None) -> dict[str, IdColumn]:
    names = ("retrieved_context_ids", "reference_context_ids")
    return {} if ids is None else dict(zip(names, ids, strict=True))


def _statuses(expects: Bools, missing: Bools, wrong: Bools) -> Codes:
    statuses = np.where(expects, SCORED, UNDEFINED).astype(np.int8)
    statuses[missing] = SKIPPED
    statuses[wrong] = FAILED
    return statuses
