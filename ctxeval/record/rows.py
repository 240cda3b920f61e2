"""One row of a source, and the sample that it stands for."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

from ctxeval.errors import InvalidSampleError, near, short
from ctxeval.sample import Sample

RAGAS_COLUMNS = frozenset(
    {
        "multi_responses",
        "rubrics",
        "persona_name",
        "query_style",
        "query_length",
        "synthesizer_name",
    }
)
"""What Ragas writes beside the fields of a `Sample`; it goes to the metadata."""

_OTHER_NAMES = {
    "question": "user_input",
    "query": "user_input",
    "ground_truth": "reference",
    "reference_ids": "reference_context_ids",
}
_TEXTS = frozenset({"id", "user_input", "response", "reference"})
_SPANS = '[{"document": "a", "start": 0, "end": 9}]'
_EXAMPLES = {
    "metadata": '{"topic": "tax"}',
    "reference_context_ids": '["a", "b"], or with grades {"a": 2, "b": 1}',
    "reference_spans": _SPANS,
    "retrieved_spans": _SPANS,
}


class Row(NamedTuple):
    """What a source says of one sample, and where it says so.

    Attributes:
        place: Where the row stands, for messages: "references.csv, line 7".
        fields: The values by name, or the sample itself, or why there is none.
        header: Where the names stand, if the source names them once for all rows.
    """

    place: str
    fields: Mapping[str, Any] | Sample | InvalidSampleError
    header: str = ""

    def sample(self, metadata_columns: Collection[str] = ()) -> Sample:
        """Make the sample.

        Numpy arrays become lists. None, NaN and pandas' NA mean that a field is missing.
        A string in the place of a list, a mapping or the metadata is read as JSON.

        Args:
            metadata_columns: The names whose values go to the metadata.

        Raises:
            InvalidSampleError: The row is no sample; the message names place and field.
        """
        if isinstance(self.fields, Sample):
            return self.fields
        if isinstance(self.fields, InvalidSampleError):
            raise self.fields
        if isinstance(metadata_columns, str):
            metadata_columns = (metadata_columns,)
        known: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for key, cell in self.fields.items():
            name, value = str(key), _value(cell)
            if name in metadata_columns or name in RAGAS_COLUMNS:
                others[name] = value
            elif name in Sample.model_fields:
                known[name] = value
            else:
                raise self._unknown(name)
        try:
            known = {name: _read(name, value) for name, value in known.items()}
            others = {name: value for name, value in others.items() if value is not None}
            if others and isinstance(metadata := known.get("metadata", {}), Mapping | None):
                known["metadata"] = {**(metadata or {}), **others}
            return Sample(**known)
        except InvalidSampleError as error:
            raise InvalidSampleError(f"{self.place}: {error}") from None

    def _unknown(self, name: str) -> InvalidSampleError:
        what = "column" if self.header else "field"
        if name == "" or name.startswith(("Unnamed: ", "__index_level_")):
            remedy = "an index that pandas wrote, perhaps: write without it, index=False"
        elif name.count(";") + name.count("\t") and self.header:
            remedy = "part the cells by commas, or read it by pandas.read_csv(path, sep=…)"
        elif name in _OTHER_NAMES:
            remedy = f"did you mean {_OTHER_NAMES[name]!r}?"
        else:
            remedy = near(name, Sample.model_fields)
        return InvalidSampleError(
            f"{self.header or self.place}: unknown {what} {short(name)} "
            f"(kept if named in metadata_columns): {remedy}"
        )


def columns(names: Iterable[object], place: str) -> list[str]:
    """Take the names of a table's columns, each of which may stand there once.

    Raises:
        InvalidSampleError: One is repeated.
    """
    seen: list[str] = []
    for name in map(str, names):
        if name in seen:
            raise InvalidSampleError(f"{place}: two columns are named {name!r}: leave one")
        seen.append(name)
    return seen


def _value(cell: Any) -> Any:
    """Give what a cell holds in Python's own types, None where it is empty."""
    value = cell.tolist() if hasattr(cell, "tolist") else cell
    if isinstance(value, list):
        return [_value(item) for item in value]
    if isinstance(value, dict):
        return {key: _value(item) for key, item in value.items()}
    is_nan = isinstance(value, Real) and value != value
    return None if is_nan or type(value).__name__ in ("NAType", "NaTType") else value


def _read(field: str, value: Any) -> Any:
    if isinstance(value, str) and field not in _TEXTS:
        value = _parsed(field, value)
    if field == "reference_context_ids" and isinstance(value, Mapping):
        # Arrow's structs have the keys of all rows, empty where a row lacks one.
        return {key: grade for key, grade in value.items() if grade is not None}
    return value


def _parsed(field: str, text: str) -> Any:
    if not text.strip():
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if value is not None and not isinstance(value, (list, dict)):
        kind = "object" if field == "metadata" else "list"
        example = _EXAMPLES.get(field, '["a", "b"]')
        raise InvalidSampleError(
            f"{field}: {short(text)} is no {kind} in JSON: write {example}, as json.dumps does"
        )
    return value
