"""The judge by text: a chunk is relevant when it is similar to an expected text."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import isfunction
from numbers import Real

from ctxeval.errors import InvalidArgumentError, short
from ctxeval.judges.judge import ModelFreeJudge
from ctxeval.judges.similarity import (
    THRESHOLDS,
    Matcher,
    NamedMatcher,
    Similarity,
    callable_matcher,
    measure_name,
)
from ctxeval.judges.text_verdicts import TextVerdicts
from ctxeval.sample import Sample
from ctxeval.verdicts import Verdicts


class TextJudge(ModelFreeJudge):
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
        if isinstance(threshold, bool) or not isinstance(threshold, Real):
            raise InvalidArgumentError(f"threshold: {short(threshold)} is no number from 0 to 1")
        if not 0 <= threshold <= 1:
            raise InvalidArgumentError(f"threshold: {threshold!r} is not from 0 to 1")
        self.threshold: float = float(threshold)
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
                self._matcher = NamedMatcher(self.measure, self.threshold)
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

    def nothing_expected(self, sample: Sample, purpose: str, *, units: bool) -> str:
        """Ask for a text that is not blank."""
        if any(text.strip() for text in sample.reference_contexts or ()):
            return ""
        return "no text is expected: reference_contexts is empty or blank"

    def verdicts(self, sample: Sample) -> Verdicts:
        """Compare the retrieved with the expected texts.

        Args:
            sample: One with `retrieved_contexts` and `reference_contexts`.

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
