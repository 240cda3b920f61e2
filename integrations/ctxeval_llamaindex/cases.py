"""One evaluation: from what was given to the result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from llama_index.core.schema import NodeWithScore

from ctxeval import (
    NDCG,
    AveragePrecision,
    CtxEvalError,
    HitRate,
    Metric,
    MetricResult,
    PrecisionAtK,
    RecallAtK,
    ReciprocalRank,
    Sample,
)
from ctxeval_llamaindex.evaluation_result import ContextEvaluationResult, feedback_on
from ctxeval_llamaindex.matching import misplaced, random_ids
from ctxeval_llamaindex.nodes import IdFrom, retrieved
from ctxeval_llamaindex.reading import text_of
from ctxeval_llamaindex.responses import Reading
from ctxeval_llamaindex.suppression import suppress

_RANKED = (HitRate, ReciprocalRank, PrecisionAtK, RecallAtK, NDCG, AveragePrecision)

_RETRIEVED = {"retrieved_contexts", "retrieved_context_ids", "retrieved_spans"}

_FIELDS = {
    "query": "user_input",
    "response": "response",
    "contexts": "retrieved_contexts",
    "context_ids": "retrieved_context_ids",
    "reference": "reference",
    "reference_contexts": "reference_contexts",
    "reference_ids": "reference_context_ids",
    "reference_context_ids": "reference_context_ids",
    "reference_claims": "reference_claims",
    "reference_spans": "reference_spans",
}
"""Which field of a sample each argument of the evaluator's is; others are passed over."""

_ARGUMENTS = {field: name for name, field in reversed(_FIELDS.items())}
"""What the evaluator calls the fields of a sample."""


_RENAMED = re.compile(
    "|".join(rf"\b{field}\b" for field, name in _ARGUMENTS.items() if field != name)
)


def _renamed(said: str) -> str:
    """Call the fields of a sample what the evaluator's arguments are called."""
    return _RENAMED.sub(lambda found: _ARGUMENTS[found[0]], said)


class Settings(NamedTuple):
    """What an evaluator was made with; see `ContextEvaluator`."""

    metric: Metric
    threshold: float
    id_from: IdFrom
    context_text: str


class Case:
    """One evaluation.

    Args:
        settings: What the evaluator was made with.
        given: What was given to it, by the names of its arguments.
        reading: What was found in the response, where one was given.

    Attributes:
        sample: What is to be scored.
        result: What came of it; None while that is not known.
    """

    def __init__(self, settings: Settings, given: Mapping[str, Any], reading: Reading) -> None:
        """Make the sample, and the result where that is known without judging."""
        self.metric, self.threshold, self.id_from, mode = settings
        self.reading = reading
        self.result: MetricResult | None = None
        known = {name: value for name, value in given.items() if value is not None}
        fields = {_FIELDS[name]: value for name, value in known.items() if name in _FIELDS}
        if (question := text_of(fields.get("user_input"))) is not None:  # of a bundle, say
            fields["user_input"] = question
        texts = {name: fields.get(name) for name in ("user_input", "response")}
        self.sample = Sample(**{n: text for n, text in texts.items() if isinstance(text, str)})
        with self.guarded():
            if reading.nodes is not None and not fields.keys() & _RETRIEVED:
                fields |= retrieved(reading.nodes, self.id_from, mode)
            self.sample = Sample(**fields)
            if reading.pooled and isinstance(self.metric, _RANKED):
                self._skip("several tool calls gave nodes, so there is no one order")
            elif missing := self._missing():
                self._skip(missing)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Make a failed result of whatever is raised, by a judge or function of the user's, say."""
        try:
            with suppress():
                yield
        except Exception as error:
            own = isinstance(error, CtxEvalError)
            said = _renamed(str(error)) if own else f"{type(error).__name__}: {error}"
            self.result = self.metric.result(None, "failed", said)

    def _skip(self, reason: str) -> None:
        self.result = self.metric.result(None, "skipped", reason)

    def _missing(self) -> str:
        """Say which arguments are missing, by the names that they have here."""
        if not self.metric.missing(self.sample):
            return ""
        fields = [name for name in self.metric.needs if getattr(self.sample, name) is None]
        why = [self.reading.no_nodes] if _RETRIEVED.intersection(fields) else []
        why += [self.reading.no_text] if "response" in fields else []
        named = " and ".join(_ARGUMENTS.get(name, name) for name in fields)
        return f"it needs {named}: " + ("; ".join(dict.fromkeys(filter(None, why))) or "give it")

    def _advice(self) -> str:
        """Say why no expected id was found, where the metric goes by ids."""
        expected = self.sample.reference_context_ids
        if self.metric.judge.name != "id" or not expected:
            return ""
        found = misplaced(self.reading.nodes or (), self.id_from, expected)
        return found or random_ids(self.sample.retrieved_context_ids or (), expected)

    def conclude(self) -> ContextEvaluationResult:
        """Give the result in LlamaIndex's form."""
        result, sample, nodes = self.result, self.sample, self.reading.nodes
        assert result is not None
        if result.value is not None and (advice := self._advice()):
            result = replace(result, reason="; ".join(filter(None, (result.reason, advice))))
        ids, contexts = sample.retrieved_context_ids, sample.retrieved_contexts
        scores = [one.score if isinstance(one, NodeWithScore) else None for one in nodes or ()]
        parallel = nodes is not None and ids is not None and len(scores) == len(ids)
        return ContextEvaluationResult(
            query=sample.user_input,
            contexts=None if contexts is None else list(contexts),
            response=sample.response,
            passing=result.value is not None and result.value >= self.threshold,
            feedback=feedback_on(self.metric, result, self.threshold),
            score=result.value,
            invalid_result=result.value is None,
            invalid_reason=result.reason if result.value is None else None,
            context_ids=None if ids is None else list(ids),
            context_scores=scores if parallel else None,
            metric_result=result,
        )
