"""Columns in pieces, as they come and as they go."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ctxeval.evaluation.columns.formulas import Floats
from ctxeval.evaluation.columns.reading import arrow
from ctxeval.evaluation.columns.scoring import (
    SCORED,
    STATUSES,
    Codes,
    Scores,
    TableScorer,
)
from ctxeval.evaluation.columns.suspects import PARALLEL
from ctxeval.metric import Metric
from ctxeval.naming import MetricSet
from ctxeval.record.parquet import BYTES
from ctxeval.sample import Sample

BATCH = 2**15
"""How many rows are read at once, at least, where a table comes in smaller pieces."""


def chosen_for(names: Container[str], metrics: MetricSet) -> list[Metric]:
    """Give the metrics for a table: the fixed ones, or those that it has the columns for."""
    there = {name: () for side in PARALLEL for name in side if name in names}
    return metrics.of(Sample(**there))


def joined_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """Join record batches that are small."""
    pieces: list[Any] = []
    size = 0
    for batch in batches:
        pieces.append(batch)
        size += batch.nbytes
        if sum(map(len, pieces)) >= BATCH or size >= BYTES:
            yield from _joined(pieces)
            pieces, size = [], 0
    yield from _joined(pieces)


def _joined(pieces: list[Any]) -> Iterable[Any]:
    if len(pieces) < 2:
        return pieces
    joint: list[Any] = arrow().Table.from_batches(pieces).combine_chunks().to_batches()
    return joint


def scores_of(table: Any, scorer: TableScorer, first: int = 0) -> Iterator[Mapping[str, Scores]]:
    """Score a table or a record batch.

    Args:
        table: The rows.
        scorer: Scores them.
        first: The number of the first one, for messages.
    """
    needed = scorer.needed(table.schema.names, table.column, table.num_rows)
    for batch in joined_batches(arrow().table(needed).to_batches()):
        yield from scorer.score(batch, first)
        first += len(batch)


def joined(
    scorer: TableScorer, scores: Iterable[Mapping[str, Scores]]
) -> list[tuple[Floats, Codes]]:
    """Join the pieces of each metric; those that share their statuses go on to share them."""
    pieces = list(scores)
    shared: dict[tuple[int, ...], Codes] = {}
    columns = []
    for name in scorer.names:
        codes = [piece[name].statuses for piece in pieces]
        same = tuple(map(id, codes))
        if same not in shared:
            shared[same] = np.concatenate([np.empty(0, np.int8), *codes])
        values = np.concatenate([np.empty(0), *(piece[name].values for piece in pieces)])
        columns.append((values, shared[same]))
    return columns


def arrays(columns: Iterable[tuple[Floats, Codes]]) -> list[Any]:
    """Make the columns of Arrow: a metric's values, then its statuses."""
    pa = arrow()
    made = []
    written: dict[int, Any] = {}
    for values, codes in columns:
        missing = codes != SCORED
        made.append(pa.array(values, pa.float64(), mask=missing if missing.any() else None))
        if id(codes) not in written:
            coded = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(STATUSES))
            written[id(codes)] = coded.cast(pa.string())
        made.append(written[id(codes)])
    return made
