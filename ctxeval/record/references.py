"""What is expected, looked up by question or by an explicit id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ctxeval.errors import InvalidArgumentError, InvalidSampleError, short
from ctxeval.sample import Sample


class Found(NamedTuple):
    """What a lookup brought.

    Attributes:
        sample: The expectation, None where none was found.
        reason: Why none was found; "" where one was.
    """

    sample: Sample | None
    reason: str = ""


class References:
    """What is expected of an application, question by question.

    Args:
        samples: `Sample`s, or dicts with the same field names.
        strict: Refuse different references for one question at once? Otherwise they
            load, and such a question is found by id only.

    Raises:
        InvalidSampleError: One of them is no sample, or lacks both id and question.
        InvalidArgumentError: Two with one id differ, or, with `strict`, two with one question.

    Examples:
        >>> references = References(
        ...     [{"user_input": "Who wrote Faust?", "reference_context_ids": ["g1"]}]
        ... )
        >>> references.lookup("  who wrote FAUST? ").sample.reference_context_ids
        ('g1',)
    """

    def __init__(
        self, samples: Iterable[Sample | Mapping[str, Any]] = (), *, strict: bool = False
    ) -> None:
        """See the class."""
        if isinstance(samples, (str, Mapping, Sample)) or not isinstance(samples, Iterable):
            raise InvalidArgumentError(
                f"references: {short(samples)} is no list: give a list of samples, or "
                "References.from_jsonl(path)"
            )
        self._by_id: dict[str, Sample] = {}
        self._by_question: dict[str, list[Sample]] = {}
        for index, given in enumerate(samples):
            try:
                self._add(Sample.of(given))
            except (InvalidSampleError, InvalidArgumentError) as error:
                raise type(error)(f"references[{index}]: {error}") from None
        if strict:
            for question, several in self._by_question.items():
                if len(several) > 1:
                    raise InvalidArgumentError(
                        f"references: {len(several)} different ones for {short(question)}: "
                        "leave one, or load without strict=True and look them up by id"
                    )

    @classmethod
    def of(cls, references: Any) -> References:
        """Take references as they are, or make them from a list of samples or a JSONL path."""
        if references is None:
            return cls()
        if isinstance(references, References):
            return references
        if isinstance(references, (str, PathLike)):
            return cls.from_jsonl(references)
        return cls(references)

    @classmethod
    def from_jsonl(cls, path: str | PathLike[str], *, strict: bool = False) -> References:
        """Read a file with one JSON object of sample fields per line.

        Raises:
            InvalidSampleError: A line is no sample; the message names file, line and field.
        """
        return cls(_read_jsonl(Path(path)), strict=strict)

    def _add(self, sample: Sample) -> None:
        if sample.id is None and not (sample.user_input or "").strip():
            raise InvalidSampleError("it has neither id nor user_input, so it can't be looked up")
        if sample.id is not None and self._by_id.setdefault(sample.id, sample) != sample:
            raise InvalidArgumentError(f"id {sample.id!r} stands there twice, with differences")
        if sample.user_input is not None:
            several = self._by_question.setdefault(_normal(sample.user_input), [])
            expected = _expectation(sample)
            if not any(_expectation(other) == expected for other in several):
                several.append(sample)

    def __iter__(self) -> Iterator[Sample]:
        """Go through the samples, each once."""
        seen = {id(sample): sample for sample in self._by_id.values()}
        for several in self._by_question.values():
            seen.update((id(sample), sample) for sample in several)
        return iter(seen.values())

    def lookup(self, *questions: str | None, id: object = None) -> Found:
        """Find what is expected.

        Args:
            *questions: The question, and other forms of it, in order of preference.
                Case and white space don't matter.
            id: The explicit id, which goes before any question.
        """
        if id is not None:
            if (sample := self._by_id.get(str(id))) is not None:
                return Found(sample)
            return Found(None, f"no reference has the id {short(id)}")
        for question in questions:
            several = self._by_question.get(_normal(question or ""), [])
            if len(several) == 1:
                return Found(several[0])
            if several:
                return Found(None, f"{len(several)} references for this question, pass ctxeval_id")
        return Found(None, "no reference has this question")


def _normal(question: str) -> str:
    return " ".join(question.casefold().split())


def _expectation(sample: Sample) -> dict[str, Any]:
    return {name: value for name, value in sample if name.startswith("reference")}


def _read_jsonl(path: Path) -> Iterator[Sample]:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                fields = json.loads(line)
                if not isinstance(fields, dict):
                    raise InvalidSampleError(f"{short(fields)} is no JSON object")
                yield Sample(**fields)
            except json.JSONDecodeError as error:
                raise InvalidSampleError(f"{path}, line {number}: no JSON: {error}") from None
            except InvalidSampleError as error:
                raise InvalidSampleError(f"{path}, line {number}: {error}") from None
