"""Measures of how similar two texts are, all in [0, 1].

Every measure of rapidfuzz goes by its name, with a threshold of its own, since the
same number means different things: two unrelated English paragraphs reach 0.3 by
Levenshtein, but 0.8 by Jaro. The defaults lie above what 999 in 1000 unrelated pairs
of sentences and of paragraphs reach, and, where that leaves room, below what pairs
with a fifth of their words exchanged reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ctxeval.errors import InvalidArgumentError, near, short

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Similarity = Callable[[str, str], float]
"""A function of (reference, chunk) that returns a number in [0, 1]."""

THRESHOLDS: dict[str, float] = {
    "levenshtein": 0.5,
    "damerau_levenshtein": 0.5,
    "osa": 0.5,
    "indel": 0.65,
    "lcs_seq": 0.65,
    "hamming": 0.3,
    "jaro": 0.8,
    "jaro_winkler": 0.9,
    "prefix": 0.3,
    "postfix": 0.3,
    "ratio": 0.65,
    "q_ratio": 0.65,
    "w_ratio": 0.9,
    "partial_ratio": 0.7,
    "token_ratio": 0.7,
    "token_sort_ratio": 0.7,
    "token_set_ratio": 0.7,
    "partial_token_ratio": 1.0,
    "partial_token_sort_ratio": 0.7,
    "partial_token_set_ratio": 1.0,
}
"""The default threshold of each rapidfuzz measure.

`partial_token_ratio` and `partial_token_set_ratio` are 1 as soon as the texts share one
word, so they tell little here.
"""

_DISTANCES = {
    "levenshtein": "Levenshtein",
    "damerau_levenshtein": "DamerauLevenshtein",
    "osa": "OSA",
    "indel": "Indel",
    "lcs_seq": "LCSseq",
    "hamming": "Hamming",
    "jaro": "Jaro",
    "jaro_winkler": "JaroWinkler",
    "prefix": "Prefix",
    "postfix": "Postfix",
}
_FUZZ = {"q_ratio": "QRatio", "w_ratio": "WRatio"}


class Matcher(Protocol):
    """A measure with its threshold."""

    def __call__(self, reference: str, chunks: Sequence[str]) -> Iterator[tuple[int, float]]:
        """Yield index and similarity of each chunk that reaches the threshold, in order."""
        ...


def measure_name(measure: object) -> str:
    """Find the rapidfuzz measure that is meant: `"Jaro-Winkler"` is `"jaro_winkler"`.

    Raises:
        InvalidArgumentError: There is no such measure.
    """
    given = getattr(measure, "value", measure)  # an enum member counts as its value
    plain = str(given).casefold().replace("-", "_").replace(" ", "_")
    by_squeezed = {name.replace("_", ""): name for name in THRESHOLDS}
    name = by_squeezed.get(plain.replace("_", ""))
    if name is None:
        raise InvalidArgumentError(
            f"distance_measure: {short(given)} is unknown: {near(plain, THRESHOLDS)}"
        )
    return name


class NamedMatcher:
    """The matcher of a rapidfuzz measure.

    Args:
        name: A key of `THRESHOLDS`.
        threshold: The least similarity that counts, itself included.
    """

    # In batches rapidfuzz rounds the cutoff to 32 bits, and its numbers differ from the
    # scorer's own in the last digit. So cut a little below, and close to the threshold ask
    # the scorer.
    _SLACK = 1e-5

    def __init__(self, name: str, threshold: float) -> None:
        """See the class."""
        from rapidfuzz import distance, fuzz  # here, so that `import ctxeval` stays quick

        self._threshold = threshold
        if name in _DISTANCES:
            self._scorer: Any = getattr(distance, _DISTANCES[name]).normalized_similarity
            self._scale = 1
        else:
            self._scorer = getattr(fuzz, _FUZZ.get(name, name))
            self._scale = 100
        self._options = {
            "scorer": self._scorer,
            "processor": None,
            "score_cutoff": max(0.0, threshold - self._SLACK) * self._scale,
        }

    def __call__(self, reference: str, chunks: Sequence[str]) -> Iterator[tuple[int, float]]:
        """Compare one reference with chunks, as far as is asked for; see `Matcher`."""
        from rapidfuzz.process import extract_iter

        for chunk, scaled, index in extract_iter(reference, chunks, **self._options):
            similarity = scaled / self._scale
            if similarity < self._threshold + self._SLACK:
                similarity = self._scorer(reference, chunk) / self._scale
            if similarity >= self._threshold:
                yield index, similarity

    def similar(
        self, references: Sequence[str], chunks: Sequence[str], *, threads: int = 1
    ) -> npt.NDArray[np.bool_]:
        """Compare each reference with the chunk of the same index, all in one call.

        Args:
            references: The references.
            chunks: As many chunks.
            threads: How many threads may work on it; none holds up other Python code.

        Returns:
            Which pairs reach the threshold.
        """
        import numpy as np
        from rapidfuzz.process import cpdist

        scaled = cpdist(references, chunks, dtype=np.float64, workers=threads, **self._options)
        similarity = scaled / self._scale
        similar: npt.NDArray[np.bool_] = similarity >= self._threshold + self._SLACK
        close = ~similar & (scaled >= self._options["score_cutoff"])
        for index in np.flatnonzero(close).tolist():
            exact = self._scorer(references[index], chunks[index]) / self._scale
            similar[index] = exact >= self._threshold
        return similar


def callable_matcher(measure: Similarity, threshold: float) -> Matcher:
    """Make the matcher of any function of (reference, chunk).

    Args:
        measure: Returns a number in [0, 1].
        threshold: The least similarity that counts, itself included.
    """

    def match(reference: str, chunks: Sequence[str]) -> Iterator[tuple[int, float]]:
        for index, chunk in enumerate(chunks):
            similarity = float(measure(reference, chunk))
            if not 0 <= similarity <= 1:
                raise InvalidArgumentError(
                    f"distance_measure: {measure!r} returned {similarity!r} for "
                    f"{short(reference)} and {short(chunk)}: it must return a number from 0 to 1"
                )
            if similarity >= threshold:
                yield index, similarity

    return match
