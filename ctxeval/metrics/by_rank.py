"""Metrics of a ranking, as trec_eval defines them, by any judge's verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Literal

from ctxeval.errors import InvalidArgumentError, short
from ctxeval.formulas.precision import average_precision
from ctxeval.formulas.ranking import hit_rate, ndcg, precision_at_k, reciprocal_rank
from ctxeval.formulas.recall import recall
from ctxeval.judges.ids import IdJudge
from ctxeval.judges.judge import Judge
from ctxeval.metric import Answers, Metric
from ctxeval.sample import Sample
from ctxeval.verdicts import Verdicts


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
