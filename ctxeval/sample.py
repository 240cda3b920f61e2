"""One question with what was retrieved and what was expected."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sized
from math import isfinite
from numbers import Integral, Rational, Real
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from ctxeval.errors import InvalidSampleError, near, short

MAX_CLAIMS = 30
"""How many claims of one reference are judged at most."""


class Span(BaseModel):
    """A range of characters in a source document.

    Attributes:
        document: The document's id.
        start: The first character, counted from 0.
        end: One past the last character.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    document: str
    start: int
    end: int

    def __init__(self, document: object, start: int, end: int) -> None:
        """Make a span.

        Raises:
            InvalidSampleError: A bound is no integer, is negative or the end precedes the start.
        """
        for name, value in (("start", start), ("end", end)):
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
                raise InvalidSampleError(
                    f"Span.{name}: {short(value)} is no character position: give an integer >= 0"
                )
        if end < start:
            raise InvalidSampleError(f"Span: end {end} precedes start {start}: exchange them")
        try:
            name = as_id(document)
        except ValueError as error:
            raise InvalidSampleError(f"Span.document: {error}") from None
        super().__init__(document=name, start=int(start), end=int(end))


def as_id(value: object) -> str:
    """Write an id as text, the one form in which ids are compared.

    Args:
        value: A `str`, an `int`, or anything whose `str()` is the same each time
            (a UUID, say). Integral floats equal their integers, since pandas
            turns the one into the other.

    Returns:
        The id as `str`, unchanged but for the type: `1` becomes `"1"`, which
        does not equal `"01"`.

    Raises:
        ValueError: It is None, "", a boolean, NaN, bytes, or an object whose
            `str()` is its address in memory.

    Examples:
        >>> as_id(7), as_id(7.0), as_id("07")
        ('7', '7', '07')
    """
    kind = type(value)
    if kind is str and value:
        return value  # type: ignore[return-value]  # kind is str
    if kind is int:
        return str(value)
    if value is None or kind.__name__ in ("bool", "bool_") or isinstance(value, (bytes, bytearray)):
        raise ValueError(f"{short(value)} is no id: give a str or an int")
    whole = _whole(value)
    if kind.__name__ in ("NAType", "NaTType") or (whole is None and _is_nan_or_infinite(value)):
        raise ValueError(f"{short(value)} is no id: a cell of the table is empty, perhaps")
    if isinstance(value, str):
        text = str.__str__(value)  # of a member of an enum the value, not its name
    else:
        text = str(value) if whole is None else str(whole)
    if not text:
        raise ValueError("'' is no id: leave it out if it is not known")
    if hex(id(value))[2:] in text.lower():
        raise ValueError(f"{short(value)} is no id: its str() is different in every run")
    return text


def _whole(value: object) -> int | None:
    """Give a whole number, of whatever type, as int; None for anything else."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Rational):
        number = float(value)
        return int(number) if number.is_integer() else None
    return None


def _is_nan_or_infinite(value: object) -> bool:
    return isinstance(value, Real) and not isfinite(value)


def _listed(value: object, what: str) -> Iterable[Any]:
    if isinstance(value, str):
        raise ValueError(f"{short(value)} is one string: put it into a list of {what}")
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        raise ValueError(f"{short(value)} is a {type(value).__name__}: give a list of {what}")
    return value


def _ids(value: object) -> object:
    if value is None:
        return None
    items = tuple(_listed(value, "ids"))
    if set(map(type, items)) == {str} and "" not in items:
        return items
    ids = []
    for index, item in enumerate(items):
        try:
            ids.append(as_id(item))
        except ValueError as error:
            raise ValueError(f"[{index}]", str(error)) from None
    return tuple(ids)


def _graded_ids(value: object) -> object:
    if not isinstance(value, Mapping):
        return _ids(value)
    grades: dict[str, int] = {}
    for key, grade in value.items():
        name = as_id(key)
        whole = None if isinstance(grade, bool) else _whole(grade)
        if whole is None:
            raise ValueError(f"[{key!r}]", f"the grade {short(grade)} is no integer: 0, 1, 2, …")
        if grades.setdefault(name, whole) != whole:
            raise ValueError(f"[{key!r}]", f"{name!r} stands there twice with different grades")
    return grades


def _text(value: object) -> object:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{short(value)} is a {type(value).__name__}: give a string")
    return value


def _texts(value: object) -> object:
    if value is None:
        return None
    items = tuple(_listed(value, "texts"))
    for index, item in enumerate(items):
        if not isinstance(item, str):
            hint = " (of a Document, its page_content)" if hasattr(item, "page_content") else ""
            raise ValueError(
                f"[{index}]", f"{short(item)} is a {type(item).__name__}: give its text{hint}"
            )
    return items


def _claims(value: object) -> object:
    items = _texts(value)
    if isinstance(items, tuple):
        if len(items) > MAX_CLAIMS:
            raise ValueError(f"{len(items)} claims are too many: give at most {MAX_CLAIMS}")
        for index, item in enumerate(items):
            if not item.strip():
                raise ValueError(f"[{index}]", "the claim is blank: leave it out")
    return items


def _spans(value: object) -> object:
    if value is None:
        return None
    spans = []
    for index, item in enumerate(_listed(value, "Spans")):
        if isinstance(item, Mapping):
            try:
                spans.append(Span(**item))
            except TypeError:
                raise ValueError(
                    f"[{index}]", f"{short(item)} is no span: give document, start and end"
                ) from None
            except InvalidSampleError as error:
                raise ValueError(f"[{index}]", str(error)) from None
        elif isinstance(item, Span):
            spans.append(item)
        else:
            raise ValueError(
                f"[{index}]", f"{short(item)} is no Span: give Span(document, start, end)"
            )
    return tuple(spans)


def _metadata(value: object) -> object:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{short(value)} is a {type(value).__name__}: give a dict")
    return dict(value)


def _sample_id(value: object) -> object:
    return None if value is None else as_id(value)


Text = Annotated[str | None, BeforeValidator(_text)]
Texts = Annotated[tuple[str, ...] | None, BeforeValidator(_texts)]
Ids = Annotated[tuple[str, ...] | None, BeforeValidator(_ids)]
GradedIds = Annotated[dict[str, int] | tuple[str, ...] | None, BeforeValidator(_graded_ids)]
Spans = Annotated[tuple[Span, ...] | None, BeforeValidator(_spans)]


class Sample(BaseModel):
    """One question with what was retrieved and what was expected.

    Every field is optional: a metric names the fields that it needs. Lists of texts,
    ids and spans of the same side run in parallel, best rank first, and become tuples.

    Attributes:
        id: The sample's own id; `key` stands in for a missing one.
        user_input: The question.
        retrieved_contexts: The texts of the retrieved chunks.
        retrieved_context_ids: Their ids: `str`, `int` or anything with a stable
            `str()`; kept and compared as `str`.
        retrieved_spans: Where in their documents they stand.
        response: The application's answer.
        reference: The answer that was expected.
        reference_contexts: The texts that should have been retrieved.
        reference_context_ids: The ids that should have been retrieved; a mapping
            gives each its grade, an integer: 0 or less means not expected.
        reference_spans: The places that should have been retrieved.
        reference_claims: What the reference says, claim by claim, at most 30; for
            those who don't want the model to split it.
        metadata: Anything else, for grouping.

    Raises:
        InvalidSampleError: A field is unknown, has the wrong type, holds an empty
            id, or differs in length from its parallel.

    Examples:
        >>> sample = Sample(retrieved_context_ids=[1, "b"], reference_context_ids={"b": 2})
        >>> sample.retrieved_context_ids
        ('1', 'b')
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    id: Annotated[str | None, BeforeValidator(_sample_id)] = None
    user_input: Text = None
    retrieved_contexts: Texts = None
    retrieved_context_ids: Ids = None
    retrieved_spans: Spans = None
    response: Text = None
    reference: Text = None
    reference_contexts: Texts = None
    reference_context_ids: GradedIds = None
    reference_spans: Spans = None
    reference_claims: Annotated[tuple[str, ...] | None, BeforeValidator(_claims)] = None
    metadata: Annotated[dict[str, Any], BeforeValidator(_metadata)] = {}

    def __init__(self, **fields: Any) -> None:
        """Check the fields and keep them; see the class for their meaning."""
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InvalidSampleError(_explain(error, type(self).model_fields)) from None

    def model_post_init(self, context: Any, /) -> None:
        """Check that lists which run in parallel are of one length."""
        _parallel(
            "retrieved", self.retrieved_contexts, self.retrieved_context_ids, self.retrieved_spans
        )
        _parallel(
            "reference", self.reference_contexts, self.reference_context_ids, self.reference_spans
        )

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse: a sample does not change."""
        raise InvalidSampleError(
            f"Sample.{name}: a sample does not change: sample.model_copy(update={{{name!r}: …}})"
        )

    def __delattr__(self, name: str) -> None:
        """Refuse: a sample does not change."""
        raise InvalidSampleError(
            f"Sample.{name}: a sample does not change: sample.model_copy(update={{{name!r}: None}})"
        )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Make a sample that differs in the given fields, checked like any other."""
        del deep  # everything inside is immutable or copied
        return type(self)(**{**dict(self), **(update or {})})

    @property
    def key(self) -> str:
        """The sample's id, or else a hash of its question and what is expected."""
        if self.id is not None:
            return self.id
        expected = [
            self.user_input,
            self.reference,
            self.reference_contexts,
            self.reference_context_ids,
            self.reference_spans
            and [tuple(span.__dict__.values()) for span in self.reference_spans],
            self.reference_claims,
        ]
        text = json.dumps(expected, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __hash__(self) -> int:
        """Hash by `key`: equal samples have equal keys."""
        return hash(self.key)

    @classmethod
    def of(cls, sample: Self | Mapping[str, Any] | None = None, /, **fields: Any) -> Self:
        """Take a sample as it is, or make one from a mapping or from keywords."""
        if sample is None:
            return cls(**fields)
        if fields:
            names = ", ".join(fields)
            raise InvalidSampleError(f"a sample and fields ({names}) were given: give either")
        if isinstance(sample, Sample):
            return sample
        if isinstance(sample, Mapping):
            return cls(**{str(name): value for name, value in sample.items()})
        raise InvalidSampleError(
            f"{short(sample)} is a {type(sample).__name__}: give a Sample or a dict of its fields"
        )


def _parallel(
    side: str,
    contexts: tuple[str, ...] | None,
    ids: Sized | None,
    spans: tuple[Span, ...] | None,
) -> None:
    if (contexts is None) + (ids is None) + (spans is None) >= 2:
        return
    lengths = {len(values) for values in (contexts, ids, spans) if values is not None}
    if len(lengths) > 1:
        named = {"contexts": contexts, "context_ids": ids, "spans": spans}
        listed = ", ".join(f"{side}_{n} has {len(v)}" for n, v in named.items() if v is not None)
        raise InvalidSampleError(f"{listed}: they run in parallel, so give each the same length")


_SYNONYMS = {
    "question": "user_input",
    "query": "user_input",
    "contexts": "retrieved_contexts",
    "answer": "response",
    "ground_truth": "reference",
    "ground_truths": "reference",
}
"""What other libraries call the fields."""


def _explain(error: ValidationError, known: Iterable[str]) -> str:
    """Say in our own words what pydantic found: one clause per field."""
    clauses = []
    for found in error.errors(include_url=False):
        field = str(found["loc"][0]) if found["loc"] else "Sample"
        if found["type"] == "extra_forbidden":
            meant = _SYNONYMS.get(field.casefold(), field)
            clauses.append(f"unknown field {field!r}: {near(meant, known)}")
        elif found["type"] == "value_error":
            *index, message = found.get("ctx", {})["error"].args
            clauses.append(f"{field}{''.join(index)}: {message}")
        else:
            clauses.append(f"{field}: {found['msg']}, not {short(found['input'])}")
    return "; ".join(clauses)
