"""Rows of files: JSON Lines, JSON, CSV and Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from glob import has_magic
from os import PathLike
from pathlib import Path
from typing import Any

from ctxeval.errors import InvalidSampleError, short
from ctxeval.extras import load
from ctxeval.record.parquet import parquet_batches
from ctxeval.record.rows import Row, columns
from ctxeval.record.tables import arrow_rows


def file_rows(
    path: str | PathLike[str], suffix: str | None = None, holds: str = "sample"
) -> Iterator[Row]:
    """Go through a file; lines of .jsonl and .csv are read one by one.

    Args:
        path: The file.
        suffix: What it holds: ".jsonl", ".json", ".csv" or ".parquet". None goes by its name.
        holds: What messages call that which stands in a row.

    Raises:
        InvalidSampleError: The suffix is unknown; while reading: the file can't be read,
            is broken, or holds no sample. The message names file and line or row.
        MissingExtraError: While reading: a Parquet file needs pyarrow.
    """
    path = Path(path)
    rows = _READERS.get(suffix or path.suffix.lower())
    if rows is None:
        raise InvalidSampleError(
            f"{path}: {path.suffix!r} is no suffix that can be read: it is one of "
            f"{', '.join(_READERS)}{_of_many(path)}"
        )
    return _read(path, rows, holds)


def _read(path: Path, rows: Callable[[Path], Iterator[Row]], holds: str) -> Iterator[Row]:
    empty = True
    try:
        for row in rows(path):
            empty = False
            yield row
    except OSError as error:
        raise InvalidSampleError(
            f"{path}: it can't be read: {error.strerror or error}: give a file "
            f"({path.absolute()}){_of_many(path)}"
        ) from None
    if empty:
        raise InvalidSampleError(f"{path}: it holds no {holds}: give a file with at least one")


def _of_many(path: Path) -> str:
    many = path.is_dir() or has_magic(str(path))
    return "; many .parquet files are scored with --engine ray" if many else ""


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        yield from lines


def _good(lines: Iterator[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        _check_utf8(line, f"{path}, line {number}")
        yield line


def _check_utf8(line: str, place: str) -> None:
    try:
        line.encode()
    except UnicodeEncodeError as error:
        byte = ord(line[error.start]) - 0xDC00  # as surrogateescape hides it
        raise InvalidSampleError(
            f"{place}: byte 0x{byte:02x} at character {error.start + 1} "
            "is no UTF-8: save the file as UTF-8"
        ) from None


def _jsonl(path: Path) -> Iterator[Row]:
    for number, line in enumerate(_lines(path), start=1):
        if line.strip():
            place, remedy = f"{path}, line {number}", "write one JSON object per line"
            try:
                _check_utf8(line, place)
                yield _row(place, _parsed(line.rstrip(), path, number, remedy))
            except InvalidSampleError as error:  # the lines behind it may be good
                yield Row(place, error)


def _json(path: Path) -> Iterator[Row]:
    text = "".join(_good(_lines(path), path))
    if not text.strip():
        return
    remedy = "write one JSON list (one object per line belongs into a .jsonl file)"
    items = _parsed(text, path, 1, remedy)
    if not isinstance(items, list):
        raise InvalidSampleError(f"{path}: {short(items)} is no list: {remedy}")
    for number, item in enumerate(items, start=1):
        place = f"{path}, row {number}"
        try:
            yield _row(place, item)
        except InvalidSampleError as error:
            yield Row(place, error)


def _parsed(text: str, path: Path, line: int, remedy: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line += error.lineno - 1
        reason = f"{error.msg} at character {error.colno}"
    except (ValueError, RecursionError) as error:  # a number too long, brackets too deep
        reason = str(error)
    raise InvalidSampleError(f"{path}, line {line}: no JSON: {reason}: {remedy}")


def _row(place: str, fields: object) -> Row:
    if not isinstance(fields, dict):
        raise InvalidSampleError(
            f"{place}: {short(fields)} is no JSON object: write the fields by name"
        )
    return Row(place, fields)


def _csv(path: Path) -> Iterator[Row]:
    reader = csv.reader(_good(_lines(path), path), strict=True)
    names: list[str] = []
    header, line = "", 1
    try:
        for cells in reader:
            place, line = f"{path}, line {line}", reader.line_num + 1
            if not any(cells):
                continue
            if not names:
                header = f"{place}, the header"
                names = columns(cells, header)
                continue
            if len(cells) != len(names):
                told = (
                    f"{place}: {len(cells)} cells for {len(names)} columns: put a cell that holds "
                    'a comma, a quote or a line break into quotes: "[""a"", ""b""]"'
                )
                yield Row(place, InvalidSampleError(told))
                continue
            yield Row(place, {n: c or None for n, c in zip(names, cells, strict=True)}, header)
    except csv.Error as error:
        raise InvalidSampleError(
            f"{path}, line {line}: no CSV: {error}: double the quotes inside a quoted cell and "
            "close it (for longer cells: csv.field_size_limit, or a .jsonl file)"
        ) from None


def _parquet(path: Path) -> Iterator[Row]:
    pyarrow = load("pyarrow", "reading a .parquet file", "arrow")
    parquet = load("pyarrow.parquet", "reading a .parquet file", "arrow")
    try:
        with path.open("rb") as binary, parquet.ParquetFile(binary) as table:
            yield from arrow_rows(parquet_batches(table), table.schema_arrow.names, str(path))
    except pyarrow.ArrowException as error:
        raise InvalidSampleError(
            f"{path}: no Parquet, or cut off: {error}: write it again"
        ) from None


_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
}
