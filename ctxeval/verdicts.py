"""What a judge says of a sample: a verdict per chunk and one per unit of what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from ctxeval.errors import short


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judgement.

    Attributes:
        value: Yes or no; None where the judge's answer could not be read.
        text: What was judged: the chunk, the claim, the reference context or the id.
        reason: Why, in the judge's words, or why there is no value.
        matched: The indices, from 0, of what it was matched with: of a chunk the units, of a
            unit the chunks, in rank order. Not every match, only those that decide.
        similarity: Of the deciding pair, in [0, 1], where similarity decided; None
            where none reached the threshold.
        grade: How relevant, where grades are known; else 1 or 0.
        votes: How the repeats voted, where the judge was asked more than once.
        probability: How likely the judge finds a yes, in [0, 1], where it tells.
    """

    value: bool | None
    text: str = ""
    reason: str = ""
    matched: tuple[int, ...] = ()
    similarity: float | None = None
    grade: int = 0
    votes: tuple[bool | None, ...] = ()
    probability: float | None = None

    @property
    def flipped(self) -> bool:
        """Did the repeats disagree, as far as they could be read?"""
        return True in self.votes and False in self.votes


@dataclass(frozen=True, slots=True)
class Usage:
    """What a judgement cost. Sums add up field by field.

    Attributes:
        requests: Calls that were answered, re-asked ones included.
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens received, those of reasoning included.
        cached_tokens: The part of `prompt_tokens` that the provider had cached.
        reasoning_tokens: The part of `completion_tokens` spent on reasoning.
        unreported: Calls of which the endpoint did not say the tokens, so that the
            sums above lack them.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    unreported: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Add two usages up."""
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Usage)))


NOTHING = Usage()
"""What a judgement costs that calls no model."""


class Verdicts:
    """One judge's say on one sample.

    The judges by id and by text derive from it and work out only what is asked for;
    what the metrics read is `relevant`, `covered`, `gains` and `expected_gains`.

    Args:
        chunks: A verdict per retrieved chunk, best rank first.
        units: A verdict per unit of what was expected.
        judge: The signature of the judge.
        usage: What the judging cost.
        together: Does a unit need all of the chunks that it names, rather than any?
        note: What a reader of the number should know.

    Examples:
        >>> verdicts = Verdicts([Verdict(True, grade=1)], [Verdict(True, matched=(0,))])
        >>> verdicts.relevant(), verdicts.covered(k=1)
        ([True], [True])
    """

    __slots__ = ("_chunks", "_units", "judge", "note", "together", "usage")

    def __init__(
        self,
        chunks: Sequence[Verdict] = (),
        units: Sequence[Verdict] = (),
        *,
        judge: str = "",
        usage: Usage = NOTHING,
        together: bool = False,
        note: str = "",
    ) -> None:
        """See the class."""
        self._chunks = tuple(chunks)
        self._units = tuple(units)
        self.judge = judge
        self.usage = usage
        self.together = together
        self.note = note

    @property
    def chunks(self) -> tuple[Verdict, ...]:
        """A verdict per retrieved chunk, best rank first."""
        return self._chunks

    @property
    def units(self) -> tuple[Verdict, ...]:
        """A verdict per unit of what was expected."""
        return self._units

    def relevant(self) -> list[bool | None]:
        """Say of each chunk whether it is relevant, None where that could not be read."""
        return [chunk.value for chunk in self.chunks]

    def covered(self, k: int | None = None) -> list[bool | None]:
        """Say of each unit whether the first k chunks cover it.

        Args:
            k: How many ranks count; None: all.
        """
        if k is None:
            return [unit.value for unit in self.units]
        need = all if self.together else any
        return [
            need(index < k for index in unit.matched) if unit.value and unit.matched else unit.value
            for unit in self.units
        ]

    def gains(self) -> list[int | None]:
        """Give the grade of each chunk, 0 for an irrelevant one, None for an unread one."""
        return [None if chunk.value is None else chunk.grade for chunk in self.chunks]

    def expected_gains(self) -> list[int]:
        """Give the grade of each expected unit."""
        return [unit.grade for unit in self.units]

    def distinct(self) -> list[int]:
        """Give the indices of the chunks that are no repeat of an earlier one."""
        return first_ranks([chunk.text for chunk in self.chunks])

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, for JSON."""
        return {
            "judge": self.judge,
            "together": self.together,
            "note": self.note,
            "usage": asdict(self.usage),
            "chunks": [asdict(verdict) for verdict in self.chunks],
            "units": [asdict(verdict) for verdict in self.units],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote, also after a way through JSON.

        Raises:
            ValueError, KeyError, TypeError: It was changed since, and is none of these.
        """
        return cls(
            [_verdict(item) for item in data["chunks"]],
            [_verdict(item) for item in data["units"]],
            judge=data["judge"],
            usage=_usage(data["usage"]),
            together=data["together"],
            note=data["note"],
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle as plain verdicts: what was lazy is worked out."""
        return _plain, (self.chunks, self.units, self.judge, self.usage, self.together, self.note)

    def __eq__(self, other: object) -> bool:
        """Compare what is said, not how it was worked out."""
        if not isinstance(other, Verdicts):
            return NotImplemented
        return (self.chunks, self.units, self.judge) == (other.chunks, other.units, other.judge)

    __hash__ = None  # type: ignore[assignment]  # compared by value, which is worked out late

    def __repr__(self) -> str:
        """Show the values: + yes, - no, ? unread."""
        marks = {True: "+", False: "-", None: "?"}
        chunks = "".join(marks[value] for value in self.relevant())
        units = "".join(marks[value] for value in self.covered())
        return f"Verdicts(chunks={chunks!r}, units={units!r}, judge={self.judge!r})"


def first_ranks(items: Sequence[str]) -> list[int]:
    """Give the indices of the items that are no repeat of an earlier one."""
    if len(set(items)) == len(items):
        return list(range(len(items)))
    first: dict[str, int] = {}
    for rank, item in enumerate(items):
        first.setdefault(item, rank)
    return list(first.values())


def _verdict(data: Mapping[str, Any]) -> Verdict:
    made = Verdict(**{**data, "matched": tuple(data["matched"]), "votes": tuple(data["votes"])})
    kept = {made.value, *made.votes} <= {True, False, None}
    numbers = all(isinstance(one, int) for one in (made.grade, *made.matched))
    if not (kept and numbers and isinstance(made.text, str) and isinstance(made.reason, str)):
        raise TypeError(f"{short(data)} is no verdict")
    return made


def _usage(data: Mapping[str, Any]) -> Usage:
    if not all(isinstance(count, int) for count in data.values()):
        raise TypeError(f"{short(data)} is no usage")
    return Usage(**data)


def _plain(
    chunks: tuple[Verdict, ...],
    units: tuple[Verdict, ...],
    judge: str,
    usage: Usage,
    together: bool,
    note: str,
) -> Verdicts:
    return Verdicts(chunks, units, judge=judge, usage=usage, together=together, note=note)
