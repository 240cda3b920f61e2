"""The metrics: each is a judge and a formula with a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from ctxeval.errors import InvalidArgumentError, short
from ctxeval.formulas.precision import average_precision, precision
from ctxeval.formulas.ranking import hit_rate, ndcg, precision_at_k, reciprocal_rank
from ctxeval.formulas.recall import recall
from ctxeval.formulas.spans import (
    SpanTuple,
    span_iou,
    span_precision,
    span_precision_omega,
    span_recall,
)
from ctxeval.judges.ids import IdJudge
from ctxeval.judges.judge import Judge
from ctxeval.judges.spans import SpanJudge, SpanVerdicts
from ctxeval.judges.text import TextJudge
from ctxeval.metric import Answers, Metric
from ctxeval.result import MetricResult
from ctxeval.sample import Sample, Span
from ctxeval.verdicts import Verdicts

if TYPE_CHECKING:
    from ctxeval.judges.cells import CellCache
    from ctxeval.judges.llm import LLMJudge
    from ctxeval.judges.similarity import Similarity
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


class SpanMetric(Metric):
    """A metric of characters. Needs `retrieved_spans` and `reference_spans`."""

    reads = "units"

    def __init__(self) -> None:
        """Judge by place."""
        self.judge = SpanJudge()

    def answers(self, verdicts: Verdicts) -> Answers:
        """Read nothing: the formula reads the places themselves, which are all known."""
        return []


class SpanRecall(SpanMetric):
    """The share of the expected characters that were retrieved."""

    name = "span_recall"

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `span_recall`."""
        assert isinstance(verdicts, SpanVerdicts)
        return span_recall(verdicts.expected, verdicts.retrieved)


class SpanPrecision(SpanMetric):
    """The share of the retrieved characters, repeats included, that are expected."""

    name = "span_precision"

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `span_precision`."""
        assert isinstance(verdicts, SpanVerdicts)
        return span_precision(verdicts.expected, verdicts.retrieved)


class SpanIoU(SpanMetric):
    """The covered characters over all that are expected or retrieved."""

    name = "span_iou"

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `span_iou`."""
        assert isinstance(verdicts, SpanVerdicts)
        return span_iou(verdicts.expected, verdicts.retrieved)


class SpanPrecisionOmega(SpanMetric):
    """The best `span_precision` that a chunking allows, whatever was retrieved.

    Args:
        chunks: The places of all chunks of the index.
    """

    name = "span_precision_omega"

    def __init__(self, chunks: Iterable[Span]) -> None:
        """Take the chunking."""
        super().__init__()
        self._by_document: dict[str, list[SpanTuple]] = {}
        for span in chunks:
            place = (span.document, span.start, span.end)
            self._by_document.setdefault(span.document, []).append(place)

    @property
    def needs(self) -> tuple[str, ...]:
        """The expected places alone."""
        return self.judge.expected_fields

    def before_judging(self, sample: Sample) -> MetricResult | None:
        """Ask only whether something is expected: what was retrieved does not matter."""
        nothing = self.judge.nothing_expected(sample, self.purpose, units=True)
        return self.result(None, "undefined", nothing) if nothing else None

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `span_precision_omega`."""
        assert isinstance(verdicts, SpanVerdicts)
        documents = {document for document, _, _ in verdicts.expected}
        chunks = [span for name in documents for span in self._by_document.get(name, ())]
        return span_precision_omega(verdicts.expected, chunks)


class RankMetric(Metric):
    """A metric of the first k ranks, by id unless another judge is given.

    A repeated chunk is credited once: its repeats keep their place as irrelevant ones.

    Args:
        k: How many ranks count; None: all.
        judge: Who says which chunks are relevant.
    """

    stem: str
    k: int | None

    def __init__(self, k: int | None = None, *, judge: Judge | None = None) -> None:
        """See the class."""
        self.k = _checked_k(k)
        self.judge = IdJudge() if judge is None else _checked_judge(judge)
        cut = "" if self.k is None else f"@{self.k}"
        by = "" if self.judge.name == "id" else f"[{self.judge.name}]"
        self.name = f"{self.stem}{cut}{by}"

    def answers(self, verdicts: Verdicts) -> Answers:
        """Read the verdict on each chunk, False for a repeated one."""
        relevant = verdicts.relevant()
        distinct = verdicts.distinct()
        if len(distinct) == len(relevant):
            return relevant
        first = set(distinct)
        return [value if rank in first else False for rank, value in enumerate(relevant)]


class HitRate(RankMetric):
    """Is any of the first k chunks relevant? 1 or 0. trec_eval's success."""

    stem = "hit_rate"

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `hit_rate`."""
        return hit_rate(answers, self.k)


class ReciprocalRank(RankMetric):
    """One over the rank of the first relevant chunk, 0 without one. trec_eval's recip_rank."""

    stem = "reciprocal_rank"

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `reciprocal_rank`."""
        return reciprocal_rank(answers, self.k)


class PrecisionAtK(RankMetric):
    """The share of the first k places that hold a relevant chunk. trec_eval's P."""

    stem = "precision"

    def __init__(self, k: int, *, judge: Judge | None = None) -> None:
        """Take k, at least 1: an empty place counts as irrelevant."""
        super().__init__(_required_k(k, "PrecisionAtK"), judge=judge)

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `precision_at_k`."""
        assert self.k is not None
        return precision_at_k(answers, self.k)


class RecallAtK(RankMetric):
    """The share of what is expected that the first k chunks cover. trec_eval's recall."""

    stem = "recall"
    reads = "units"

    def __init__(self, k: int, *, judge: Judge | None = None) -> None:
        """Take k, at least 1."""
        super().__init__(_required_k(k, "RecallAtK"), judge=judge)

    def seen(self, sample: Sample) -> Sample:
        """Let a model see the first k alone: it names one way to support a claim, not all."""
        if not self.judge.calls_model or self.k is None:
            return sample
        cut = {
            name: None if (values := getattr(sample, name)) is None else values[: self.k]
            for name in ("retrieved_contexts", "retrieved_context_ids", "retrieved_spans")
        }
        return sample.model_copy(update=cut)

    def answers(self, verdicts: Verdicts) -> Answers:
        """Read which units the first k chunks cover."""
        return verdicts.covered() if self.judge.calls_model else verdicts.covered(self.k)

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `recall`."""
        return recall(answers)


class NDCG(RankMetric):
    """How close does the order come to the best one, with grades? trec_eval's ndcg_cut.

    By id, the best order is that of all expected ids; by any other judge, that of what
    was retrieved, since nobody knows what else there is.
    """

    stem = "ndcg"

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `ndcg`."""
        if not self.judge.knows_all:
            return ndcg([int(answer) for answer in answers], self.k)
        gains = [
            gain if answer and gain else 0
            for gain, answer in zip(verdicts.gains(), answers, strict=True)
        ]
        return ndcg(gains, self.k, expected=verdicts.expected_gains())


class AveragePrecision(RankMetric):
    """The average of the precision at each relevant rank up to k. trec_eval's map_cut.

    Args:
        k: How many ranks count; None: all.
        normalize: "gold" divides by the number of expected ids, as trec_eval does;
            "retrieved" by what the best order of the retrieved chunks would reach.
        judge: Who says which chunks are relevant; any but the judge by id knows only
            what was retrieved.
    """

    stem = "average_precision"

    def __init__(
        self,
        k: int | None = None,
        normalize: Literal["gold", "retrieved"] | None = None,
        *,
        judge: Judge | None = None,
    ) -> None:
        """See the class."""
        super().__init__(k, judge=judge)
        knows_all = self.judge.knows_all
        self.normalize = normalize or ("gold" if knows_all else "retrieved")
        if self.normalize not in ("gold", "retrieved"):
            raise InvalidArgumentError(
                f"normalize: {short(normalize)} is unknown: give 'gold' or 'retrieved'"
            )
        if self.normalize == "gold" and not knows_all:
            raise InvalidArgumentError(
                "normalize: 'gold' needs to know all that is expected, which only the judge by "
                "id does: give normalize='retrieved'"
            )
        if knows_all and self.normalize == "retrieved":
            self.name += "[retrieved]"

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `average_precision`."""
        expected = len(verdicts.expected_gains()) if self.normalize == "gold" else None
        return average_precision(answers, self.k, expected=expected)


def _checked_k(k: object) -> int | None:
    if k is None:
        return None
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise InvalidArgumentError(f"k: {short(k)} is no number of ranks: give an integer >= 1")
    return int(k)


def _required_k(k: object, metric: str) -> int:
    checked = _checked_k(k)
    if checked is None:
        raise InvalidArgumentError(f"k: {metric} needs one: give an integer >= 1")
    return checked


def _checked_judge(judge: object) -> Judge:
    if isinstance(judge, Judge):
        return judge
    raise InvalidArgumentError(
        f"judge: {short(judge)} is no judge: give IdJudge(), TextJudge() or LLMJudge(llm)"
    )
