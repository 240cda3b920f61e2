"""Columns of ids as numpy takes them, and rows as samples where that does not do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ctxeval.errors import InvalidSampleError
from ctxeval.evaluation.columns.ids import Bools, Ints
from ctxeval.evaluation.columns.texts import Texts
from ctxeval.extras import load
from ctxeval.record.rows import RAGAS_COLUMNS, Row
from ctxeval.record.tables import arrow_rows
from ctxeval.sample import Sample


def arrow(module: str = "pyarrow") -> Any:
    """Load pyarrow or one of its modules."""
    return load(module, "score_table", "arrow")


@dataclass(frozen=True, slots=True)
class IdColumn:
    """The lists of ids of one column.

    Attributes:
        missing: The rows that have no list.
        lengths: How many ids each row has, 0 where it has no list.
        values: All ids, a pyarrow array of 64-bit integers or of strings.
        grades: The grade of each, where the cells are mappings.
    """

    missing: Bools
    lengths: Ints
    values: Any
    grades: Ints | None = None

    @property
    def starts(self) -> Ints:
        """Where each row's ids begin."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def numbers(self) -> bool:
        """Are the ids numbers?"""
        return bool(arrow().types.is_integer(self.values.type))

    def suspects(self) -> Bools:
        """Mark the rows that hold, or may hold, what is no id: an empty one, a null."""
        pc = arrow("pyarrow.compute")
        if not is_utf8(self.values):
            return self.lengths > 0
        marked = np.zeros(len(self.lengths), np.bool_)
        if not self.values.null_count and (
            self.numbers or pc.min(pc.binary_length(self.values)).as_py() != 0
        ):
            return marked
        empty = self.values.is_null()
        if not self.numbers:
            empty = pc.or_kleene(empty, _empty(self.values))
        places = np.flatnonzero(numpy_of(empty))
        marked[np.searchsorted(self.starts, places, side="right") - 1] = True
        return marked


def read_ids(column: Any, *, graded: bool) -> IdColumn | None:
    """Read a column of ids.

    Args:
        column: A pyarrow array of lists; of maps or structs where ids may be graded.
        graded: May they?

    Returns:
        None where it is none of these, where the ids are neither integers nor strings, or
        the grades no integers: such cells are to be read one by one.
    """
    types = arrow().types
    column = _typed(column)
    kind = column.type
    if graded and types.is_struct(kind):
        return _of_structs(column)
    grades = None
    if graded and types.is_map(kind):
        grades = _grades(unmapped(column, column.items).flatten())
        if grades is None:
            return None
        column = unmapped(column, column.keys)
    elif not _listlike(kind):
        return None
    values = plain_ids(column.flatten())
    if values is None:
        return None
    return IdColumn(nulls_of(column), _lengths(column), values, grades)


def read_texts(column: Any) -> Texts | None:
    """Read a column of lists of texts.

    Returns:
        None where it is none: such cells are to be read one by one.
    """
    pa = arrow()
    column = _typed(column)
    if not _listlike(column.type):
        return None
    values = plain_ids(column.flatten())
    if values is None or pa.types.is_integer(values.type) or not is_utf8(values):
        return None
    return Texts(nulls_of(column), _lengths(column), numpy_of(values))


def listed(column: Any) -> tuple[Ints, Any] | None:
    """Give the lengths of a column's lists, and what all of them hold; None if it has none."""
    column = _typed(column)
    return (_lengths(column), column.flatten()) if _listlike(column.type) else None


def is_plain(batch: Any) -> bool:
    """Say whether each row is sure to be a sample, without a look at single ones.

    False where one may be none, or where its cells would be understood in another way: what
    is no list but JSON, an empty cell that is not null.
    """
    names = batch.schema.names
    return len(set(names)) == len(names) and all(map(_is_plain, names, batch.columns))


def _is_plain(name: str, column: Any) -> bool:
    types, kind = arrow().types, column.type
    if column.null_count == len(column) or name in RAGAS_COLUMNS:
        return name in Sample.model_fields or name in RAGAS_COLUMNS
    if name in ("retrieved_context_ids", "reference_context_ids"):
        ids = read_ids(column, graded=name == "reference_context_ids")
        return ids is not None and not ids.suspects().any()
    if name in ("retrieved_contexts", "reference_contexts"):
        texts = column.flatten() if _listlike(kind) else None
        return texts is not None and _is_text(texts) and not texts.null_count
    if name == "id":
        ids = plain_ids(column)
        empty = ids is None or arrow("pyarrow.compute").any(_empty(ids)).as_py()
        return not empty and is_utf8(ids)
    if name in ("user_input", "response", "reference"):
        return _is_text(column)
    return name == "metadata" and types.is_struct(kind) and _is_readable(column)


def _is_text(values: Any) -> bool:
    return holds_texts(values.type) and is_utf8(values)


def _is_readable(column: Any) -> bool:
    """Is each cell sure to be had as Python's? Of moments beyond its years, say, none is."""
    types, kind = arrow().types, column.type
    if types.is_struct(kind):
        names = {field.name for field in kind}
        return len(names) == kind.num_fields and all(map(_is_readable, column.flatten()))
    if _listlike(kind):
        return _is_readable(column.flatten())
    plain = (types.is_integer, types.is_floating, types.is_boolean, types.is_null)
    return any(check(kind) for check in plain) or _is_text(column)


def is_utf8(values: Any) -> bool:
    """Say whether strings are such: files may hold other bytes, at which Arrow does not look."""
    pa = arrow()
    types, kind = pa.types, values.type
    if not holds_texts(kind) or not len(values):
        return True
    if types.is_string(kind) or types.is_large_string(kind):
        _, offsets, content = values.buffers()
        bounds: Any = np.frombuffer(offsets, np.int32 if types.is_string(kind) else np.int64)
        begin, end = bounds[values.offset], bounds[values.offset + len(values)]
        if begin == end or int(np.frombuffer(content, np.uint8)[begin:end].max()) < 0x80:
            return True  # all of it ASCII, as most is, and this is the quickest way to know
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def holds_texts(kind: Any) -> bool:
    """Is this a type of strings?"""
    types = arrow().types
    known: Iterable[Any] = (getattr(types, f"is_{name}", None) for name in _STRINGS)
    return any(check is not None and check(kind) for check in known)


_STRINGS = ("string", "large_string", "string_view")


def _empty(ids: Any) -> Any:
    """Say of each id whether it is an empty string; null where there is none."""
    pc = arrow("pyarrow.compute")
    if arrow().types.is_integer(ids.type):
        return arrow().array([False])
    return pc.equal(pc.binary_length(ids), 0)


def size(column: Any) -> int:
    """Count, roughly, the ids that a column holds, longer texts as several."""
    if arrow().types.is_struct(column.type):
        return len(column) * int(column.type.num_fields)
    items = len(column.flatten()) if _listlike(column.type) else len(column)
    return max(items, int(column.nbytes) // 128)


def samples(
    batch: Any, place: str, first: int, rows: Iterable[int] | None = None
) -> Iterator[Sample | InvalidSampleError]:
    """Read rows one by one.

    Args:
        batch: A record batch of nothing but fields of samples.
        place: What messages call the table.
        first: How many rows came before.
        rows: Which ones; None: all.

    Returns:
        Each sample, or what is wrong with it.
    """
    numbers: Iterable[int] = range(len(batch))
    pieces = [batch]
    if rows is not None:  # of some types Arrow takes no single rows
        numbers = list(rows)
        pieces = [batch.slice(row, 1) for row in numbers]
    read = zip(numbers, arrow_rows(pieces, batch.schema.names, place), strict=True)
    return read_rows(
        row._replace(place=f"{place}, row {first + number + 1}") for number, row in read
    )


def read_rows(rows: Iterable[Row]) -> Iterator[Sample | InvalidSampleError]:
    """Give the sample of each row, or what is wrong with it."""
    for row in rows:
        try:
            yield row.sample()
        except InvalidSampleError as error:
            yield error


def _typed(column: Any) -> Any:
    """Give a column without any list the type of lists, whatever pandas took it for."""
    pa = arrow()
    if column.null_count < len(column) or _listlike(column.type):
        return column
    return pa.nulls(len(column), pa.list_(pa.string()))


def _listlike(kind: Any) -> bool:
    types = arrow().types
    checks = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
    known: Iterable[Any] = (getattr(types, f"is_{name}", None) for name in checks)
    return any(check is not None and check(kind) for check in known)


def unmapped(column: Any, child: Any) -> Any:
    """Make lists of a map's keys or of its values."""
    pa = arrow()
    return pa.ListArray.from_arrays(
        pa.array(np.array(column.offsets)), child, mask=column.is_null()
    )


def _of_structs(column: Any) -> IdColumn | None:
    """Read grades by field, null where the row has none: so pandas and polars hold dicts."""
    pa = arrow()
    fields = [_grades(field) for field in column.flatten()]
    if any(field is None for field in fields) or len({f.name for f in column.type}) < len(fields):
        return None
    there = np.array([numpy_of(field.is_valid()) for field in column.flatten()], np.bool_)
    there = there.reshape(len(fields), len(column))
    rows, places = np.nonzero(there.T)
    names = pa.array([field.name for field in column.type], pa.string())
    grades = np.array(fields, np.int64).reshape(there.shape)[places, rows]
    lengths = np.count_nonzero(there, axis=0)
    return IdColumn(nulls_of(column), lengths, names.take(pa.array(places)), grades)


def _grades(values: Any) -> Ints | None:
    """Give integers as they are and 0 for null; None for anything else."""
    pa = arrow()
    if not (pa.types.is_integer(values.type) or pa.types.is_null(values.type)):
        return None
    try:
        grades: Ints = numpy_of(values.cast(pa.int64()).fill_null(0))
    except pa.ArrowInvalid:  # greater than 64 bits hold
        return None
    return grades


def plain_ids(values: Any) -> Any:
    """Give ids, or texts, as 64-bit integers or as strings; None where they are neither."""
    pa = arrow()
    types, kind = pa.types, values.type
    if types.is_dictionary(kind):
        return plain_ids(values.dictionary_decode())
    if types.is_uint64(kind) or types.is_null(kind):
        return values.cast(pa.string())
    if types.is_integer(kind):
        return values.cast(pa.int64())
    if types.is_string(kind) or types.is_large_string(kind):
        return values
    if getattr(types, "is_string_view", lambda kind: False)(kind):
        return values.cast(pa.large_string())
    return None


def _lengths(column: Any) -> Ints:
    lengths = arrow("pyarrow.compute").list_value_length(column)
    if column.null_count:
        lengths = lengths.fill_null(0)
    plain: Ints = numpy_of(lengths).astype(np.int64)
    return plain


def nulls_of(values: Any) -> Bools:
    """Say where there is nothing."""
    if not values.null_count:
        return np.zeros(len(values), np.bool_)
    nulls: Bools = numpy_of(values.is_null())
    return nulls


def numpy_of(values: Any) -> Any:
    """Give an array as numpy's, copied where it has to be."""
    return values.to_numpy(zero_copy_only=False)
