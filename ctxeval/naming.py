"""Metrics by their names, and the metrics that fit a sample."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING

from ctxeval.errors import InvalidArgumentError, near, short
from ctxeval.judges.judge import Judge
from ctxeval.judges.text import TextJudge
from ctxeval.metric import Metric
from ctxeval.metrics import (
    NDCG,
    AveragePrecision,
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    ContextUtilization,
    HitRate,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    PrecisionAtK,
    RankMetric,
    RecallAtK,
    ReciprocalRank,
    SpanIoU,
    SpanPrecision,
    SpanRecall,
)
from ctxeval.sample import Sample

if TYPE_CHECKING:
    from ctxeval.calibration.calibration import Calibration
    from ctxeval.judges.llm import LLMJudge
    from ctxeval.llm.protocol import LLM

Metrics = str | Metric | Iterable[str | Metric]
"""Wherever metrics are taken: one or several, as objects or by name, or "auto"."""

_WITHOUT_MODEL: dict[str, type[Metric]] = {
    metric.name: metric
    for metric in (
        IDBasedContextPrecision,
        IDBasedContextRecall,
        NonLLMContextPrecisionWithReference,
        NonLLMContextRecall,
        SpanRecall,
        SpanPrecision,
        SpanIoU,
    )
}
_WITH_MODEL: dict[str, type[Metric]] = {
    metric.name: metric
    for metric in (ContextPrecision, ContextRecall, ContextRelevance, ContextUtilization)
}
_RANKED: dict[str, type[RankMetric]] = {
    metric.stem: metric
    for metric in (HitRate, ReciprocalRank, PrecisionAtK, RecallAtK, NDCG, AveragePrecision)
}
_SHORT = {
    "non_llm_context_precision": "non_llm_context_precision_with_reference",
    "mrr": "reciprocal_rank",
}
_RANKED_NAME = re.compile(r"(\w+?)(?:@(\d+))?(?:\[(\w+)\])?")


def metric_by_name(name: str, llm: LLM | LLMJudge | None = None) -> Metric:
    """Make the metric of this name, with its defaults.

    Args:
        name: `"context_recall"`, `"ndcg@10"`, `"hit_rate@5[text]"`, …
        llm: The model, or a judge with one, for the metrics that need it.

    Raises:
        InvalidArgumentError: There is no such metric, or it needs a model.
    """
    plain = _SHORT.get(name, name)
    if plain in _WITHOUT_MODEL:
        return _WITHOUT_MODEL[plain]()
    if plain in _WITH_MODEL:
        return _WITH_MODEL[plain](_needed(llm, name))  # type: ignore[call-arg]  # all take one
    matched = _RANKED_NAME.fullmatch(name)
    stem = _SHORT.get(matched[1], matched[1]) if matched else ""
    if matched is None or stem not in _RANKED:
        examples = [stem if stem == "reciprocal_rank" else f"{stem}@10" for stem in _RANKED]
        known = [*_WITHOUT_MODEL, *_WITH_MODEL, *examples, *_SHORT]
        raise InvalidArgumentError(f"metrics: {short(name)} is unknown: {near(name, known)}")
    k = None if matched[2] is None else int(matched[2])
    if stem == "average_precision" and matched[3] == "retrieved":
        return AveragePrecision(k, "retrieved")
    return _RANKED[stem](k, judge=_judge_by_name(matched[3], name, llm))


def _judge_by_name(judge: str | None, name: str, llm: LLM | LLMJudge | None) -> Judge | None:
    if judge in (None, "id"):
        return None
    if judge == "text":
        return TextJudge()
    if judge == "llm":
        from ctxeval.judges.llm import LLMJudge

        needed = _needed(llm, name)
        return needed if isinstance(needed, LLMJudge) else LLMJudge(needed)
    raise InvalidArgumentError(
        f"metrics: {name!r} names the judge {judge!r}: it is one of id, text, llm"
    )


def _needed(llm: LLM | LLMJudge | None, name: str) -> LLM | LLMJudge:
    if llm is None:
        raise InvalidArgumentError(
            f"metrics: {name!r} is judged by a model: give llm=ctxeval.llm_factory('…')"
        )
    return llm


def resolve_metrics(metrics: Metrics, llm: LLM | LLMJudge | None = None) -> list[Metric]:
    """Make a list of metrics out of objects and names; "auto" is not among them.

    Raises:
        InvalidArgumentError: There is none, something is no metric, or two have one name.
    """
    given = [metrics] if isinstance(metrics, (str, Metric, type)) else metrics
    if not isinstance(given, Iterable) or isinstance(given, Mapping):
        raise InvalidArgumentError(f"metrics: {short(metrics)} is no metric and no list of them")
    resolved: dict[str, Metric] = {}
    for item in given:
        if isinstance(item, type) and issubclass(item, Metric):
            named = item.__name__
            raise InvalidArgumentError(f"metrics: {named} is a class: give {named}(…)")
        if not isinstance(item, (str, Metric)):
            raise InvalidArgumentError(f"metrics: {short(item)} is no metric and no metric's name")
        metric = metric_by_name(item, llm) if isinstance(item, str) else item
        if metric.name in resolved:
            raise InvalidArgumentError(
                f"metrics: two are named {metric.name!r}: set the .name of one of them"
            )
        resolved[metric.name] = metric
    if not resolved:
        raise InvalidArgumentError("metrics: the list is empty: give at least one, or 'auto'")
    return list(resolved.values())


class MetricSet:
    """Metrics as the user gave them: fixed ones, or "auto", chosen for each sample.

    Args:
        metrics: Objects, names, or "auto".
        llm: The model, or a judge with one, for those by name and for "auto".

    Raises:
        InvalidArgumentError: See `resolve_metrics`.
    """

    def __init__(self, metrics: Metrics = "auto", llm: LLM | LLMJudge | None = None) -> None:
        """See the class."""
        self.auto = isinstance(metrics, str) and metrics == "auto"
        if not self.auto:
            self._fixed = resolve_metrics(metrics, llm)
            return
        self._fixed = []
        self._by_id = resolve_metrics([*_IDS, "reciprocal_rank", "ndcg@10"])
        self._by_text = resolve_metrics([*_TEXTS])
        self._by_span = resolve_metrics([*_SPANS])
        by_model = [] if llm is None else resolve_metrics([*_WITH_MODEL], llm)
        self._by_model = {metric.name: metric for metric in by_model}

    @property
    def names(self) -> list[str]:
        """The metrics' names, or "auto"."""
        return ["auto"] if self.auto else [metric.name for metric in self._fixed]

    def by_name(self) -> dict[str, Metric]:
        """Give the metrics by their names; of "auto" none."""
        return {metric.name: metric for metric in self._fixed}

    @property
    def calls_model(self) -> bool:
        """Is one of them judged by a model?"""
        chosen = [*self._fixed, *(self._by_model.values() if self.auto else ())]
        return any(metric.judge.calls_model for metric in chosen)

    def of(self, sample: Sample) -> list[Metric]:
        """Give the metrics for a sample: the fixed ones, or those that it has the fields for."""
        if not self.auto:
            return self._fixed
        chosen: list[Metric] = []
        if sample.reference_context_ids is not None:
            chosen += self._by_id
        if sample.reference_contexts is not None:
            chosen += self._by_text
        if sample.reference_spans is not None:
            chosen += self._by_span
        chosen += self._by_model.values()
        return [metric for metric in chosen if not metric.missing(sample)]

    def with_judges(self, change: Callable[[LLMJudge], LLMJudge]) -> MetricSet:
        """Make the same set with other judges in place of those that ask a model."""
        return self._changed(lambda metric, judge: change(judge))

    def calibrated(self, calibrations: Iterable[Calibration]) -> MetricSet:
        """Make the same set with judges that have the thresholds that were fitted to them.

        A calibration is about one kind of verdicts; the metrics that read such get it.

        Raises:
            InvalidArgumentError: A calibration is another judge's, or no metric reads such
                verdicts, or two are about the same.
        """
        made = self
        seen: set[str] = set()
        for one in calibrations:
            if one.purpose in seen:
                raise InvalidArgumentError(
                    f"calibration: two are about verdicts for {one.purpose!r}: leave one"
                )
            seen.add(one.purpose)
            made = made._with_calibration(one)
        return made

    def _with_calibration(self, calibration: Calibration) -> MetricSet:
        fitting = 0

        def change(metric: Metric, judge: LLMJudge) -> LLMJudge:
            nonlocal fitting
            if metric.verdicts_for != calibration.purpose:
                return judge
            fitting += 1
            return judge.with_calibration(calibration)

        made = self._changed(change)
        if not fitting:
            raise InvalidArgumentError(
                f"calibration: it is about verdicts for {calibration.purpose!r}, and no metric "
                "here has a model give such: leave it out, or add the metric"
            )
        return made

    def _changed(self, change: Callable[[Metric, LLMJudge], LLMJudge]) -> MetricSet:
        made = copy(self)
        made._fixed = [_with_judge(metric, change) for metric in self._fixed]
        if self.auto:
            by_model = {name: _with_judge(m, change) for name, m in self._by_model.items()}
            made._by_model = by_model
        return made

    def by_id(self) -> list[Metric]:
        """Give the metrics that judge by id, whatever the sample."""
        return self._by_id if self.auto else [m for m in self._fixed if m.judge.name == "id"]


def _with_judge(metric: Metric, change: Callable[[Metric, LLMJudge], LLMJudge]) -> Metric:
    from ctxeval.judges.llm import LLMJudge

    judge = metric.judge
    if not isinstance(judge, LLMJudge):
        return metric
    metric = copy(metric)
    metric.judge = change(metric, judge)
    return metric


_IDS = ("id_based_context_precision", "id_based_context_recall")
_TEXTS = ("non_llm_context_precision_with_reference", "non_llm_context_recall")
_SPANS = ("span_recall", "span_precision", "span_iou")
