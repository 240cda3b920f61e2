"""Metrics by id and by text as metrics of LlamaIndex's `RetrieverEvaluator`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY
from llama_index.core.evaluation.retrieval.metrics_base import (
    BaseRetrievalMetric,
    RetrievalMetricResult,
)

from ctxeval import InvalidArgumentError, Metric, Metrics, NotScoredError, resolve_metrics, score
from ctxeval_llamaindex.matching import random_ids

REGISTERED = (
    "id_based_context_precision",
    "id_based_context_recall",
    "reciprocal_rank",
    "hit_rate@10",
    "precision@10",
    "recall@10",
    "ndcg@10",
    "average_precision@10",
)
"""What `register` registers by itself."""


class ContextRetrievalMetricResult(RetrievalMetricResult):
    """What a metric says of a retrieval.

    Attributes:
        score: The value; None where nothing is expected or a list is missing, which is
            neither 0 nor NaN: `metadata` has `status` and `reason`.
        metadata: What `MetricResult.to_dict()` gives.
    """

    score: float | None  # type: ignore[assignment]  # LlamaIndex knows only numbers

    def __float__(self) -> float:
        """Give the value.

        Raises:
            NotScoredError: There is none.
        """
        if self.score is None:
            raise NotScoredError("{metric} is {status}: {reason}".format(**self.metadata))
        return self.score


class ContextRetrievalMetric(BaseRetrievalMetric):
    """One of ctxeval's metrics; see `retrieval_metrics`.

    Attributes:
        metric_name: The metric's name, which tells its configuration: LlamaIndex has one
            per class, so each metric has a class of its own.
        metric: The metric.
    """

    metric: ClassVar[Metric]

    def compute(
        self,
        query: str | None = None,
        expected_ids: Sequence[object] | None = None,
        retrieved_ids: Sequence[object] | None = None,
        expected_texts: Sequence[str] | None = None,
        retrieved_texts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> ContextRetrievalMetricResult:
        """Compare what was retrieved with what was expected.

        Args:
            query: Does not matter.
            expected_ids: The ids that should be retrieved; for metrics by id.
            retrieved_ids: The ids that were, best first. A repeated one counts at its
                first rank only.
            expected_texts: The texts that should be retrieved; for metrics by text.
            retrieved_texts: The texts that were.
            **kwargs: Do not matter either.

        Returns:
            0 for an empty retrieval; no score where nothing is expected.

        Raises:
            InvalidSampleError: An id is empty, or something is no text.
        """
        if self.metric.judge.name == "id":
            sample = {
                "retrieved_context_ids": retrieved_ids,
                "reference_context_ids": expected_ids,
            }
        else:
            sample = {"retrieved_contexts": retrieved_texts, "reference_contexts": expected_texts}
        result = score(sample, [self.metric])[self.metric.name]
        if self.metric.judge.name == "id" and result.value is not None:
            retrieved, expected = map(str, retrieved_ids or ()), map(str, expected_ids or ())
            result.reason = result.reason or random_ids([*retrieved], [*expected])
        return ContextRetrievalMetricResult(score=result.value, metadata=result.to_dict())


def retrieval_metrics(metrics: Metrics = REGISTERED) -> list[BaseRetrievalMetric]:
    """Make metrics for `RetrieverEvaluator(metrics=…, retriever=…)`.

    Args:
        metrics: One or several, as objects or by name: "ndcg@10", "hit_rate@5",
            `NonLLMContextRecall(threshold=0.8)`, … Each stands in the results under its
            own name, so several of one kind don't hide each other.

    Raises:
        InvalidArgumentError: One is unknown, two have one name, or one is judged by a
            model or by the place in the document, which `RetrieverEvaluator` does not know.
    """
    return [_class_of(metric)() for metric in _checked(metrics)]


def register(metrics: Metrics = REGISTERED, *, overwrite: bool = False) -> list[str]:
    """Let `RetrieverEvaluator.from_metric_names` find metrics of ctxeval's.

    Args:
        metrics: As of `retrieval_metrics`.
        overwrite: Take names that something else stands under already? Of LlamaIndex's
            own: hit_rate, mrr, precision, recall, ap, ndcg.

    Returns:
        The names under which they stand. Registering again is no harm.

    Raises:
        InvalidArgumentError: As of `retrieval_metrics`; or a name is taken.
    """
    made = {metric.name: _class_of(metric) for metric in _checked(metrics)}
    taken = [
        name
        for name in made
        if not issubclass(METRIC_REGISTRY.get(name, ContextRetrievalMetric), ContextRetrievalMetric)
    ]
    if taken and not overwrite:
        raise InvalidArgumentError(
            f"metrics: {', '.join(taken)} stands for another metric in LlamaIndex: give k, as in "
            f"'{taken[0]}@10', set the metric's .name, or say overwrite=True"
        )
    METRIC_REGISTRY.update(made)
    return list(made)


def _checked(metrics: Metrics) -> list[Metric]:
    resolved = resolve_metrics(metrics)
    for metric in resolved:
        if metric.judge.name not in ("id", "text"):
            by = "a model" if metric.judge.calls_model else metric.judge.name
            raise InvalidArgumentError(
                f"metrics: {metric.name} is judged by {by}, for which a RetrieverEvaluator has no "
                "place: use evaluate_dataset or ContextEvaluator"
            )
    return resolved


def _class_of(one: Metric) -> type[ContextRetrievalMetric]:
    class Named(ContextRetrievalMetric):
        metric_name: ClassVar[str] = one.name
        metric: ClassVar[Metric] = one

    return Named
