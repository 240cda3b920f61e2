"""A metric as an evaluator for LangSmith and openevals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from ctxeval import (
    Chunk,
    CtxEvalError,
    InvalidArgumentError,
    InvalidSampleError,
    Metric,
    MetricResult,
    MissingFieldError,
    QueryRecord,
    Retrieval,
    Sample,
    Verdict,
    score,
)
from ctxeval_langchain.reading import answer_of, chunks_of, question_of, snapshot

if TYPE_CHECKING:
    from langsmith.schemas import Example, Run

_CONTEXTS = ("contexts", "documents", "context", "retrieved_contexts")
_IDS = ("retrieved_ids", "retrieved_context_ids")
_TEXTS = ("page_content", "text", "content")
_EXPECTED = {
    "reference": ("reference",),
    "reference_contexts": ("reference_contexts",),
    "reference_context_ids": ("reference_ids", "reference_context_ids"),
    "reference_claims": ("reference_claims",),
}
_MAX_SHOWN = 100
"""How many characters of a text are put into the feedback."""


def as_langsmith_evaluator(
    metric: Metric, *, walk_run: bool = False
) -> Callable[..., dict[str, Any]]:
    """Make an evaluator of a metric, for `langsmith.evaluate`, `aevaluate` and openevals.

    The question is read from the inputs, the answer from the outputs, and what was expected
    from the reference outputs: `reference` or `answer`, `reference_ids`,
    `reference_contexts`, `reference_claims`.

    Args:
        metric: The metric.
        walk_run: Where are the chunks? False: in the outputs, as `contexts`, `documents`,
            `context` or `retrieved_contexts`: texts, `Document`s, or dicts with `id` and
            `page_content` or `text`; openevals' `context=` will do as well. True: in the
            retriever runs below the evaluated run, whatever the application returns.

    Returns:
        A function that takes `inputs`, `outputs` and `reference_outputs` (or, with
        `walk_run`, `run` and `example`) and returns a dict: `key` is the metric's name;
        `score` the value, None where there is none; `comment` why, or what was judged how;
        `metadata` the status, the bounds, the signature and the verdicts.

    Raises:
        InvalidArgumentError: It is no metric.

    Examples:
        >>> from ctxeval import IDBasedContextRecall
        >>> evaluator = as_langsmith_evaluator(IDBasedContextRecall())
        >>> evaluator(
        ...     outputs={"documents": [{"id": "a", "page_content": "…"}]},
        ...     reference_outputs={"reference_ids": ["a", "b"]},
        ... )["score"]
        0.5
    """
    if not isinstance(metric, Metric):
        raise InvalidArgumentError(f"metric: a {type(metric).__name__} is no metric: give one")

    def evaluate_outputs(
        *, inputs: Any = None, outputs: Any, reference_outputs: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        return _feedback(
            metric, lambda: _sample_of_outputs(inputs, outputs, reference_outputs, kwargs)
        )

    def evaluate_run(run: Run, example: Example | None = None) -> dict[str, Any]:
        return _feedback(metric, lambda: _sample_of_run(run, example))

    evaluator = evaluate_run if walk_run else evaluate_outputs
    evaluator.__name__ = evaluator.__qualname__ = metric.name
    return evaluator


def _feedback(metric: Metric, make_sample: Callable[[], Sample]) -> dict[str, Any]:
    try:
        result = score(make_sample(), [metric])[metric.name]
    except CtxEvalError as error:
        result = metric.result(None, "failed", str(error))
    chunks = result.verdicts.chunks if result.verdicts else ()
    units = result.verdicts.units if result.verdicts else ()
    decisive = chunks if metric.reads == "chunks" else units
    return {
        "key": metric.name,
        "score": result.value,
        "comment": result.reason or "\n".join(_line(verdict) for verdict in decisive) or None,
        "metadata": {
            "status": result.status,
            "bounds": None if result.bounds is None else list(result.bounds),
            "signature": result.signature,
            "chunks": [_brief(verdict) for verdict in chunks],
            "units": [_brief(verdict) for verdict in units],
        },
    }
