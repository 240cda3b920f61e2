"""Pairs that people have labelled, and the files that hold them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ctxeval.calibration.calibration import Purpose
from ctxeval.errors import InvalidSampleError, near, short
from ctxeval.record.reading import rows_of

PURPOSES: tuple[Purpose, ...] = ("question", "reference", "response", "support")
FIELDS = (
    "purpose",
    "user_input",
    "reference",
    "response",
    "claim",
    "chunk",
    "chunks",
    "label",
    "sample",
)
TOP_GRADE = 999
"""The highest grade."""

_GRADE = re.compile(r"[0-9]{1,3}(\.0)?")
_WORDS = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


@dataclass(frozen=True, slots=True)
class Pair:
    """What is judged: a chunk for a purpose, or a claim for support by chunks.

    Attributes:
        purpose: "question", "reference" or "response": is the chunk useful for it? "support":
            do the chunks support the claim?
        question: The question; "" where a claim has none.
        target: The reference, the response or the claim; "" for the question alone.
        chunks: The chunk, or those beside the claim.
        sample: The id of the sample that it comes from; "" where it is of none.
    """

    purpose: Purpose
    question: str
    target: str
    chunks: tuple[str, ...]
    sample: str = ""

    @property
    def query(self) -> str:
        """What the chunks are looked through for."""
        return self.target or self.question

    @property
    def judged(self) -> tuple[object, ...]:
        """What decides its label: all but the sample's id."""
        return self.purpose, self.question, self.target, self.chunks


@dataclass(frozen=True, slots=True)
class Labelled:
    """A pair, and what somebody said of it.

    Attributes:
        pair: The pair.
        label: Yes or no, or a grade, of which those above 0 are a yes.
    """

    pair: Pair
    label: bool | int

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, by the fields of a label file."""
        pair = self.pair
        data: dict[str, Any] = {"purpose": pair.purpose}
        if pair.question:
            data["user_input"] = pair.question
        if pair.purpose == "support":
            data["claim"], data["chunks"] = pair.target, list(pair.chunks)
        else:
            if pair.target:
                data[pair.purpose] = pair.target
            data["chunk"] = pair.chunks[0]
        if pair.sample:
            data["sample"] = pair.sample
        return {**data, "label": self.label}


def read_labels(source: Any) -> Iterator[Labelled]:
    """Go through labels: a file of JSON, one object a line, or of CSV with a header; or a list.

    Of a chunk the fields are `user_input`, `chunk`, `label`, and `reference` or `response` where
    it was labelled for that; of a claim `claim`, `chunks` (a list; in CSV as JSON), `label`.
    `purpose` is needed only where these leave it open; `sample`, the id of a sample, never.
    A label is yes or no, true or false, or an integer grade, of which those above 0 are a yes.

    Args:
        source: A path (.jsonl, .json, .csv, .parquet), a DataFrame, or a list of dicts with
            these fields.

    Raises:
        InvalidSampleError: While reading: a line is no label, or the file can't be read. The
            message names file, line and field.
    """
    if isinstance(source, list):
        source = [one.to_dict() if isinstance(one, Labelled) else one for one in source]
    for row in rows_of(source, "labels"):
        if isinstance(row.fields, InvalidSampleError):
            raise row.fields
        try:
            if not isinstance(row.fields, Mapping):
                raise _Bad(f"{short(row.fields)} is no label: give a dict of its fields")
            yield _labelled(row.fields)
        except _Bad as bad:
            raise InvalidSampleError(f"{row.place}: {bad}") from None


def _empty(value: object) -> bool:
    """Is that a cell without anything in it, as tables write them?"""
    return value is None or (isinstance(value, float) and value != value)


class _Bad(ValueError):
    """What is wrong with a field."""


def _labelled(given: Mapping[str, Any]) -> Labelled:
    fields = {str(name): value for name, value in given.items() if not _empty(value)}
    for name in fields:
        if name not in FIELDS:
            raise _Bad(f"unknown field {short(name)}: {near(name, FIELDS)}")
    label = _label(fields.get("label"))
    purpose = _purpose(fields)
    chunks = _chunks(fields, purpose)
    target = "" if purpose == "question" else _text(fields, _target_field(purpose), purpose)
    question = _text(fields, "user_input", purpose, needed=purpose != "support")
    sample = fields.get("sample")
    return Labelled(
        Pair(purpose, question, target, chunks, "" if sample is None else str(sample)), label
    )


def _target_field(purpose: Purpose) -> str:
    return "claim" if purpose == "support" else purpose


def _purpose(fields: Mapping[str, Any]) -> Purpose:
    given = fields.get("purpose")
    for one in PURPOSES:
        if given == one:
            return one
    if given is not None:
        raise _Bad(f"purpose: {short(given)} is unknown: {near(given, PURPOSES)}")
    there: list[Purpose] = [
        one for one in PURPOSES[1:] if fields.get(_target_field(one)) is not None
    ]
    if len(there) > 1:
        raise _Bad(
            "purpose: there is a "
            + " and a ".join(map(_target_field, there))
            + f": say which was meant, as one of {', '.join(there)}"
        )
    return there[0] if there else "question"


def _text(fields: Mapping[str, Any], name: str, purpose: Purpose, *, needed: bool = True) -> str:
    value = fields.get(name)
    if value is None and not needed:
        return ""
    if value is None or (isinstance(value, str) and not value.strip()):
        raise _Bad(f"{name}: it is missing or blank: a label for {purpose!r} needs it")
    if not isinstance(value, str):
        raise _Bad(f"{name}: {short(value)} is no text: write a string")
    return value


def _chunks(fields: Mapping[str, Any], purpose: Purpose) -> tuple[str, ...]:
    several = fields.get("chunks")
    if purpose != "support" or several is None:
        if several is not None:
            raise _Bad("chunks: only claims are labelled with several: write each as a chunk")
        return (_text(fields, "chunk", purpose),)
    if fields.get("chunk") is not None:
        raise _Bad("chunk: there are chunks too: leave one")
    if isinstance(several, str):
        try:
            several = json.loads(several)
        except (ValueError, RecursionError):
            raise _Bad(
                f'chunks: {short(several)} is no list in JSON: write ["a", "b"], or a chunk'
            ) from None
    if hasattr(several, "tolist"):
        several = several.tolist()
    if not isinstance(several, list) or not several:
        raise _Bad(f'chunks: {short(several)} is no list of texts: write ["a", "b"]')
    for place, one in enumerate(several):
        if not isinstance(one, str) or not one.strip():
            raise _Bad(f"chunks[{place}]: {short(one)} is no text: leave it out")
    return tuple(several)


def _label(value: Any) -> bool | int:
    value = value.tolist() if hasattr(value, "tolist") else value  # of numpy's kinds
    if isinstance(value, str):
        word = value.strip().casefold()
        if word in _WORDS:
            return _WORDS[word]
        value = int(word.split(".")[0]) if _GRADE.fullmatch(word) else value
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and 0 <= value <= TOP_GRADE:
        return value
    if isinstance(value, float) and 0 <= value <= TOP_GRADE and value.is_integer():
        return int(value)
    said = "it is missing" if value is None else f"{short(value)} is no label"
    raise _Bad(f"label: {said}: write true or false, or an integer grade from 0 to {TOP_GRADE}")
