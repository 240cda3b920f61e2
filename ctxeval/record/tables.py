"""Rows of the tables that pandas, polars and pyarrow hold in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ctxeval.errors import InvalidSampleError, short
from ctxeval.record.rows import Row, columns


def pandas_rows(frame: Any, place: str) -> Iterator[Row]:
    """Go through a pandas DataFrame; an index with a name is a column like any other."""
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    if named:
        frame = frame.reset_index(level=named)
    return _rows(place, frame.columns, frame.itertuples(index=False, name=None))


def polars_rows(frame: Any, place: str) -> Iterator[Row]:
    """Go through a polars DataFrame."""
    return _rows(place, frame.columns, frame.iter_rows())


def arrow_batches(source: Any) -> Iterable[Any] | None:
    """Give the record batches of what pyarrow calls a table, a data set, a batch or a reader."""
    if hasattr(source, "to_batches") and hasattr(source, "schema"):
        batches: Iterable[Any] = source.to_batches()
        return batches
    if hasattr(source, "read_next_batch"):
        reader: Iterable[Any] = source
        return reader
    return [source] if hasattr(source, "to_struct_array") and hasattr(source, "schema") else None


def arrow_rows(batches: Iterable[Any], names: Iterable[str], place: str) -> Iterator[Row]:
    """Go through record batches of Arrow, all with these columns."""
    cells = (
        row for batch in batches for row in zip(*map(_arrow_cells, batch.columns), strict=True)
    )
    return _rows(place, names, cells)


def _arrow_cells(column: Any) -> list[Any]:
    try:
        cells: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):  # one of them is none of Python's
        cells = [_arrow_cell(column, row) for row in range(len(column))]
    if str(column.type).startswith("map<"):  # whose cells come as lists of pairs
        return [dict(cell) if isinstance(cell, list) else cell for cell in cells]
    return cells


def _arrow_cell(column: Any, row: int) -> Any:
    try:
        return column[row].as_py()
    except UnicodeDecodeError as error:
        return _Unreadable(f"{short(error.object)} is no text in UTF-8: decode it, or leave it out")
    except (ValueError, OverflowError) as error:
        kind = str(column.type).replace("\n", " ")
        return _Unreadable(
            f"a cell of type {kind} cannot be read: {error}: cast or drop the column"
        )


class _Unreadable(str):
    """What is wrong with a cell, in its place."""

    __slots__ = ()


def _rows(place: str, names: Iterable[object], rows: Iterable[Sequence[Any]]) -> Iterator[Row]:
    known = columns(names, place)
    for number, cells in enumerate(rows, start=1):
        fields = dict(zip(known, cells, strict=True))
        for name, cell in fields.items():
            if type(cell) is _Unreadable:
                wrong = InvalidSampleError(f"{place}, row {number}: {name}: {cell}")
                yield Row(f"{place}, row {number}", wrong, header=place)
                break
        else:
            yield Row(f"{place}, row {number}", fields, header=place)
