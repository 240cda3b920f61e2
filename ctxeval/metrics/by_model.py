"""Metrics by a language model: they understand meaning, and cost calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from ctxeval.errors import InvalidArgumentError
from ctxeval.formulas.precision import average_precision, precision
from ctxeval.formulas.recall import recall
from ctxeval.metric import Metric
from ctxeval.verdicts import Verdicts

if TYPE_CHECKING:
    from ctxeval.judges.cells import CellCache
    from ctxeval.judges.llm import LLMJudge
    from ctxeval.llm.protocol import LLM


class JudgeOptions(TypedDict, total=False):
    """The options of `LLMJudge`, which documents them."""

    mode: Literal["joint", "pointwise", "logprob"]
    repeats: int
    instructions: str | Mapping[str, str] | None
    threshold: float | None
    cache: CellCache | None


class _Judged(Metric):
    """A metric judged by a language model."""

    def __init__(
        self,
        llm: LLM | LLMJudge,
        **options: Unpack[JudgeOptions],
    ) -> None:
        """Take the model; the other options are those of `LLMJudge`.

        Raises:
            InvalidArgumentError: As `LLMJudge`, or a judge was given with options.
        """
        from ctxeval.judges.llm import LLMJudge  # here, so that `import ctxeval` stays quick

        if isinstance(llm, LLMJudge):
            if options:
                raise InvalidArgumentError(
                    f"a judge and {', '.join(options)} were given: give the options to the judge"
                )
            self.judge = llm
        else:
            self.judge = LLMJudge(llm, **options)


class ContextPrecision(_Judged):
    """Do the chunks that help to arrive at the reference stand first?

    Average precision over the relevant retrieved chunks, judged by a model: 1 exactly
    when no useless chunk precedes a useful one, 0 when none is useful. Needs
    `user_input`, `retrieved_contexts` and `reference`. Definition: Ragas.
    """

    name = "context_precision"

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `average_precision`."""
        return average_precision(answers)


class ContextUtilization(ContextPrecision):
    """Do the chunks that the response made use of stand first?

    Like `ContextPrecision`, with the response in place of the reference: needs
    `user_input`, `retrieved_contexts` and `response`, and no ground truth.
    """

    name = "context_utilization"
    purpose = "response"


class ContextRecall(_Judged):
    """How much of the reference do the chunks support?

    The share of the reference's claims that follow from the retrieved chunks, judged
    by a model, in [0, 1]. Needs `user_input`, `retrieved_contexts` and `reference` (or
    `reference_claims`). Definition: Ragas.
    """

    name = "context_recall"
    reads = "units"

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `recall`."""
        return recall(answers)


class ContextRelevance(_Judged):
    """How much of what was retrieved is relevant to the question?

    The share of relevant chunks, judged by a model for the question alone, in [0, 1].
    Needs `user_input` and `retrieved_contexts`: no reference, no response.
    """

    name = "context_relevance"
    purpose = "question"

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `precision`."""
        return precision(answers)
