"""Why rows of a table have no value, without a look at each of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ctxeval.evaluation.columns.ids import Bools
from ctxeval.evaluation.columns.reading import arrow, samples
from ctxeval.evaluation.columns.scoring import Codes
from ctxeval.evaluation.tally import STATUSES, Tally
from ctxeval.metric import Metric
from ctxeval.sample import Sample


def explained(
    tally: Tally, batch: Any, metric: Metric, codes: Codes, unscored: Bools, first: int
) -> Any:
    """Tell a tally why rows have no value.

    A reason follows from the status and from which fields are missing: a row of each kind is
    asked for it.

    Args:
        tally: The tally of the metric.
        batch: The rows.
        metric: The metric.
        codes: Their statuses.
        unscored: Which of them have a result without a value.
        first: The number of the first row.

    Returns:
        A pyarrow array of the rows' reasons, null for none.
    """
    pa = arrow()
    rows = np.flatnonzero(unscored)
    if not len(rows):
        return pa.nulls(len(batch), pa.string())
    kinds = codes[rows].astype(np.int64)
    for field in metric.needs:
        missing = np.ones(len(batch), np.bool_)
        if field in batch.schema.names:
            missing = batch.column(field).is_null().to_numpy(zero_copy_only=False)
        kinds = kinds * 2 + missing[rows]
    _, firsts, kind_of = np.unique(kinds, return_index=True, return_inverse=True)
    told = []
    for row in rows[firsts].tolist():
        sample = next(samples(batch.slice(row, 1), "samples", row))
        assert isinstance(sample, Sample)
        reason = metric.missing(sample)
        if not reason and (result := metric.before_judging(sample)) is not None:
            reason = result.reason
        told.append((STATUSES[codes[row]], reason))
    known = [tally.known_reason(status, reason) for status, reason in told]
    tally.lacking.frombytes((rows + first).astype(np.int64).tobytes())
    tally.why.frombytes(np.array(known, np.int32)[kind_of].tobytes())
    places = np.zeros(len(batch), np.int64)
    places[rows] = kind_of
    texts = pa.array([reason for _, reason in told], pa.string())
    return texts.take(pa.array(places, mask=~unscored))
