"""Score tables: a column of values and one of statuses for each metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np

from ctxeval.errors import InvalidArgumentError, InvalidSampleError, near, short
from ctxeval.evaluation.columns.frames import NotOfArrowError, of_pandas, of_polars
from ctxeval.evaluation.columns.joining import arrays, chosen_for, joined, scores_of
from ctxeval.evaluation.columns.reading import arrow
from ctxeval.evaluation.columns.scoring import (
    SCORED,
    STATUSES,
    Scores,
    TableScorer,
)
from ctxeval.extras import load
from ctxeval.metric import Metric
from ctxeval.naming import Metrics, MetricSet
from ctxeval.record.tables import pandas_rows, polars_rows
from ctxeval.sample import Sample

T = TypeVar("T")

PLACE = "table"
"""What messages call the table."""


def score_table(
    table: T, metrics: Metrics = "auto", *, errors: Literal["raise", "status"] = "raise"
) -> T:
    """Score the rows of a table by metrics that call no model.

    The values are those of `metric.score` on each row, to the last bit. Ids that are
    integers or strings, also in dictionaries, are compared without a look at single rows, by
    fingerprints that are verified; texts by all processors.

    Args:
        table: A Table, RecordBatch or RecordBatchReader of pyarrow, or a DataFrame of pandas
            or polars. Of its columns those are read that the metrics need, under the names of
            a `Sample`'s fields, with lists as their cells; grades are maps or structs. A null
            cell means that the field is missing.
        metrics: Metrics or their names, or "auto": those that the table has the columns for.
        errors: What a row does that is no sample, say for an empty id, and what a metric
            does whose column the table lacks: "raise" an error, or show in the "status": the
            row has "failed", the metric is "skipped".

    Returns:
        The same, of the same type, with two more columns for each metric: its name, a number
        in [0, 1], null where there is none; and with `_status` behind it, "scored",
        "undefined", "failed" or "skipped". A reader is read as its result is.

    Raises:
        InvalidSampleError: A column is missing, or a row is no sample; the message names
            column, row and remedy.
        InvalidArgumentError: A metric is unknown or calls a model; a column has the name of a
            metric; it is no table.
        MissingExtraError: pyarrow is not installed.

    Examples:
        >>> import pyarrow as pa
        >>> table = pa.table(
        ...     {
        ...         "retrieved_context_ids": [["a", "b"], ["c"]],
        ...         "reference_context_ids": [["b"], None],
        ...     }
        ... )
        >>> score_table(table, "reciprocal_rank").select(
        ...     ["reciprocal_rank", "reciprocal_rank_status"]
        ... ).to_pylist()  # doctest: +NORMALIZE_WHITESPACE
        [{'reciprocal_rank': 0.5, 'reciprocal_rank_status': 'scored'},
         {'reciprocal_rank': None, 'reciprocal_rank_status': 'skipped'}]
    """
    if errors not in ("raise", "status"):
        raise InvalidArgumentError(f"errors: {short(errors)} is unknown: give 'raise' or 'status'")
    given: Any = table
    if hasattr(given, "itertuples"):
        return _pandas(given, metrics, errors)  # type: ignore[no-any-return]
    if hasattr(given, "iter_rows") and hasattr(given, "with_columns"):
        return _polars(given, metrics, errors)  # type: ignore[no-any-return]
    pa = arrow()
    if not isinstance(given, (pa.RecordBatchReader, pa.RecordBatch, pa.Table)):
        remedy = (
            "give a Table, RecordBatch or RecordBatchReader of pyarrow, or a DataFrame of pandas "
            "or polars"
        )
        if hasattr(given, "collect_schema"):  # polars' LazyFrame
            remedy = "give its .collect()"
        raise InvalidArgumentError(f"table: {short(given)} is no table: {remedy}")
    scorer = _scorer(given.schema.names, metrics, errors)
    schema = given.schema
    for name in scorer.names:
        schema = schema.append(pa.field(name, pa.float64()))
        schema = schema.append(pa.field(f"{name}_status", pa.string()))
    if isinstance(given, pa.RecordBatchReader):
        return pa.RecordBatchReader.from_batches(schema, _read(given, scorer, schema))  # type: ignore[no-any-return]
    added = arrays(joined(scorer, scores_of(given, scorer)))
    return type(given).from_arrays([*given.columns, *added], schema=schema)  # type: ignore[no-any-return]


def _scorer(names: Sequence[Any], metrics: Metrics, errors: str) -> TableScorer:
    known = [name for name in names if isinstance(name, str)]
    chosen = _chosen(known, metrics)
    scorer = TableScorer(chosen, PLACE, raising=errors == "raise")
    for metric in chosen:
        for field in metric.needs:
            if field not in known and errors == "raise":
                others = [name for name in known if name not in Sample.model_fields]
                guess = near(field, others)
                raise InvalidSampleError(
                    f"table: {metric.name} needs the column {field!r}, which is missing: "
                    + (guess if guess.startswith("did") else "add it, or leave the metric out")
                )
    for name in known:
        if name.removesuffix("_status") in scorer.names:
            raise InvalidArgumentError(
                f"table: it has a column {name!r} already: drop it, or rename it"
            )
        if name in scorer.fields and known.count(name) > 1:
            raise InvalidSampleError(f"table: two columns are named {name!r}: leave one")
    return scorer


def _chosen(names: Sequence[str], metrics: Metrics) -> Sequence[Metric]:
    chosen = chosen_for(names, MetricSet(metrics))
    for metric in chosen:
        if metric.judge.calls_model:
            raise InvalidArgumentError(
                f"metrics: {metric.name} asks a model: give it to ctxeval.evaluate"
            )
    if not chosen:
        raise InvalidSampleError(
            "table: there is no metric for its columns: give retrieved_context_ids with "
            "reference_context_ids, or retrieved_contexts with reference_contexts"
        )
    return chosen


def _read(reader: Any, scorer: TableScorer, schema: Any) -> Iterator[Any]:
    first = 0
    for batch in reader:
        added = arrays(joined(scorer, scores_of(batch, scorer, first)))
        yield type(batch).from_arrays([*batch.columns, *added], schema=schema)
        first += len(batch)


def _pandas(frame: Any, metrics: Metrics, errors: str) -> Any:
    scorer = _scorer(list(frame.columns), metrics, errors)

    def column(name: str) -> Any:
        return of_pandas(frame[name])

    try:
        table = arrow().table(scorer.needed(frame.columns, column, len(frame)))
    except NotOfArrowError:
        there = frame[[name for name in scorer.fields if name in frame.columns]]
        scores: Iterable[Mapping[str, Scores]] = [scorer.score_rows(pandas_rows(there, PLACE))]
    else:
        scores = scores_of(table, scorer)
    added: dict[str, Any] = {}
    for name, (values, codes) in zip(scorer.names, joined(scorer, scores), strict=True):
        added[name] = np.where(codes == SCORED, values, np.nan)  # pandas' word for no number
        added[f"{name}_status"] = np.array(STATUSES, object)[codes]
    return frame.assign(**added)


def _polars(frame: Any, metrics: Metrics, errors: str) -> Any:
    polars = load("polars", "score_table", "arrow")
    scorer = _scorer(frame.columns, metrics, errors)

    def column(name: str) -> Any:
        return of_polars(frame, name)

    try:
        table = arrow().table(scorer.needed(frame.columns, column, len(frame)))
    except NotOfArrowError:
        there = frame.select([name for name in scorer.fields if name in frame.columns])
        scores: Iterable[Mapping[str, Scores]] = [scorer.score_rows(polars_rows(there, PLACE))]
    else:
        scores = scores_of(table, scorer)
    added = arrays(joined(scorer, scores))
    names = [both for name in scorer.names for both in (name, f"{name}_status")]
    return frame.with_columns(map(polars.Series, names, added))
