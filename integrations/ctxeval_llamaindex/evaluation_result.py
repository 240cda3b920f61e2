"""What an evaluator says: LlamaIndex's result, with ids, scores and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from llama_index.core.evaluation import EvaluationResult
from pydantic import BeforeValidator, InstanceOf, PlainSerializer

from ctxeval import Metric, MetricResult, Verdict, Verdicts

_MAX_LINES = 20
_MAX_SHOWN = 100
"""How many verdicts, and how many characters of each, are put into the feedback."""


def _read(value: Any) -> Any:
    return MetricResult.from_dict(value) if isinstance(value, Mapping) else value


class ContextEvaluationResult(EvaluationResult):
    """What a `ContextEvaluator` says, beside what any evaluator of LlamaIndex does.

    `score` is the metric's value, None where there is none: then `invalid_result` is True
    and `invalid_reason` says why. `passing` and `feedback` are always set.

    Attributes:
        context_ids: The ids of the retrieved nodes, best first.
        context_scores: The scores that the retriever gave them, where nodes were given.
        metric_result: What the metric says, with status, bounds, signature and usage.
    """

    context_ids: list[str] | None = None
    context_scores: list[float | None] | None = None
    metric_result: Annotated[
        InstanceOf[MetricResult],
        BeforeValidator(_read),
        PlainSerializer(MetricResult.to_dict),
    ]

    @property
    def verdicts(self) -> Verdicts | None:
        """What was said of each context and of each unit of what was expected."""
        return self.metric_result.verdicts


def feedback_on(metric: Metric, result: MetricResult, threshold: float) -> str:
    """Say in words what came out, verdict by verdict, for people and for retrying engines."""
    if result.value is None:
        return f"{metric.name} is {result.status}: {result.reason}"
    lines = [f"{metric.name} is {result.value:.3f}, the threshold {threshold:g}"]
    if result.reason:
        lines.append(result.reason)
    if result.verdicts is not None:
        by_chunk = metric.reads == "chunks"
        decisive = result.verdicts.chunks if by_chunk else result.verdicts.units
        lines += [_line(verdict) for verdict in decisive[:_MAX_LINES]]
        if len(decisive) > _MAX_LINES:
            lines.append(f"… and {len(decisive) - _MAX_LINES} more")
    return "\n".join(lines)


def _line(verdict: Verdict) -> str:
    mark = {True: "+", False: "-", None: "?"}[verdict.value]
    return f"{mark} {_cut(verdict.text)}" + (f": {_cut(verdict.reason)}" * bool(verdict.reason))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
