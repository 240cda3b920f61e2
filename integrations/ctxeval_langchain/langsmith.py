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
    MissingFieldError,
    QueryRecord,
    Retrieval,
    Sample,
    Verdict,
    score,
)
from ctxeval_langchain.documents import chunks_of, snapshot
from ctxeval_langchain.reading import answer_of, question_of

if TYPE_CHECKING:
    from langsmith.schemas import Example, Run

_CONTEXTS = ("contexts", "documents", "context", "retrieved_contexts")
_IDS = ("retrieved_ids", "retrieved_context_ids")
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
        raise InvalidArgumentError(
            f"metric: {metric!r} is no metric: give an object, ctxeval.ReciprocalRank(), say"
        )

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


def _brief(verdict: Verdict) -> dict[str, Any]:
    return {
        "value": verdict.value,
        "text": _cut(verdict.text),
        "reason": _cut(verdict.reason),
        "matched": list(verdict.matched),
    }


def _line(verdict: Verdict) -> str:
    mark = {True: "+", False: "-", None: "?"}[verdict.value]
    return f"{mark} {_cut(verdict.text)}" + (f": {_cut(verdict.reason)}" * bool(verdict.reason))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def _sample_of_outputs(
    inputs: Any, outputs: Any, reference_outputs: Any, others: Mapping[str, Any]
) -> Sample:
    question = question_of(inputs)
    expected = _expected(question, reference_outputs)
    given = {**others, **outputs} if isinstance(outputs, Mapping) else others
    documents = _first(given, _CONTEXTS)
    chunks = None if documents is None else _chunks(documents)
    retrievals = None if chunks is None else [Retrieval(question or "", chunks)]
    sample = _sample(question, answer_of(outputs), expected, retrievals)
    ids = _first(given, _IDS)
    return sample if ids is None else sample.model_copy(update={"retrieved_context_ids": ids})


def _sample_of_run(run: Run, example: Example | None) -> Sample:
    question = question_of(run.inputs if example is None else example.inputs)
    expected = _expected(question, None if example is None else example.outputs)
    retrievals = list(_retrievals([run], root_failed=bool(run.error)))
    if not retrievals:
        raise MissingFieldError(
            "there is no retriever run below the run: search by a retriever or by "
            "traced_search(store), and load nested runs"
        )
    if all(one.error for one in retrievals):
        raise MissingFieldError(f"every retriever run failed: {retrievals[0].error}")
    return _sample(question, answer_of(run.outputs), expected, retrievals)


def _sample(
    question: str | None,
    answer: str | None,
    expected: Sample,
    retrievals: list[Retrieval] | None,
) -> Sample:
    """Put a sample together as for a captured query, which knows what counts as retrieved."""
    read: dict[str, Any] = {"user_input": question, "response": answer}
    if retrievals is None:
        return expected.model_copy(update=read)
    record = QueryRecord(
        expected.key, question or "", answer, retrievals=retrievals, reference=expected
    )
    chunks = record.chunks()
    if chunks and not any(chunk.text for chunk in chunks):  # ids alone were given
        read["retrieved_contexts"] = None
    return record.sample().model_copy(update=read)


def _retrievals(runs: Iterable[Run], root_failed: bool) -> Iterator[Retrieval]:
    """Give the outermost retriever runs, without those of an attempt that was given up."""
    for run in runs:
        if run.run_type == "retriever":
            found = _first(run.outputs or {}, ("documents", "output"))
            yield Retrieval(
                question_of(run.inputs) or "",
                () if found is None else _chunks(found),
                run.name,
                error=run.error or "",
            )
        elif root_failed or not run.error:
            yield from _retrievals(run.child_runs or (), root_failed)


def _expected(question: str | None, given: Any) -> Sample:
    reference = answer_of(given)
    fields: dict[str, Any] = {} if reference is None else {"reference": reference}
    for field, keys in _EXPECTED.items():
        value = _first(given, keys) if isinstance(given, Mapping) else None
        if value is not None:
            fields[field] = value
    return Sample(user_input=question, **fields)


def _first(given: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((given[key] for key in keys if given.get(key) is not None), None)


def _chunks(found: Any) -> tuple[Chunk, ...]:
    """Read documents, however they are written."""
    if isinstance(found, Mapping) and (inner := _first(found, _CONTEXTS)) is not None:
        return _chunks(inner)
    listed = [found] if isinstance(found, (str, Document, Mapping)) else found
    if not isinstance(listed, (list, tuple)):
        raise InvalidSampleError(f"the contexts are a {type(found).__name__}: give a list")
    for one in listed:
        if not isinstance(one, (str, Document, Mapping)):
            kind = type(one).__name__
            raise InvalidSampleError(f"a context is a {kind}: give texts, Documents or dicts")
    return chunks_of(snapshot([_unwrapped(one) for one in listed]) or (), None, {})


def _unwrapped(one: Any) -> Any:
    """Take a document out of the wrapping in which LangChain serialises objects."""
    serialised = isinstance(one, Mapping) and isinstance(one.get("kwargs"), Mapping)
    return one["kwargs"] if serialised else one
