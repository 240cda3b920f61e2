"""Evaluate a table column by column, where that comes to what row by row would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxeval.errors import InvalidSampleError
from ctxeval.evaluation.columns.late import Late, ScoreRows
from ctxeval.evaluation.columns.opening import opened
from ctxeval.evaluation.evaluation import Evaluation
from ctxeval.evaluation.rows import unfinished_of
from ctxeval.evaluation.tallies import Tallies
from ctxeval.evaluation.tally import STATUSES, Tally
from ctxeval.extras import load
from ctxeval.metric import Metric
from ctxeval.naming import MetricSet
from ctxeval.sample import Sample

if TYPE_CHECKING:
    from ctxeval.evaluation.columns.scoring import Codes, TableScorer


def evaluate_columns(
    source: Any,
    metrics: MetricSet,
    rows: ScoreRows,
    shown: Callable[[Iterator[int]], Iterator[int]],
    output: Path | None,
) -> Evaluation | None:
    """Evaluate a table.

    Args:
        source: What may be a table; see `opened`.
        metrics: The metrics.
        rows: For when single rows are asked for.
        shown: Shows how far it has come.
        output: The Parquet file that ids, values and statuses go to.

    Returns:
        None where it is to be done row by row: it is no such table, a metric knows no
        columns, or a cell is not plainly what it should be.
    """
    table = None if metrics.calls_model else opened(source)
    if table is None or (metrics.auto and output is not None):
        return None

    from ctxeval.evaluation.columns.formulas import formula_of
    from ctxeval.evaluation.columns.joining import chosen_for
    from ctxeval.evaluation.columns.scoring import TableScorer
    from ctxeval.evaluation.columns.texts import by_text

    chosen = chosen_for(table.names, metrics)
    if not all(formula_of(metric) is not None or by_text(metric) for metric in chosen):
        return None
    scorer = TableScorer(chosen, "samples", raising=True)
    run = _Run(chosen, scorer, skipped=not metrics.auto)
    try:
        with ExitStack() as files:
            if output is not None:
                run.write_to(output, files)
            for _ in shown(run.numbers(table.batches)):
                pass
    except (_NotPlain, InvalidSampleError, load("pyarrow", "a table", "arrow").ArrowException):
        return None
    tallies = run.tallies
    if not tallies.size:
        return None
    if output is not None:
        unfinished_of(output).replace(output)
    for metric in chosen:
        tallies.of[metric.name].signatures[metric.signature] = None
    if metrics.auto:  # as they come up row by row
        there = [entry for entry in tallies.of.items() if len(entry[1].rows)]
        tallies.of = dict(sorted(there, key=lambda entry: entry[1].rows[0]))
    return Evaluation.of_tallies(tallies, Late(table, rows), output)


class _NotPlain(Exception):
    """A batch is to be read row by row."""


class _Run:
    """The batches that have been scored."""

    def __init__(self, metrics: list[Metric], scorer: TableScorer, *, skipped: bool) -> None:
        """Begin with none; are skipped results counted?"""
        self._metrics = metrics
        self._scorer = scorer
        self._skipped = skipped
        self._write: Callable[[list[str], list[Any]], None] | None = None
        self.tallies = Tallies([])
        self.tallies.of = {metric.name: Tally() for metric in metrics}

    def write_to(self, output: Path, files: ExitStack) -> None:
        """Write ids, values and statuses, too."""
        pa = load("pyarrow", "writing a .parquet file", "arrow")
        parquet = load("pyarrow.parquet", "writing a .parquet file", "arrow")
        schema = pa.schema([("id", pa.string())])
        for name in self._scorer.names:
            schema = schema.append(pa.field(name, pa.float64()))
            schema = schema.append(pa.field(f"{name}_status", pa.string()))
        writer = files.enter_context(parquet.ParquetWriter(unfinished_of(output), schema))

        def write(ids: list[str], columns: list[Any]) -> None:
            writer.write_table(
                pa.Table.from_arrays([pa.array(ids, pa.string()), *columns], schema=schema)
            )

        self._write = write

    def numbers(self, batches: Iterable[Any]) -> Iterator[int]:
        """Score batches, and give the number of each row that is done."""
        from ctxeval.evaluation.columns.joining import arrays, joined, joined_batches, scores_of
        from ctxeval.evaluation.columns.reading import is_plain

        tallies = self.tallies
        for batch in joined_batches(batches):
            if not is_plain(batch):
                raise _NotPlain
            columns = joined(self._scorer, scores_of(batch, self._scorer, tallies.size))
            ids = _ids(batch, hashed=self._write is not None)
            tallies.ids = None if tallies.ids is None or ids is None else tallies.ids + ids
            if self._write is not None and ids is not None:
                self._write(ids, arrays(columns))
            for metric, (values, codes) in zip(self._metrics, columns, strict=True):
                tally = tallies.of[metric.name]
                tally.add_column(tallies.size, values, codes, skipped=self._skipped)
                _explain(tally, batch, metric, codes, tallies.size, skipped=self._skipped)
            yield from range(tallies.size, tallies.size + len(batch))
            tallies.size += len(batch)


def _explain(
    tally: Tally, batch: Any, metric: Metric, codes: Codes, first: int, *, skipped: bool
) -> None:
    """Tell a tally why rows have no value.

    A reason follows from the status and from which fields are missing: a row of each kind is
    asked for it.
    """
    from ctxeval.evaluation.columns.reading import samples

    counted = codes != STATUSES.index("scored")
    if not skipped:
        counted &= codes != STATUSES.index("skipped")
    rows = np.flatnonzero(counted)
    if not len(rows):
        return
    kinds = codes[rows].astype(np.int64)
    for field in metric.needs:
        missing = np.ones(len(batch), np.bool_)
        if field in batch.schema.names:
            missing = batch.column(field).is_null().to_numpy(zero_copy_only=False)
        kinds = kinds * 2 + missing[rows]
    _, firsts, kind_of = np.unique(kinds, return_index=True, return_inverse=True)
    known = []
    for row in rows[firsts].tolist():
        sample = next(samples(batch.slice(row, 1), "samples", row))
        assert isinstance(sample, Sample)
        reason = metric.missing(sample)
        if not reason and (result := metric.before_judging(sample)) is not None:
            reason = result.reason
        known.append(tally.known_reason(STATUSES[codes[row]], reason))
    tally.lacking.frombytes((rows + first).astype(np.int64).tobytes())
    tally.why.frombytes(np.array(known, np.int32)[kind_of].tobytes())


def _ids(batch: Any, *, hashed: bool) -> list[str] | None:
    """Give the rows' ids; None where some have none, unless the hashes are worth their time."""
    from ctxeval.evaluation.columns.reading import plain_ids, samples

    pa = load("pyarrow", "a table", "arrow")
    if "id" in batch.schema.names:
        ids = plain_ids(batch.column("id"))
        if ids is not None and not ids.null_count:
            named: list[str] = ids.cast(pa.string()).to_pylist()
            return named
    if not hashed:
        return None
    return [sample.key for sample in samples(batch, "samples", 0) if isinstance(sample, Sample)]
