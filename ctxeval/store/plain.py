"""Plain data as bytes: JSON that takes what applications put into their metadata."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import Any

import pydantic_core
from pydantic import BaseModel

MAX_DEPTH = 50


class Strings(defaultdict[str, int]):
    """The strings of one row that are kept once for all rows, by their place in the row's list.

    Examples:
        >>> strings = Strings()
        >>> strings["a"], strings["b"], strings["a"]
        (0, 1, 0)
    """

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__(count().__next__)


def encode(value: Any) -> bytes:
    """Write plain data as JSON.

    What JSON has no form for is written as text: dates, ids of classes of their own, keys
    that are no strings. Tuples and sets become lists. Nothing is refused.
    """
    try:
        return _to_json(value)
    except ValueError:  # lone surrogates, bytes, circles, depth
        return json.dumps(_plain(value, 0)).encode()


def decode(data: bytes | str) -> Any:
    """Read what `encode` wrote."""
    return json.loads(data)


def written(value: Any) -> str:
    """Write plain data as JSON, as text: for what is put aside as a whole."""
    try:
        return _to_json(value).decode()
    except ValueError:
        return encode(value).decode()


def to_bytes(text: str) -> bytes:
    """Write any text as bytes."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """Read what `to_bytes` wrote."""
    return data.decode("utf-8", "surrogatepass")


def _fallback(value: Any) -> Any:
    if hasattr(value, "item"):  # a number of numpy
        try:
            return value.item()
        except Exception:
            return _said(value)
    return _said(value)


def _said(value: Any) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, (str, int, float)) or value is None:
        return value
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if depth < MAX_DEPTH and isinstance(value, Mapping):
        return {_said(key): _plain(item, depth + 1) for key, item in value.items()}
    if depth < MAX_DEPTH and isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, depth + 1) for item in value]
    return _said(_fallback(value))


LONG = 24
"""From so many characters on a string of a row is kept once."""


def fold(value: Any, strings: Strings) -> Any:
    """Put the long strings of plain data aside.

    Args:
        value: The data.
        strings: Where they are put. In their stead stands `{"": place}`.
    """
    if isinstance(value, str):
        return {"": strings[value]} if len(value) >= LONG else value
    if isinstance(value, Mapping):
        folded = {key: fold(item, strings) for key, item in value.items()}
        return {"": [folded]} if folded.keys() == {""} else folded
    if isinstance(value, (list, tuple)):
        return [fold(item, strings) for item in value]
    return value


def unfold(value: Any, strings: list[str]) -> Any:
    """Put the strings back that `fold` put aside, after a way through JSON."""
    if isinstance(value, dict):
        if value.keys() == {""}:
            inner = value[""]
            if isinstance(inner, int):
                return strings[inner]
            return {"": unfold(inner[0][""], strings)}
        return {key: unfold(item, strings) for key, item in value.items()}
    if isinstance(value, list):
        return [unfold(item, strings) for item in value]
    return value


# Five times as fast as json, which a record's time depends on.
_to_json = partial(pydantic_core.to_json, fallback=_fallback, inf_nan_mode="constants")
