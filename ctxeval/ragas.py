"""The names and calls of Ragas, so that moving over is a changed import.

    from ctxeval.ragas import LLMContextRecall, SingleTurnSample

    await LLMContextRecall(llm=llm).single_turn_ascore(sample)

Where a value differs from Ragas', `docs/ragas.md` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from ctxeval import metrics
from ctxeval.judges.similarity import Similarity
from ctxeval.metric import Metric
from ctxeval.sample import Sample

__all__ = [
    "ContextPrecision",
    "ContextPrecisionWithReference",
    "ContextPrecisionWithoutReference",
    "ContextRecall",
    "ContextUtilization",
    "DistanceMeasure",
    "IDBasedContextPrecision",
    "IDBasedContextRecall",
    "LLMContextPrecisionWithReference",
    "LLMContextPrecisionWithoutReference",
    "LLMContextRecall",
    "NonLLMContextPrecisionWithReference",
    "NonLLMContextRecall",
    "SingleTurnSample",
]


class DistanceMeasure(Enum):
    """The measures that go by an enum; by name there are more."""

    LEVENSHTEIN = "levenshtein"
    HAMMING = "hamming"
    JARO = "jaro"
    JARO_WINKLER = "jaro_winkler"


_OTHER_FIELDS = ("multi_responses", "rubrics", "persona_name", "query_style", "query_length")


class SingleTurnSample(Sample):
    """A `Sample` that also takes the fields which no context metric reads.

    They are kept in `metadata`. Raises and fields are those of `Sample`.
    """

    def __init__(self, **fields: Any) -> None:
        """See the class."""
        others = {name: fields.pop(name) for name in _OTHER_FIELDS if name in fields}
        if others:
            fields["metadata"] = {**(fields.get("metadata") or {}), **others}
        super().__init__(**fields)


class _SingleTurn(Metric):
    """The older calls: a sample in, a number out."""

    async def single_turn_ascore(
        self, sample: Any, callbacks: object = None, timeout: object = None
    ) -> float:
        """Score a sample.

        Args:
            sample: A sample of ctxeval or of Ragas, or a dict.
            callbacks: Taken for compatibility, and left aside.
            timeout: Likewise; the model's own timeout holds.

        Raises:
            NotScoredError: There is no number; the message says why. It is never NaN.
        """
        return float(await self.ascore(_sample(sample)))

    def single_turn_score(self, sample: Any, callbacks: object = None) -> float:
        """Score a sample; works in a running event loop too."""
        return float(self.score(_sample(sample)))


def _sample(sample: Any) -> Sample:
    if isinstance(sample, (Sample, Mapping)) or not hasattr(sample, "model_dump"):
        return Sample.of(sample)
    return SingleTurnSample(**sample.model_dump(exclude_none=True))


class ContextPrecision(metrics.ContextPrecision, _SingleTurn):
    """See `ctxeval.ContextPrecision`."""


class ContextPrecisionWithReference(ContextPrecision):
    """`ContextPrecision` by another name."""

    name = "context_precision_with_reference"


class LLMContextPrecisionWithReference(ContextPrecision):
    """`ContextPrecision` by its older name."""

    name = "llm_context_precision_with_reference"


class ContextUtilization(metrics.ContextUtilization, _SingleTurn):
    """See `ctxeval.ContextUtilization`."""


class ContextPrecisionWithoutReference(ContextUtilization):
    """`ContextUtilization` by another name."""

    name = "context_precision_without_reference"


class LLMContextPrecisionWithoutReference(ContextUtilization):
    """`ContextUtilization` by its older name."""

    name = "llm_context_precision_without_reference"


class ContextRecall(metrics.ContextRecall, _SingleTurn):
    """See `ctxeval.ContextRecall`."""


class LLMContextRecall(ContextRecall):
    """`ContextRecall` by its older name."""


class NonLLMContextPrecisionWithReference(metrics.NonLLMContextPrecisionWithReference, _SingleTurn):
    """See `ctxeval.NonLLMContextPrecisionWithReference`; the threshold is 0.5 for any measure."""

    def __init__(
        self,
        distance_measure: str | DistanceMeasure | Similarity = "levenshtein",
        threshold: float = 0.5,
    ) -> None:
        """Take measure and threshold."""
        super().__init__(_named(distance_measure), threshold)


class NonLLMContextRecall(metrics.NonLLMContextRecall, _SingleTurn):
    """See `ctxeval.NonLLMContextRecall`; the threshold is 0.5 for any measure."""

    def __init__(
        self,
        distance_measure: str | DistanceMeasure | Similarity = "levenshtein",
        threshold: float = 0.5,
    ) -> None:
        """Take measure and threshold."""
        super().__init__(_named(distance_measure), threshold)


class IDBasedContextPrecision(metrics.IDBasedContextPrecision, _SingleTurn):
    """See `ctxeval.IDBasedContextPrecision`."""


class IDBasedContextRecall(metrics.IDBasedContextRecall, _SingleTurn):
    """See `ctxeval.IDBasedContextRecall`."""


def _named(measure: str | DistanceMeasure | Similarity) -> str | Similarity:
    return str(measure.value) if isinstance(measure, Enum) else measure
