"""Columns of pandas and polars as Arrow's, where that changes no cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ctxeval.evaluation.columns.reading import arrow, holds_texts
from ctxeval.extras import load
from ctxeval.sample import Sample


class NotOfArrowError(Exception):
    """The cells have no type of Arrow: they are to be read one by one."""


_PLAIN = (str, int, float, np.integer, np.floating)
_ODD = ("bool", "timedelta64")  # which Python and numpy count among the numbers
_NOTHING = ("NoneType", "NAType", "NaTType")


def of_pandas(cells: Any) -> Any:
    """Make an array of Arrow of a column of pandas.

    Raises:
        NotOfArrowError: Arrow has no type for its cells, or would change some.
    """
    pa = arrow()
    try:
        if cells.dtype != object:
            return pa.array(cells, from_pandas=True)
        if cells.name in Sample.model_fields and cells.name != "metadata":
            kinds = set(map(type, cells))
            if cells.name == "reference_context_ids" and dict in kinds:
                return _graded(cells.tolist())
            _check(cells, kinds)
        return pa.array(cells, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise NotOfArrowError from error


def _check(cells: Any, kinds: set[type]) -> None:
    """Refuse what Arrow takes for something else: of a set it makes a list, of a UUID a number."""
    lists = {list, tuple} & kinds
    if np.ndarray in kinds:
        arrays = [cell for cell in cells if type(cell) is np.ndarray]
        items = chain.from_iterable(array.tolist() for array in arrays if array.dtype == object)
        if {array.dtype.kind for array in arrays} - set("iufUO") or not _plain(
            set(map(type, items))
        ):
            raise NotOfArrowError
    if lists:
        items = chain.from_iterable(cell for cell in cells if type(cell) in lists)
        if not _plain(set(map(type, items))):
            raise NotOfArrowError
    if not _plain(kinds - lists - {np.ndarray}):
        raise NotOfArrowError


def _plain(kinds: Iterable[type]) -> bool:
    return all(
        kind.__name__ in _NOTHING or (issubclass(kind, _PLAIN) and kind.__name__ not in _ODD)
        for kind in kinds
    )


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
    ids = [key for cell in maps for key in cell]
    held = [grade for cell in maps for grade in cell.values()]
    if not _plain({*map(type, ids), *map(type, held)}):
        raise NotOfArrowError
    keys = pa.array(ids)
    if not (pa.types.is_integer(keys.type) or holds_texts(keys.type) or not len(keys)):
        raise NotOfArrowError
    grades = pa.array(held, from_pandas=True)
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
