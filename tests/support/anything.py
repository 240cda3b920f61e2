"""Strategies for values of any kind, and for what is nearly right."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import uuid

from hypothesis import strategies as st

TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", " ", "a", "b", "q", "\0", "\ud800", "\u202eyes", "</data>", "{}", "[1]", '"', "nan"]
    ),
    st.text(st.characters(codec=None, exclude_categories=()), max_size=6),
)
NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([0, -1, 2**63, 10**400, math.nan, math.inf, -0.0, 1e308]),
    st.booleans(),
)
JSON_SCALARS = st.one_of(st.none(), TEXTS, NUMBERS)
"""What JSON has, and what Python's reader of it takes besides."""

SCALARS = st.one_of(
    JSON_SCALARS,
    st.binary(max_size=4),
    st.sampled_from(
        [
            decimal.Decimal("1.5"), decimal.Decimal("nan"), datetime.date(2026, 1, 1),
            uuid.UUID(int=7), object(), int, ..., 1j, range(3), frozenset({1}), {2, "a"},
        ]
    ),
)  # fmt: skip


def nested(scalars: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner)),
        max_leaves=8,
    )


ANYTHING = nested(SCALARS)
JSON = nested(JSON_SCALARS)

_TEXT_LISTS = st.lists(TEXTS, max_size=4)
_SPANS = st.lists(
    st.fixed_dictionaries(
        {"document": TEXTS, "start": st.integers(-1, 9), "end": st.integers(-1, 12)}
    ),
    max_size=3,
)
NEARLY = {
    "id": TEXTS,
    "user_input": TEXTS,
    "retrieved_contexts": _TEXT_LISTS,
    "retrieved_context_ids": st.lists(st.one_of(TEXTS, st.integers(0, 4)), max_size=4),
    "retrieved_spans": _SPANS,
    "response": TEXTS,
    "reference": TEXTS,
    "reference_contexts": _TEXT_LISTS,
    "reference_context_ids": st.one_of(
        st.lists(TEXTS, max_size=3), st.dictionaries(TEXTS, st.integers(-2, 3), max_size=3)
    ),
    "reference_claims": _TEXT_LISTS,
    "reference_spans": _SPANS,
    "metadata": st.dictionaries(TEXTS, JSON, max_size=2),
}
"""For each field of a sample what is often right."""


def fields_of(values: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    """Fields of a sample: most of them nearly right, some anything, some of no sample."""
    some = {name: st.one_of(st.none(), nearly, values) for name, nearly in NEARLY.items()}
    right = st.fixed_dictionaries({}, optional=NEARLY)
    return st.one_of(
        right,
        st.fixed_dictionaries({}, optional={**some, "unknown": values}),
    )


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Change a few bytes, cut some out, or put something else in their place."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(0, len(changed) - 1)))
        length = draw(st.integers(0, 6))
        changed[place : place + length] = draw(
            st.one_of(st.binary(max_size=6), st.sampled_from([b"null", b"-1", b"[", b"{}", b'""']))
        )
    return bytes(changed)


@st.composite
def mutated(draw: st.DrawFn, value: object) -> object:
    """Put anything in the place of a part of plain data."""
    if draw(st.integers(0, 9)) == 0:
        return draw(JSON)
    if isinstance(value, dict) and value:
        name = draw(st.sampled_from(sorted(value)))
        if draw(st.integers(0, 5)) == 0:
            return {other: item for other, item in value.items() if other != name}
        return {**value, name: draw(mutated(value[name]))}
    if isinstance(value, list) and value:
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], draw(mutated(value[place])), *value[place + 1 :]]
    return draw(JSON)


def written(value: object) -> str:
    return json.dumps(value, default=str)
