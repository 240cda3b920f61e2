"""Verdicts as columns, each once, however many results share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

from ctxeval.judges.ids import IdVerdicts
from ctxeval.record.query import Retrieval
from ctxeval.sample import Sample
from ctxeval.store.plain import Strings
from ctxeval.verdicts import NOTHING, Usage, Verdict, Verdicts

_IDS, _TEXTS = 0, 1
_MARKS = {True: "+", False: "-", None: "?"}
_VALUES = {mark: value for value, mark in _MARKS.items()}


class VerdictPacker:
    """Writes the verdicts of a record.

    Args:
        strings: Where their strings are put aside.

    Attributes:
        packed: Those written so far.
    """

    def __init__(self, strings: Strings) -> None:
        """See the class."""
        self._strings = strings
        self._columns: dict[tuple[str, ...], tuple[int, int]] = {}
        self._stages = 0
        self._places: dict[int, int] = {}
        self.packed: list[list[Any]] = []

    def know(self, ids: tuple[str, ...], texts: tuple[str, ...]) -> None:
        """Note the next stage's ids and texts: verdicts are on either."""
        self._columns.setdefault(ids, (self._stages, _IDS))
        self._columns.setdefault(texts, (self._stages, _TEXTS))
        self._stages += 1

    def place(self, verdicts: Verdicts) -> int:
        """Give the place of verdicts among those written."""
        place = self._places.get(id(verdicts))
        if place is None:
            place = self._places[id(verdicts)] = len(self.packed)
            self.packed.append(self._pack(verdicts))
        return place

    def _pack(self, verdicts: Verdicts) -> list[Any]:
        if type(verdicts) is IdVerdicts:
            # They follow from two lists of ids, which are shorter and quicker to write.
            expected: Any = verdicts._expected
            if set(expected.values()) <= {1}:
                expected = list(expected)
            return [self._texts(verdicts._retrieved), expected]
        usage = verdicts.usage
        return [
            self._strings[verdicts.judge],
            verdicts.together,
            self._strings[verdicts.note],
            None if usage == NOTHING else astuple(usage),
            self._pack_all(verdicts.chunks),
            self._pack_all(verdicts.units),
        ]

    def _pack_all(self, all_of: Sequence[Verdict]) -> list[Any]:
        packed = [
            "".join([_MARKS[one.value] for one in all_of]),
            self._texts(tuple([one.text for one in all_of])),
            self._reasons([one.reason for one in all_of]),
            [one.matched for one in all_of] if any(v.matched for v in all_of) else 0,
            [v.similarity for v in all_of] if any(v.similarity is not None for v in all_of) else 0,
            [one.grade for one in all_of] if any(v.grade for v in all_of) else 0,
            ["".join([_MARKS[vote] for vote in one.votes]) for one in all_of]
            if any(v.votes for v in all_of)
            else 0,
        ]
        if any(one.probability is not None for one in all_of):  # few judges tell any
            packed.append([one.probability for one in all_of])
        return packed

    def _reasons(self, reasons: list[str]) -> list[str | int] | int:
        """A model's own words hardly come again, so only what is said twice is put aside."""
        if not any(reasons):
            return 0
        return [self._strings[one] if one and reasons.count(one) > 1 else one for one in reasons]

    def _texts(self, texts: tuple[str, ...]) -> tuple[int, int] | list[list[int]]:
        known = self._columns.get(texts)
        return known or [[self._strings[text] for text in texts]]


class VerdictUnpacker:
    """Reads what `VerdictPacker` wrote.

    Args:
        strings: The strings that were put aside.
        retrievals: The record's stages.
    """

    def __init__(self, strings: list[str], retrievals: Sequence[Retrieval]) -> None:
        """See the class."""
        self._strings = strings
        self._retrievals = retrievals

    def unpack(self, packed: list[Any]) -> Verdicts:
        """Read verdicts."""
        if len(packed) == 2:
            retrieved, expected = packed
            return IdVerdicts(
                Sample(retrieved_context_ids=self._texts(retrieved), reference_context_ids=expected)
            )
        judge, together, note, usage, chunks, units = packed
        return Verdicts(
            self._unpack_all(chunks),
            self._unpack_all(units),
            judge=self._strings[judge],
            usage=NOTHING if usage is None else Usage(*usage),
            together=together,
            note=self._strings[note],
        )

    def _unpack_all(self, packed: list[Any]) -> list[Verdict]:
        marks, texts, reasons, matched, similarities, grades, votes, *more = packed
        probabilities = more[0] if more else ()
        return [
            Verdict(
                value=_VALUES[mark],
                text=text,
                reason=self._reason(reasons[n]) if reasons else "",
                matched=tuple(matched[n]) if matched else (),
                similarity=similarities[n] if similarities else None,
                grade=grades[n] if grades else 0,
                votes=tuple(_VALUES[vote] for vote in votes[n]) if votes else (),
                probability=probabilities[n] if probabilities else None,
            )
            for n, (mark, text) in enumerate(zip(marks, self._texts(texts), strict=True))
        ]

    def _reason(self, packed: str | int) -> str:
        return packed if isinstance(packed, str) else self._strings[packed]

    def _texts(self, packed: list[Any]) -> list[str]:
        if len(packed) == 1:
            return [self._strings[place] for place in packed[0]]
        stage, kind = packed
        chunks = self._retrievals[stage].chunks
        return [chunk.id if kind == _IDS else chunk.text for chunk in chunks]
