"""Tables: their columns, their batches, and single rows of them once more."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ctxeval.errors import InvalidArgumentError
from ctxeval.evaluation.columns.frames import NotOfArrowError, of_pandas, of_polars
from ctxeval.evaluation.origin import Origin
from ctxeval.extras import load
from ctxeval.record.parquet import parquet_batches
from ctxeval.record.reading import Samples, read_samples
from ctxeval.record.tables import arrow_batches


@dataclass(frozen=True, slots=True)
class Opened:
    """A table that can be read again.

    Attributes:
        names: The names of its columns.
        batches: Its rows, once.
        again: Gives the table anew.
        at: Gives a table of the rows at these places, which are in ascending order.
    """

    names: Sequence[str]
    batches: Iterator[Any]
    again: Callable[[], Any]
    at: Callable[[Sequence[int]], Any]


def opened(source: Any) -> Opened | None:
    """Open a table.

    Args:
        source: Perhaps a Table of pyarrow, a DataFrame of pandas or polars, or the path of a
            Parquet file; or what `read_samples` makes of one.

    Returns:
        None where it is none of these, or can't be read twice.
    """
    if find_spec("pyarrow") is None:
        return None
    if isinstance(source, Samples):
        if source.begun:
            return None
        found = opened(source.source)
        return None if found is None else _without(found, source.metadata_columns)
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        return _of_file(path) if path.suffix.lower() == ".parquet" else None
    if hasattr(source, "itertuples"):
        return _of_pandas(source)
    if hasattr(source, "iter_rows") and hasattr(source, "to_arrow"):
        return _of_polars(source)
    if not hasattr(source, "column_names"):  # what is read only once, and data sets
        return None
    batches = arrow_batches(source)
    if batches is None:
        return None
    return Opened(
        source.schema.names,
        iter(batches),
        lambda: source,
        lambda places: _taken(arrow_batches(source) or (), places),
    )


def of_origin(origin: Origin) -> Opened:
    """Open the file that samples were read from, for single ones of them."""
    if origin.path.suffix.lower() == ".parquet" and find_spec("pyarrow") is not None:
        found = opened(origin.samples())
        if found is not None:
            return found
    return Opened((), iter(()), origin.samples, origin.samples_at)


def _without(table: Opened, metadata: Collection[str]) -> Opened | None:
    """Leave the columns of the metadata out, which nothing is scored by."""
    if len(set(table.names)) < len(table.names):
        return None
    names = [name for name in table.names if name not in metadata]
    return Opened(
        names,
        (batch.select(names) for batch in table.batches),
        lambda: read_samples(table.again(), metadata_columns=metadata),
        lambda places: read_samples(table.at(places), metadata_columns=metadata),
    )


def _taken(batches: Iterable[Any], places: Sequence[int], first: int = 0) -> Any:
    """Make a table of some rows, copied, so that it does not hold on to the others."""
    pa = load("pyarrow", "a table", "arrow")
    pieces = []
    begin = 0
    for batch in batches:
        end = bisect_left(places, first + len(batch), begin)
        if end > begin:
            inside = [place - first for place in places[begin:end]]
            try:
                pieces.append(pa.Table.from_batches([batch.take(pa.array(inside))]))
            except pa.ArrowNotImplementedError:  # of some types nothing can be taken
                slices = [batch.slice(place, 1) for place in inside]
                pieces.append(pa.Table.from_batches(slices))
        first, begin = first + len(batch), end
        if begin == len(places):
            break
    return pa.concat_tables(pieces)


def _of_polars(frame: Any) -> Opened | None:
    pa = load("pyarrow", "a table", "arrow")
    try:
        table = pa.table({name: of_polars(frame, name) for name in frame.columns})
    except NotOfArrowError:
        return None
    return Opened(
        table.schema.names,
        iter(table.to_batches()),
        lambda: frame,
        lambda places: frame[list(places)],
    )


def _of_pandas(frame: Any) -> Opened | None:
    pa = load("pyarrow", "a table", "arrow")
    if any(name is not None for name in frame.index.names):
        return None
    try:
        names = list(frame.columns)
        arrays = [of_pandas(frame.iloc[:, n]) for n in range(len(names))]
        table = pa.Table.from_arrays(arrays, names=names)
    except (NotOfArrowError, TypeError, ValueError):  # of no one type, or the names are not
        return None
    kept = frame.copy()  # rows that are asked for later are those of now
    return Opened(
        names,
        iter(table.to_batches()),
        lambda: kept,
        lambda places: kept.iloc[list(places)],
    )


def _of_file(path: Path) -> Opened | None:
    pa = load("pyarrow", "a table", "arrow")
    parquet = load("pyarrow.parquet", "a table", "arrow")
    origin = Origin.of(path)
    if origin is None:
        return None
    try:
        names = parquet.read_schema(path).names
    except (OSError, pa.ArrowException):
        return None

    def again() -> Path:
        if fault := origin.fault():
            raise InvalidArgumentError(
                f"samples: {path} {fault} since it was evaluated, and single "
                "rows are read from it: evaluate it again"
            )
        return path

    def batches() -> Iterator[Any]:
        with parquet.ParquetFile(path) as file:
            yield from parquet_batches(file)

    def at(places: Sequence[int]) -> Any:
        with parquet.ParquetFile(again()) as now:
            sizes = [now.metadata.row_group(n).num_rows for n in range(now.num_row_groups)]
            borders = np.cumsum([0, *sizes])
            cuts = np.searchsorted(places, borders)
            tables = [
                _taken(parquet_batches(now, [group]), places[cut:end], int(borders[group]))
                for group, (cut, end) in enumerate(pairwise(cuts))
                if end > cut
            ]
        return pa.concat_tables(tables)

    return Opened(names, batches(), again, at)
