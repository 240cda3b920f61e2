"""Metrics by the similarity of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxeval.formulas.precision import average_precision
from ctxeval.formulas.recall import recall
from ctxeval.judges.text import TextJudge
from ctxeval.metric import Metric
from ctxeval.verdicts import Verdicts

if TYPE_CHECKING:
    from ctxeval.judges.similarity import Similarity


class NonLLMContextPrecisionWithReference(Metric):
    """Do the chunks that resemble an expected text stand first?

    Average precision over the retrieved chunks that are similar to any reference
    context. Needs `retrieved_contexts` and `reference_contexts`. Definition: Ragas.
    The arguments are those of `TextJudge`.
    """

    name = "non_llm_context_precision_with_reference"

    def __init__(
        self,
        distance_measure: str | Similarity = "levenshtein",
        threshold: float | None = None,
    ) -> None:
        """Take measure and threshold."""
        self.judge = TextJudge(distance_measure, threshold)

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `average_precision`."""
        return average_precision(answers)


NonLLMContextPrecision = NonLLMContextPrecisionWithReference


class NonLLMContextRecall(Metric):
    """How many of the expected texts were retrieved?

    The share of reference contexts that are similar to any retrieved chunk. Needs
    `retrieved_contexts` and `reference_contexts`. Definition: Ragas, with the threshold
    included. The arguments are those of `TextJudge`.
    """

    name = "non_llm_context_recall"
    reads = "units"

    def __init__(
        self,
        distance_measure: str | Similarity = "levenshtein",
        threshold: float | None = None,
    ) -> None:
        """Take measure and threshold."""
        self.judge = TextJudge(distance_measure, threshold)

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `recall`."""
        return recall(answers)
