"""Metrics by id, whatever the rank."""

from __future__ import annotations

from collections.abc import Sequence

from ctxeval.formulas.precision import precision
from ctxeval.formulas.recall import recall
from ctxeval.judges.ids import IdJudge
from ctxeval.metric import Answers, Metric
from ctxeval.verdicts import Verdicts


class IDBasedContextPrecision(Metric):
    """How many of the retrieved ids are expected?

    The share of distinct retrieved ids that are expected, whatever their rank. Needs
    `retrieved_context_ids` and `reference_context_ids`. Definition: Ragas.
    """

    name = "id_based_context_precision"

    def __init__(self) -> None:
        """Judge by id."""
        self.judge = IdJudge()

    def answers(self, verdicts: Verdicts) -> Answers:
        """Read the verdict on each distinct id."""
        relevant = verdicts.relevant()
        return [relevant[rank] for rank in verdicts.distinct()]

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `precision`."""
        return precision(answers)


class IDBasedContextRecall(Metric):
    """How many of the expected ids were retrieved?

    The share of distinct expected ids that were retrieved. Needs
    `retrieved_context_ids` and `reference_context_ids`. Definition: Ragas.
    """

    name = "id_based_context_recall"
    reads = "units"

    def __init__(self) -> None:
        """Judge by id."""
        self.judge = IdJudge()

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `recall`."""
        return recall(answers)
