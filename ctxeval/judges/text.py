"""The judge by text: a chunk is relevant when it is similar to an expected text."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import isfunction

from ctxeval.errors import InvalidArgumentError, short
from ctxeval.judges.judge import Judge
from ctxeval.judges.similarity import (
    THRESHOLDS,
    Matcher,
    Similarity,
    callable_matcher,
    measure_name,
    named_matcher,
)
from ctxeval.sample import Sample
from ctxeval.verdicts import Verdict, Verdicts, first_ranks


class TextJudge(Judge):
    """Judge by similarity of text: free, and blind to meaning unless you embed.

    A chunk is relevant when its similarity to any reference context is at least the
    threshold; a reference context is found likewise. Equal texts match whatever the
    measure; blank ones match nothing.

    Args:
        distance_measure: The name of a rapidfuzz measure, an `EmbeddingSimilarity`, or
            any function of (reference, chunk) to [0, 1].
        threshold: The least similarity that counts, itself included, in [0, 1]. None:
            the measure's own, see `ctxeval.judges.similarity.THRESHOLDS`; a function
            has none, so state it.

    Raises:
        InvalidArgumentError: An unknown measure or an impossible threshold.
    """

    name = "text"
    retrieved_field = "retrieved_contexts"
    expected_fields = ("reference_contexts",)

    def __init__(
        self,
        distance_measure: str | Similarity = "levenshtein",
        threshold: float | None = None,
    ) -> None:
        """See the class."""
        self._measure = distance_measure
        self._named = isinstance(distance_measure, str) or not callable(distance_measure)
        if self._named:
            self.measure = measure_name(distance_measure)
            threshold = THRESHOLDS[self.measure] if threshold is None else threshold
        else:
            kind = distance_measure if isfunction(distance_measure) else type(distance_measure)
            named = f"{kind.__module__}.{kind.__qualname__}"
            self.measure = str(getattr(distance_measure, "name", named))
            if threshold is None:
                raise InvalidArgumentError(
                    f"threshold: state one for {self.measure}: which similarity counts as a "
                    "match is known only for the measures that go by name"
                )
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)):
            raise InvalidArgumentError(f"threshold: {short(threshold)} is no number from 0 to 1")
        if not 0 <= threshold <= 1:
            raise InvalidArgumentError(f"threshold: {threshold!r} is not from 0 to 1")
        self.threshold = float(threshold)
        self.signature = f"text({self.measure}>={self.threshold!r})"
        self._matcher: Matcher | None = None

    @property
    def shared_by(self) -> tuple[object, ...]:
        """What judges must have in common to share verdicts."""
        return ("text", self.measure if self._named else id(self._measure), self.threshold)

    @property
    def matcher(self) -> Matcher:
        """The measure with its threshold, made at its first use."""
        if self._matcher is None:
            if self._named:
                self._matcher = named_matcher(self.measure, self.threshold)
            else:
                assert callable(self._measure)
                self._matcher = callable_matcher(self._measure, self.threshold)
        return self._matcher

    def prepare(self, samples: Iterable[Sample]) -> None:
        """Give a measure that works in batches all texts of the samples at once."""
        prepare = getattr(self._measure, "prepare", None)
        if prepare is not None:
            prepare(
                text
                for sample in samples
                for texts in (sample.reference_contexts, sample.retrieved_contexts)
                for text in texts or ()
                if text.strip()
            )

    def judge(
        self,
        sample: Sample,
        purpose: str = "reference",
        *,
        chunks: bool = True,
        units: bool = True,
    ) -> Verdicts:
        """Compare the retrieved with the expected texts.

        Args:
            sample: One with `retrieved_contexts` and `reference_contexts`.
            purpose: Does not matter, nor do the others: they are for models.
            chunks: See `purpose`.
            units: See `purpose`.

        Returns:
            The verdicts, worked out when they are looked at, each comparison once.
        """
        self.prepare([sample])
        return TextVerdicts(
            sample.retrieved_contexts or (),
            sample.reference_contexts or (),
            self.matcher,
            self.signature,
        )

    async def ajudge(
        self,
        sample: Sample,
        purpose: str = "reference",
        *,
        chunks: bool = True,
        units: bool = True,
    ) -> Verdicts:
        """Judge in a thread: an embedding function may wait for a network."""
        import asyncio  # here, so that `import ctxeval` stays quick

        return await asyncio.to_thread(self.judge, sample)

    def __reduce__(self) -> tuple[object, ...]:
        """Copy and pickle by the arguments: a matcher is remade where it is used."""
        return type(self), (self._measure, self.threshold)


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
