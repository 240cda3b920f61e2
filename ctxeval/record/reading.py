"""Samples from whatever holds them: files, tables, data sets of other tools, lists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ctxeval.errors import InvalidArgumentError, InvalidSampleError, short
from ctxeval.record.files import file_rows
from ctxeval.record.rows import Row
from ctxeval.record.tables import arrow_batches, arrow_rows, pandas_rows, polars_rows
from ctxeval.sample import Sample

INPUTS = {"question": "user_input", "query": "user_input", "input": "user_input"}
"""How the inputs of LangSmith's examples are called here; other names stay."""

OUTPUTS = {
    "answer": "reference",
    "output": "reference",
    "reference_ids": "reference_context_ids",
}
"""How the outputs of LangSmith's examples are called here; other names stay."""


def read_samples(source: Any, *, metadata_columns: Collection[str] = ()) -> Samples:
    """Go through the samples of any source, one by one.

    Columns, keys and attributes have the names of a `Sample`'s fields. A string in the
    place of a list holds JSON, `["a", "b"]`; a mapping of grades likewise. An empty
    cell, NaN, None and pandas' NA mean that the field is missing. Fields that only
    Ragas has go to the metadata. Files are UTF-8; .jsonl and .csv are read line by line.

    Args:
        source: One of

            - a path: .jsonl, .json (a list), .csv (with a header) or .parquet;
            - a DataFrame of pandas or polars; a Table, RecordBatch, RecordBatchReader or
              Dataset of pyarrow;
            - a data set or test set of Ragas;
            - examples of LangSmith: of the inputs, `question`, `query` and `input` are
              the `user_input`; of the outputs, `answer` and `output` are the
              `reference`, `reference_ids` the `reference_context_ids`; any other name
              is that of a field; `id` and `metadata` are the example's;
            - any iterable of `Sample`s or dicts.
        metadata_columns: Further columns, which go to the metadata.

    Returns:
        An iterator, which reads no more than it is asked for.

    Raises:
        InvalidSampleError: While reading: a row is no sample, or a file is broken. The
            message names file, line or row (counted from 1), field, and remedy.
        InvalidArgumentError: The source is none of these.
        MissingExtraError: While reading: a Parquet file needs pyarrow.

    Examples:
        >>> [sample.reference for sample in read_samples([{"reference": "Goethe"}])]
        ['Goethe']
    """
    return Samples(source, metadata_columns)


class Samples(Iterator[Sample]):
    """Samples as they are read; who can do with bad ones takes the rows.

    Attributes:
        source: Where they are read from.
        metadata_columns: The columns that go to the metadata.
        begun: Has one been asked for?
    """

    def __init__(self, source: Any, metadata_columns: Collection[str]) -> None:
        """See `read_samples`."""
        self.source = source
        self.metadata_columns: Collection[str] = (
            (metadata_columns,) if isinstance(metadata_columns, str) else metadata_columns
        )
        self.begun = False
        self._rows = rows_of(source, "samples")

    def __next__(self) -> Sample:
        """Read the next one."""
        self.begun = True
        return next(self._rows).sample(self.metadata_columns)

    def rows(self) -> Iterator[Row]:
        """Go through the rows that are left, each with its sample, or why there is none."""
        self.begun = True
        for row in self._rows:
            try:
                yield row._replace(fields=row.sample(self.metadata_columns))
            except InvalidSampleError as error:
                yield row._replace(fields=error)


def path_of(source: Any) -> Path | None:
    """Give the file that a source is read from, if it is one."""
    if isinstance(source, Samples):
        return path_of(source.source)
    return Path(source) if isinstance(source, (str, PathLike)) else None


def rows_of(source: Any, name: str) -> Iterator[Row]:
    """Go through the rows of any source.

    Args:
        source: As of `read_samples`.
        name: What messages call a source that has no path.

    Raises:
        InvalidSampleError: As of `read_samples`.
        InvalidArgumentError: Likewise.
        MissingExtraError: Likewise.
    """
    if isinstance(source, Samples):
        return source.rows()
    if isinstance(source, (str, PathLike)):
        return file_rows(source, holds=name.removesuffix("s"))
    if hasattr(source, "itertuples"):
        return pandas_rows(source, name)
    if hasattr(source, "iter_rows"):
        return polars_rows(source, name)
    batches = arrow_batches(source)
    if batches is not None:
        return arrow_rows(batches, source.schema.names, name)
    items = getattr(source, "samples", source)
    if isinstance(items, (Mapping, Sample)) or not isinstance(items, Iterable):
        remedy = f"give a list of {name}, a table, or a path"
        if hasattr(source, "collect_schema"):  # polars' LazyFrame
            remedy = "give its .collect()"
        raise InvalidArgumentError(f"{name}: {short(source)} is no list: {remedy}")
    return (_row(item, f"{name}[{index}]", name) for index, item in enumerate(items))


def _row(item: Any, place: str, name: str) -> Row:
    if isinstance(item, Row):
        return item
    if isinstance(item, (Sample, Mapping)):
        return Row(place, item)
    if hasattr(item, "inputs") and hasattr(item, "outputs"):
        return Row(place, _langsmith(item, place))
    if hasattr(item, "model_dump"):
        return Row(place, _ragas(item))
    what = "label: give a" if name == "labels" else "sample: give a Sample or a"
    said = f"{place}: {short(item)} ({type(item).__name__}) is no {what} dict of its fields"
    return Row(place, InvalidSampleError(said))


def _ragas(sample: Any) -> dict[str, Any]:
    fields = sample.model_dump()
    fields.update(fields.pop("eval_sample", {}))  # of a test set
    return {name: value for name, value in fields.items() if value is not None}


def _langsmith(example: Any, place: str) -> dict[str, Any] | InvalidSampleError:
    fields: dict[str, Any] = {"id": example.id, "metadata": example.metadata}
    for side, ours in ((example.inputs, INPUTS), (example.outputs, OUTPUTS)):
        for name, value in (side or {}).items():
            field = ours.get(str(name), str(name))
            if field in fields:
                return InvalidSampleError(
                    f"{place}: {name!r} is a second {field!r} of this example: leave one"
                )
            fields[field] = value
    return fields
