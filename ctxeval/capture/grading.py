"""Which scores a captured record gets: at once, later, or none and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ctxeval.metrics import RankMetric
from ctxeval.naming import MetricSet
from ctxeval.record.query import TEXT_HASH, Chunk, QueryRecord, Retrieval
from ctxeval.result import MetricResult
from ctxeval.sample import Sample

if TYPE_CHECKING:
    from ctxeval.metric import Metric


class Plan(NamedTuple):
    """What is to be done with a record.

    Attributes:
        sample: What is scored.
        at_once: The metrics by id and by text.
        later: The metrics by a model.
        settled: The results that need no judging, by the metric's name.
    """

    sample: Sample
    at_once: list[Metric]
    later: list[Metric]
    settled: dict[str, MetricResult]


def plan(record: QueryRecord, metrics: MetricSet) -> Plan:
    """Sort the metrics for a record."""
    sample = record.sample()
    chosen = metrics.of(sample)
    settled: dict[str, MetricResult] = {}
    if sample.retrieved_context_ids is None and sample.reference_context_ids is not None:
        reason = "no ids were captured: set them when you index"
        settled = {m.name: m.result(None, "skipped", reason) for m in metrics.by_id()}
    for metric in chosen:
        if record.retrieval_error:
            reason = f"the retrieval failed: {record.retrieval_error}"
            settled[metric.name] = metric.result(None, "failed", reason)
        elif record.pooled and isinstance(metric, RankMetric):
            reason = "several retrievals were pooled, so there is no one order"
            settled[metric.name] = metric.result(None, "skipped", reason)
        elif record.unreferenced and (missing := metric.missing(sample)):
            reason = f"{missing}: {record.unreferenced}"
            settled[metric.name] = metric.result(None, "skipped", reason)
    left = [metric for metric in chosen if metric.name not in settled]
    at_once = [metric for metric in left if not metric.judge.calls_model]
    later = [metric for metric in left if metric.judge.calls_model]
    return Plan(sample, at_once, later, settled)


def score_at_once(record: QueryRecord, planned: Plan, metrics: MetricSet) -> None:
    """Score by id and by text: the record, and each of its stages."""
    from ctxeval.scoring import score_all

    results = score_all([planned.sample], planned.at_once)[0] if planned.at_once else {}
    _note_hashes(record.chunks(), planned.at_once, results)
    for stage in record.retrievals:
        alone = len(record.retrievals) == 1 and not stage.error
        stage.scores = results if alone else _score_stage(record, stage, metrics)
    record.scores = {**results, **planned.settled}


def _note_hashes(
    chunks: Sequence[Chunk], metrics: Sequence[Metric], results: Mapping[str, MetricResult]
) -> None:
    """Say on scores by id that some chunks had no id, so that they can't be the expected ones."""
    hashes = sum(chunk.id_source == TEXT_HASH for chunk in chunks)
    for metric in metrics if hashes else ():
        if metric.judge.name == "id" and results[metric.name].status == "scored":
            reason = f"{hashes} of {len(chunks)} chunks have no id but a hash of their text"
            results[metric.name].reason = reason


def _score_stage(
    record: QueryRecord, stage: Retrieval, metrics: MetricSet
) -> dict[str, MetricResult]:
    from ctxeval.scoring import score_all

    sample = record.sample(stage)
    chosen = [metric for metric in metrics.of(sample) if not metric.judge.calls_model]
    if stage.error:
        reason = f"the retrieval failed: {stage.error}"
        return {metric.name: metric.result(None, "failed", reason) for metric in chosen}
    return score_all([sample], chosen)[0] if chosen else {}
