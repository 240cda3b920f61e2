"""Columns of pandas and polars as Arrow's, where that changes no cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ctxeval.evaluation.columns.reading import arrow, holds_texts
from ctxeval.extras import load


class NotOfArrowError(Exception):
    """The cells have no type of Arrow: they are to be read one by one."""


def of_pandas(cells: Any, *, scored: bool) -> Any:
    """Make an array of Arrow of a column of pandas.

    Args:
        cells: The column.
        scored: Is it scored from Arrow's cells alone? Then none may read otherwise there.

    Raises:
        NotOfArrowError: Arrow has no type for its cells.
    """
    pa = arrow()
    try:
        if cells.dtype != object:
            return pa.array(cells, from_pandas=True)
        kinds = set(map(type, cells))
        if any(issubclass(kind, (set, frozenset)) for kind in kinds):  # to Arrow they are lists
            raise NotOfArrowError
        if cells.name == "reference_context_ids" and any(issubclass(kind, dict) for kind in kinds):
            return _graded(cells.tolist())
        made = pa.array(cells, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise NotOfArrowError from error
    if scored and not _unchanged(made.type):
        raise NotOfArrowError
    return made


def of_polars(frame: Any, name: str) -> Any:
    """Make an array of Arrow of a column of polars.

    Raises:
        NotOfArrowError: Arrow has no type for its cells.
    """
    polars = load("polars", "a table", "arrow")
    if isinstance(frame.schema[name], polars.Object):  # of which Arrow would get addresses
        raise NotOfArrowError
    try:
        return frame.select(name).to_arrow().column(0)
    except (arrow().ArrowException, polars.exceptions.PolarsError) as error:
        raise NotOfArrowError from error


def _graded(cells: Sequence[Any]) -> Any:
    """Make a column of maps: as structs, each row would have the keys of all others, too."""
    pa = arrow()
    there = [isinstance(cell, dict) for cell in cells]
    others = [cell for cell, is_map in zip(cells, there, strict=True) if not is_map]
    if pa.array(others, from_pandas=True).null_count < len(others):
        raise NotOfArrowError
    maps = [cell for cell, is_map in zip(cells, there, strict=True) if is_map]
    keys = pa.array([key for cell in maps for key in cell])
    if not (pa.types.is_integer(keys.type) or holds_texts(keys.type) or not len(keys)):
        raise NotOfArrowError
    grades = pa.array([grade for cell in maps for grade in cell.values()], from_pandas=True)
    if pa.types.is_floating(grades.type):  # whole numbers will do; of another Arrow makes an error
        grades = grades.cast(pa.int64())
    if not (pa.types.is_integer(grades.type) or pa.types.is_null(grades.type)):
        raise NotOfArrowError
    lengths = np.array(
        [len(cell) if is_map else 0 for cell, is_map in zip(cells, there, strict=True)]
    )
    bounds = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    offsets = pa.array(bounds, pa.int32(), mask=np.append(~np.array(there, np.bool_), False))
    return pa.MapArray.from_arrays(offsets, keys, grades)


def _unchanged(kind: Any) -> bool:
    """Do cells come back from this type as they went in? Decimals, say, get digits."""
    types = arrow().types
    if types.is_list(kind) or types.is_large_list(kind):
        return _unchanged(kind.value_type)
    plain = (types.is_integer, types.is_floating, types.is_boolean, types.is_null, holds_texts)
    return any(check(kind) for check in plain)
