"""Read verdicts out of a model's reply: a pure function that never guesses.

Only the reply is read, never the chunks, so what a chunk says about itself changes nothing
here. What cannot be read is left out with a reason, to be asked again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ctxeval.errors import short

MAX_LETTERS = 4_000_000
"""How much of a reply is read: its end, where verdicts stand."""

MAX_REASON = 500
"""How many characters of a reason are kept."""

MAX_BROKEN = 1000
"""So many beginnings of objects that come to nothing are read past, so that a model that
has lost its way costs no time."""

_YES_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_TOKEN = re.compile(r"<think>|</think>|\{(?=\s*\")")
_NUMBER = re.compile(r"(?:chunk|claim|id)?[\s_#-]*(\d{1,9})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """What the model said of one chunk or claim.

    Attributes:
        value: Its verdict; None where it could not be read.
        reason: Its reason, or why the verdict could not be read.
        chunks: For a claim: the numbers of the chunks that it needs.
    """

    value: bool | None
    reason: str
    chunks: tuple[int, ...] = ()


def read_verdicts(
    text: str, *, chunks: Sequence[int], claims: int, shown: int
) -> tuple[dict[int, Reading], dict[int, Reading]]:
    """Read the verdicts on chunks and claims.

    Args:
        text: The reply: JSON, perhaps fenced, with prose or `<think>` blocks around it.
            Of several objects the last one that has chunks counts for these, and the
            last one that has claims for those.
        chunks: The numbers of the chunks to be judged.
        claims: How many claims were to be judged; they are numbered from 1.
        shown: How many chunks were shown; they are numbered from 1.

    Returns:
        A reading for every chunk and every claim that was asked for, by number.
    """
    said = _last_lists(text)
    nothing = "the reply holds no JSON with verdicts" + (f": {short(text)}" if text.strip() else "")
    claim_numbers = range(1, claims + 1)
    if not said:
        unread = Reading(None, nothing)
        return dict.fromkeys(chunks, unread), dict.fromkeys(claim_numbers, unread)
    return (
        _read_items(said.get("chunks"), chunks, None),
        _read_items(said.get("claims"), claim_numbers, shown),
    )


def read_claims(text: str) -> list[str]:
    """Read the claims that a reference was split into: trimmed, blank and repeated ones left out.

    Returns:
        The claims; empty where the reply holds none.
    """
    items = _last_lists(text).get("claims")
    claims: dict[str, str] = {}
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict):
            item = next((item[key] for key in ("claim", "text") if key in item), None)
        if isinstance(item, str) and (claim := _tidy(item)):
            claims.setdefault(claim.casefold(), claim)
    return list(claims.values())


def _read_items(items: object, numbers: Sequence[int], shown: int | None) -> dict[int, Reading]:
    found: dict[int, list[Reading]] = {}
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and (number := _number(item.get("id"))) in numbers:
            found.setdefault(number, []).append(_read_item(item, shown))
    return {number: _agree(found.get(number, [])) for number in numbers}


def _agree(readings: list[Reading]) -> Reading:
    if not readings:
        return Reading(None, "the reply holds no verdict on it")
    if len({reading.value for reading in readings}) > 1:
        return Reading(None, "the reply holds different verdicts on it")
    return readings[-1]


def _read_item(item: dict[str, Any], shown: int | None) -> Reading:
    said = item.get("reason")
    reason = _tidy(said)[:MAX_REASON] if isinstance(said, str) else ""
    value = _verdict(item.get("verdict"))
    if value is None:
        return Reading(None, f"{short(item.get('verdict'))} is no verdict: yes or no was asked")
    if shown is None or not value:
        return Reading(value, reason)
    named = item.get("supporting_chunks")
    listed = named if isinstance(named, list) else [named]
    numbers = {number for entry in listed if (number := _number(entry)) in range(1, shown + 1)}
    if not numbers:
        return Reading(None, "the reply calls it supported, but names no chunk that was shown")
    return Reading(True, reason, tuple(sorted(numbers)))


def _tidy(text: str) -> str:
    """Write text on one line, without the halves of characters, which no file takes."""
    return " ".join(text.split()).encode("utf-8", "replace").decode("utf-8")


def _verdict(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, (str, int)):
        return _YES_NO.get(str(value).strip().strip(".!").casefold())
    return None


def _number(value: object) -> int:
    """Read an id; 0, which no item has, where it is none."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e9:
        return int(value)
    if isinstance(value, int):
        return value
    matched = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(matched[1]) if matched else 0


def _last_lists(text: str) -> dict[str, Any]:
    """Give what the last objects that have them say of chunks and of claims."""
    last: dict[str, Any] = {}
    for document in _documents(text[-MAX_LETTERS:]):
        last.update((key, document[key]) for key in ("chunks", "claims") if key in document)
    return last


def _documents(text: str) -> Iterator[dict[str, Any]]:
    """Find the JSON objects of a text in order, but for those in a model's thoughts."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    thinking = False
    position = broken = 0
    while broken < MAX_BROKEN and (match := _TOKEN.search(text, position)):
        position = match.end()
        if match[0] == "<think>":
            thinking = True
        elif match[0] == "</think>":  # what came before were thoughts, however they began
            thinking = False
            found.clear()
        elif not thinking:
            try:
                value, position = decoder.raw_decode(text, match.start())
            except (ValueError, RecursionError):
                broken += 1
                continue
            found.extend(_unwrapped(value))
    return iter(found)


def _unwrapped(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Take an object as it is, and out of an object that holds nothing else."""
    yield value
    inner = list(value.values())
    if len(inner) == 1 and isinstance(inner[0], dict):
        yield inner[0]
