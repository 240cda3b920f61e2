"""Evaluate a table column by column, where that comes to what row by row would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxeval.errors import InvalidSampleError
from ctxeval.evaluation.columns.late import Late
from ctxeval.evaluation.columns.opening import opened
from ctxeval.evaluation.evaluation import Evaluation
from ctxeval.evaluation.origin import Origin
from ctxeval.evaluation.parquet_run import RunTable
from ctxeval.evaluation.tallies import Tallies
from ctxeval.evaluation.tally import Tally
from ctxeval.extras import load
from ctxeval.metric import Metric
from ctxeval.naming import MetricSet
from ctxeval.sample import Sample

if TYPE_CHECKING:
    from ctxeval.evaluation.columns.scoring import TableScorer


def evaluate_columns(
    source: Any,
    metrics: MetricSet,
    shown: Callable[[Iterator[int]], Iterator[int]],
    output: Path | None,
) -> Evaluation | None:
    """Evaluate a table.

    Args:
        source: What may be a table; see `opened`.
        metrics: The metrics.
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
    run = _Run(chosen, scorer, auto=metrics.auto)
    origin = Origin.of(source)
    try:
        with ExitStack() as files:
            if output is not None:
                run.table = files.enter_context(closing(RunTable(output, scorer.names)))
            for _ in shown(run.numbers(table.batches)):
                pass
            tallies = run.tallies
            if not tallies.size:
                return None
            for metric in chosen:
                tallies.of[metric.name].signatures[metric.signature] = None
            if run.table is not None:
                run.table.finish(tallies, metrics, origin)
    except (_NotPlain, InvalidSampleError, load("pyarrow", "a table", "arrow").ArrowException):
        return None
    if metrics.auto:  # as they come up row by row
        there = [entry for entry in tallies.of.items() if len(entry[1].rows)]
        tallies.of = dict(sorted(there, key=lambda entry: entry[1].rows[0]))
    return Evaluation.of_tallies(tallies, Late(table, metrics), output)


class _NotPlain(Exception):
    """A batch is to be read row by row."""


class _Run:
    """The batches that have been scored."""

    def __init__(self, metrics: list[Metric], scorer: TableScorer, *, auto: bool) -> None:
        """Begin with none; are the metrics those that a row has the fields for?"""
        self._metrics = metrics
        self._scorer = scorer
        self._auto = auto
        self.table: RunTable | None = None
        self.tallies = Tallies([])
        self.tallies.of = {metric.name: Tally() for metric in metrics}

    def numbers(self, batches: Iterable[Any]) -> Iterator[int]:
        """Score batches, and give the number of each row that is done."""
        from ctxeval.evaluation.columns.explaining import explained
        from ctxeval.evaluation.columns.joining import arrays, joined, joined_batches, scores_of
        from ctxeval.evaluation.columns.reading import is_plain
        from ctxeval.evaluation.columns.scoring import SCORED, SKIPPED

        tallies = self.tallies
        for batch in joined_batches(batches):
            if not is_plain(batch):
                raise _NotPlain
            columns = joined(self._scorer, scores_of(batch, self._scorer, tallies.size))
            ids = _ids(batch, hashed=self.table is not None)
            tallies.ids = None if tallies.ids is None or ids is None else tallies.ids + ids
            reasons = []
            for metric, (values, codes) in zip(self._metrics, columns, strict=True):
                tally = tallies.of[metric.name]
                counted = codes != SKIPPED if self._auto else np.ones(len(codes), np.bool_)
                tally.add_column(tallies.size, values, codes, counted)
                unscored = counted & (codes != SCORED)
                reasons.append(explained(tally, batch, metric, codes, unscored, tallies.size))
            if self.table is not None and ids is not None:
                made = arrays(columns)
                together = zip(made[::2], made[1::2], reasons, strict=True)
                self.table.write(ids, [column for of_one in together for column in of_one])
            yield from range(tallies.size, tallies.size + len(batch))
            tallies.size += len(batch)


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
