"""Verdicts by text, from as few comparisons as decide what is asked."""

from __future__ import annotations

from collections.abc import Iterable

from ctxeval.judges.similarity import Matcher
from ctxeval.verdicts import Verdict, Verdicts, first_ranks


class TextVerdicts(Verdicts):
    """Verdicts that follow from comparing texts, as few pairs as decide what is asked."""

    __slots__ = ("_compared", "_equal", "_found", "_match", "_references", "_retrieved")

    def __init__(
        self,
        retrieved: tuple[str, ...],
        references: tuple[str, ...],
        match: Matcher,
        judge: str,
    ) -> None:
        """Keep the texts, and find those that are equal."""
        super().__init__(judge=judge)
        self._retrieved = retrieved
        self._references = references
        self._match = match
        same: dict[str, list[int]] = {text: [] for text in references if text.strip()}
        for rank, text in enumerate(retrieved):
            if text in same:
                same[text].append(rank)
        # Per reference: the ranks that hold the same text, those found to match with their
        # similarity, and those compared.
        self._equal = [same.get(text, []) for text in references]
        self._found = [dict.fromkeys(equal, 1.0) for equal in self._equal]
        self._compared = [set(found) for found in self._found]

    def _compare(self, unit: int, ranks: Iterable[int], *, first_only: bool) -> None:
        """Compare one reference with the chunks at these ranks that are not yet compared."""
        compared = self._compared[unit]
        pending = [rank for rank in ranks if rank not in compared and self._retrieved[rank].strip()]
        if not pending or not self._references[unit].strip():
            return
        texts = [self._retrieved[rank] for rank in pending]
        for index, similarity in self._match(self._references[unit], texts):
            self._found[unit][pending[index]] = similarity
            if first_only:
                compared.update(pending[: index + 1])
                return
        compared.update(pending)

    def relevant(self) -> list[bool | None]:
        """Say of each chunk whether it is similar to any reference context."""
        decided = set[int]().union(*self._found)
        for unit in range(len(self._references)):
            open_ranks = [rank for rank in range(len(self._retrieved)) if rank not in decided]
            if not open_ranks:
                break
            self._compare(unit, open_ranks, first_only=False)
            decided.update(self._found[unit])
        return [rank in decided for rank in range(len(self._retrieved))]

    def covered(self, k: int | None = None) -> list[bool | None]:
        """Say of each reference context whether one of the first k chunks is similar to it."""
        ranks = range(len(self._retrieved))[:k]
        covered: list[bool | None] = []
        for unit, found in enumerate(self._found):
            if not any(rank in ranks for rank in found):
                self._compare(unit, ranks, first_only=True)
            covered.append(any(rank in ranks for rank in found))
        return covered

    def _deciding_units(self) -> dict[int, int]:
        """Find for each relevant rank the reference that decides it, whatever was asked before.

        That is the first that the chunk equals, else the first that it is similar to.
        """
        deciding: dict[int, int] = {}
        for unit, equal in enumerate(self._equal):
            for rank in equal:
                deciding.setdefault(rank, unit)
        for unit, found in enumerate(self._found):
            open_ranks = [rank for rank in range(len(self._retrieved)) if rank not in deciding]
            self._compare(unit, open_ranks, first_only=False)
            deciding.update((rank, unit) for rank in open_ranks if rank in found)
        return deciding

    def _deciding_rank(self, unit: int) -> int | None:
        """Find the first rank that covers a reference, whatever was asked before."""
        found = self._found[unit]
        self._compare(unit, range(min(found, default=len(self._retrieved))), first_only=True)
        return min(found, default=None)

    @property
    def chunks(self) -> tuple[Verdict, ...]:
        """A verdict per chunk, with the reference context that decided it."""
        deciding = self._deciding_units()
        verdicts = []
        for rank, text in enumerate(self._retrieved):
            unit = deciding.get(rank)
            similarity = None if unit is None else self._found[unit][rank]
            miss = "similar to no reference context" if text.strip() else "the chunk is blank"
            verdicts.append(_verdict(text, unit, similarity, miss, grade=int(unit is not None)))
        return tuple(verdicts)

    @property
    def units(self) -> tuple[Verdict, ...]:
        """A verdict per reference context, with the first chunk that covers it."""
        verdicts = []
        for unit, text in enumerate(self._references):
            rank = self._deciding_rank(unit)
            similarity = None if rank is None else self._found[unit][rank]
            miss = "no chunk is similar" if text.strip() else "the reference context is blank"
            verdicts.append(_verdict(text, rank, similarity, miss, grade=1))
        return tuple(verdicts)

    def expected_gains(self) -> list[int]:
        """Give 1 for each reference context."""
        return [1] * len(self._references)

    def gains(self) -> list[int | None]:
        """Give 1 for each relevant chunk, 0 for any other."""
        return [int(bool(value)) for value in self.relevant()]

    def distinct(self) -> list[int]:
        """Give the ranks of the chunks that are no repeat of an earlier one."""
        return first_ranks(self._retrieved)


def _verdict(
    text: str, matched: int | None, similarity: float | None, miss: str, *, grade: int
) -> Verdict:
    if matched is None:
        return Verdict(False, text=text, reason=miss, grade=grade)
    return Verdict(True, text=text, matched=(matched,), similarity=similarity, grade=grade)
