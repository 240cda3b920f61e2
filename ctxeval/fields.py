"""What the fields of a sample take: ids, texts, grades, claims; each said clearly if wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from numbers import Integral, Rational, Real
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError

from ctxeval.errors import near, short

MAX_CLAIMS = 30
"""How many claims of one reference are judged at most."""


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
    if isinstance(value, (list, tuple, set, frozenset, dict)) or getattr(value, "ndim", 0) > 0:
        raise ValueError(f"{short(value)} is a {kind.__name__}, no id: the list is nested, perhaps")
    if hex(id(value))[2:] in text.lower():
        raise ValueError(f"{short(value)} is no id: its str() is different in every run")
    return text


def _whole(value: object) -> int | None:
    """Give a whole number, of whatever type, as int; None for anything else."""
    if not _is_number(value):
        return None
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Rational):
        number = float(value)
        return int(number) if number.is_integer() else None
    return None


def _is_nan_or_infinite(value: object) -> bool:
    if type(value).__name__ == "Decimal":  # which is no Real
        return not value.is_finite()  # type: ignore[attr-defined]  # it is a Decimal
    return isinstance(value, Real) and _is_number(value) and not isfinite(value)


def _is_number(value: object) -> bool:
    """Is it a number? To numpy a span of time is one, too."""
    return isinstance(value, Real) and type(value).__name__ != "timedelta64"


def listed(value: object, what: str) -> Iterable[Any]:
    """Take whatever can be gone through, but for a string, bytes or a mapping.

    Raises:
        ValueError: It is none.
    """
    if isinstance(value, str):
        raise ValueError(f"{short(value)} is one string: put it into a list of {what}")
    if isinstance(value, (bytes, bytearray, Mapping)) or hasattr(value, "columns"):
        raise ValueError(f"{short(value)} is a {type(value).__name__}: give a list of {what}")
    if not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        raise ValueError(f"{short(value)} is a {type(value).__name__}: give a list of {what}")
    return value


def _ids(value: object) -> object:
    if value is None:
        return None
    items = tuple(listed(value, "ids"))
    if set(map(type, items)) == {str} and "" not in items:
        return items
    ids = []
    for index, item in enumerate(items):
        try:
            ids.append(as_id(item))
        except ValueError as error:
            raise ValueError(f"[{index}]", str(error)) from None
    return tuple(ids)


def _ranked(value: object) -> object:
    """Refuse what has no order where the order is the rank."""
    if isinstance(value, (set, frozenset)):
        raise ValueError(
            f"{short(value)} is a set, whose order means nothing: give a list, best first"
        )
    return value


def _ranked_ids(value: object) -> object:
    return _ids(_ranked(value))


def _ranked_texts(value: object) -> object:
    return _texts(_ranked(value))


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
    items = tuple(listed(value, "texts"))
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
RankedTexts = Annotated[tuple[str, ...] | None, BeforeValidator(_ranked_texts)]
RankedIds = Annotated[tuple[str, ...] | None, BeforeValidator(_ranked_ids)]
GradedIds = Annotated[dict[str, int] | tuple[str, ...] | None, BeforeValidator(_graded_ids)]
Claims = Annotated[tuple[str, ...] | None, BeforeValidator(_claims)]
SampleId = Annotated[str | None, BeforeValidator(_sample_id)]
Metadata = Annotated[dict[str, Any], BeforeValidator(_metadata)]


_SYNONYMS = {
    "question": "user_input",
    "query": "user_input",
    "contexts": "retrieved_contexts",
    "answer": "response",
    "ground_truth": "reference",
    "ground_truths": "reference",
}
"""What other libraries call the fields."""


def explain(error: ValidationError, known: Iterable[str]) -> str:
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
