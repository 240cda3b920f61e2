"""Rows that may be no samples, found without a look at single ones."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from ctxeval.evaluation.columns.ids import Bools, Ints
from ctxeval.evaluation.columns.reading import (
    IdColumn,
    arrow,
    holds_texts,
    is_utf8,
    listed,
    nulls_of,
    numpy_of,
    plain_ids,
    read_ids,
    unmapped,
)

PARALLEL = (
    ("retrieved_contexts", "retrieved_context_ids", "retrieved_spans"),
    ("reference_contexts", "reference_context_ids", "reference_spans"),
)
"""The columns whose lists run in parallel."""


def suspects(batch: Any, known: Mapping[str, IdColumn]) -> Bools:
    """Mark the rows of a batch that are to be read one by one: all others are samples.

    Args:
        batch: A record batch of nothing but columns that run in parallel.
        known: Columns of ids that have been read.
    """
    marked = np.zeros(len(batch), np.bool_)
    for side in PARALLEL:
        lengths: dict[str, Ints] = {}
        for name in side:
            if name in batch.schema.names:
                column = batch.column(name)
                if name.endswith("_ids"):
                    of_one, wrong = _of_ids(column, name, known)
                else:
                    of_one, wrong = _of_items(column, spans=name.endswith("_spans"))
                lengths[name] = np.where(nulls_of(column), -1, of_one)
                marked |= wrong
        for one, other in combinations(lengths, 2):
            if (one, other) != ("reference_context_ids", "reference_spans"):
                marked |= (
                    (lengths[one] != lengths[other]) & (lengths[one] >= 0) & (lengths[other] >= 0)
                )
        if len(lengths) > 1 and "reference_context_ids" in lengths:
            marked |= _of_grades(batch.column("reference_context_ids"))
    return marked


def _of_ids(column: Any, name: str, known: Mapping[str, IdColumn]) -> tuple[Ints, Bools]:
    """Give how many ids each row has, and mark the rows that hold what may be none."""
    ids = known.get(name) or read_ids(column, graded=name == "reference_context_ids")
    if ids is None:
        return np.zeros(len(column), np.int64), ~nulls_of(column)
    return ids.lengths, ids.suspects()


def _of_items(column: Any, *, spans: bool) -> tuple[Ints, Bools]:
    """Give how many texts or spans each row has, and mark those that hold what may be none."""
    lists = listed(column)
    if lists is None:
        return np.zeros(len(column), np.int64), ~nulls_of(column)
    lengths, values = lists
    wrong = _wrong_spans(values) if spans else _wrong_texts(values)
    marked = np.zeros(len(column), np.bool_)
    if wrong.any():
        marked[np.repeat(np.arange(len(column)), lengths)[wrong]] = True
    return lengths, marked


def _wrong_texts(values: Any) -> Bools:
    types = arrow().types
    if types.is_dictionary(values.type) and holds_texts(values.type.value_type):
        if values.dictionary.null_count:
            values = values.dictionary_decode()
    elif not holds_texts(values.type):
        return np.ones(len(values), np.bool_)
    held = values.dictionary if types.is_dictionary(values.type) else values
    return nulls_of(values) if is_utf8(held) else np.ones(len(values), np.bool_)


def _wrong_spans(values: Any) -> Bools:
    types, kind = arrow().types, values.type
    if not types.is_struct(kind) or {field.name for field in kind} != {"document", "start", "end"}:
        return np.ones(len(values), np.bool_)
    parts = {field.name: part for field, part in zip(kind, values.flatten(), strict=True)}
    document, start, end = plain_ids(parts["document"]), parts["start"], parts["end"]
    if document is None or not all(types.is_signed_integer(one.type) for one in (start, end)):
        return np.ones(len(values), np.bool_)
    begin, stop = (numpy_of(one.fill_null(-1)) for one in (start, end))
    wrong: Bools = (begin < 0) | (stop < begin) | nulls_of(document) | nulls_of(values)
    if not types.is_integer(document.type):
        lengths = arrow("pyarrow.compute").binary_length(document).fill_null(0)
        wrong |= (numpy_of(lengths) == 0) | (not is_utf8(document))
    return wrong


def _of_grades(column: Any) -> Bools:
    """Mark maps whose entries are more than their ids: one has no grade, or stands there twice."""
    marked = np.zeros(len(column), np.bool_)
    ids = read_ids(column, graded=True) if arrow().types.is_map(column.type) else None
    if ids is None or not len(ids.values):
        return marked
    rows = np.repeat(np.arange(len(column)), ids.lengths)
    codes = numpy_of(ids.values.dictionary_encode().indices.fill_null(-1)).astype(np.int64)
    _, firsts = np.unique(rows * (int(codes.max()) + 2) + codes, return_index=True)
    more = nulls_of(unmapped(column, column.items).flatten())
    more |= ~np.isin(np.arange(len(codes)), firsts)
    marked[rows[more]] = True
    return marked
