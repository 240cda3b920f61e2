"""Score samples by several metrics: who shares a judge shares its verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ctxeval.errors import CtxEvalError, InvalidSampleError, MissingFieldError, describe, short
from ctxeval.llm.loop import arun, run, submit
from ctxeval.metric import Metric
from ctxeval.naming import Metrics, MetricSet
from ctxeval.result import MetricResult
from ctxeval.sample import Sample
from ctxeval.verdicts import Verdicts

if TYPE_CHECKING:
    from ctxeval.llm.protocol import LLM

GIVE_UP_AFTER = 3
"""After so many equal failures in a row, a function of the user's own counts as out of order."""

Results = dict[str, MetricResult]
"""Results by the metric's name."""

MAX_SAMPLES_AT_ONCE = 64
"""How many samples are being judged at once; the calls are limited by the model's own limit."""


def score(
    sample: Sample | Mapping[str, Any],
    metrics: Metrics = "auto",
    llm: LLM | None = None,
) -> Results:
    """Score one sample by several metrics, judging once for all that share a judge.

    Args:
        sample: A `Sample`, or a dict of its fields.
        metrics: Metrics or their names, or "auto": whatever the sample has the fields for.
        llm: The model, for metrics given by name and for "auto".

    Returns:
        A result for each metric, by name. No metric costs another: where a field is
        missing the result is "skipped", where a judge failed it is "failed", each with
        its reason.

    Raises:
        InvalidSampleError: It is no sample.
        InvalidArgumentError: A metric is unknown.
        MissingFieldError: With "auto": it has the fields for no metric.

    Examples:
        >>> results = score({"retrieved_context_ids": ["a", "b"], "reference_context_ids": ["b"]})
        >>> results["reciprocal_rank"].value
        0.5
    """
    checked = Sample.of(sample)
    return _some(score_all([checked], MetricSet(metrics, llm))[0])


async def ascore(
    sample: Sample | Mapping[str, Any],
    metrics: Metrics = "auto",
    llm: LLM | None = None,
) -> Results:
    """Score one sample from asynchronous code; see `score`."""
    checked = Sample.of(sample)
    return _some((await ascore_all([checked], MetricSet(metrics, llm)))[0])


def _some(results: Results) -> Results:
    if not results:
        raise MissingFieldError(
            "nothing can be scored: give retrieved_context_ids with reference_context_ids, "
            "retrieved_contexts with reference_contexts, or llm= with user_input and "
            "retrieved_contexts"
        )
    return results


def score_all(
    samples: Iterable[Sample | Mapping[str, Any]], metrics: MetricSet | Sequence[Metric]
) -> list[Results]:
    """Score many samples; see `score`."""
    work = [_Work(sample, metrics) for sample in _checked(samples)]
    _score_without_model(work)
    if any(one.by_model for one in work):
        run(_score_by_model(work))
    return [one.in_order() for one in work]


async def ascore_all(
    samples: Iterable[Sample | Mapping[str, Any]], metrics: MetricSet | Sequence[Metric]
) -> list[Results]:
    """Score many samples from asynchronous code; see `score`."""
    work = [_Work(sample, metrics) for sample in _checked(samples)]
    await asyncio.to_thread(_score_without_model, work)
    if any(one.by_model for one in work):
        await arun(_score_by_model(work))
    return [one.in_order() for one in work]


def begin_all(
    samples: Iterable[Sample | Mapping[str, Any]], metrics: MetricSet | Sequence[Metric]
) -> list[Future[Results]]:
    """Begin to score many samples, and give the results as they will come; see `score`."""
    work = [_Work(sample, metrics) for sample in _checked(samples)]
    _score_without_model(work)
    return [_begin_by_model(one) for one in work]


def _begin_by_model(one: _Work) -> Future[Results]:
    async def judge() -> Results:
        await _score_by_model([one])
        return one.in_order()

    if one.by_model:
        return submit(judge())
    done: Future[Results] = Future()
    done.set_result(one.in_order())
    return done


class _Work:
    """One sample's metrics, those that share verdicts together, and their results."""

    def __init__(self, sample: Sample, metrics: MetricSet | Sequence[Metric]) -> None:
        self.sample = sample
        self.metrics = metrics.of(sample) if isinstance(metrics, MetricSet) else metrics
        self.results: Results = {}
        self.by_model: list[list[Metric]] = []
        self.without_model: list[list[Metric]] = []
        groups: dict[object, list[Metric]] = {}
        for metric in self.metrics:
            if missing := metric.missing(sample):
                self.results[metric.name] = metric.result(None, "skipped", missing)
            elif (result := metric.before_judging(sample)) is not None:
                self.results[metric.name] = result
            else:
                purpose = metric.purpose if metric.judge.calls_model else ""
                seen = len(metric.seen(sample).retrieved_contexts or ())
                groups.setdefault((metric.judge.shared_by, purpose, seen), []).append(metric)
        for group in groups.values():
            by_model = group[0].judge.calls_model
            (self.by_model if by_model else self.without_model).append(group)

    def conclude(self, group: Sequence[Metric], verdicts: Verdicts) -> None:
        for metric in group:
            try:
                self.results[metric.name] = metric.after_judging(verdicts)
            except Exception as error:  # a similarity of the user's own may raise anything
                self.fail([metric], error)

    def fail(self, group: Sequence[Metric], error: Exception) -> None:
        usage = getattr(error, "usage", None)
        for metric in group:
            result = metric.result(None, "failed", describe(error))
            self.results[metric.name] = replace(result, usage=usage)

    def in_order(self) -> Results:
        return {metric.name: self.results[metric.name] for metric in self.metrics}


def _score_without_model(work: Sequence[_Work]) -> None:
    by_judge: dict[object, list[tuple[_Work, list[Metric]]]] = {}
    for one in work:
        for group in one.without_model:
            by_judge.setdefault(group[0].judge.shared_by, []).append((one, group))
    for members in by_judge.values():
        judge = members[0][1][0].judge
        with suppress(Exception):  # what is wrong with one sample shows when it is judged
            judge.prepare([one.sample for one, _ in members])
        alike: list[str] = []
        for one, group in members:
            try:
                if len(alike) >= GIVE_UP_AFTER:
                    raise CtxEvalError(f"not tried, after {GIVE_UP_AFTER} like it: {alike[-1]}")
                verdicts = judge.judge(one.sample)
            except Exception as error:  # the user's embedding function may raise anything
                one.fail(group, error)
                said = repr(error)
                alike = [*alike, said] if said in alike or not alike else [said]
            else:
                alike = []
                one.conclude(group, verdicts)


async def _score_by_model(work: Sequence[_Work]) -> None:
    limit = asyncio.Semaphore(MAX_SAMPLES_AT_ONCE)

    async def judge(one: _Work, group: list[Metric]) -> None:
        async with limit:
            try:
                verdicts = await group[0].judge.ajudge(
                    group[0].seen(one.sample),
                    group[0].purpose,
                    chunks=any(metric.reads == "chunks" for metric in group),
                    units=any(metric.reads == "units" for metric in group),
                )
            except Exception as error:  # a model or a cache of the user's own may raise anything
                one.fail(group, error)
            else:
                one.conclude(group, verdicts)

    groups = [(one, group) for one in work for group in one.by_model]
    if len(groups) == 1:  # which needs no task of its own
        await judge(*groups[0])
    else:
        await asyncio.gather(*(judge(one, group) for one, group in groups))


def _checked(samples: Iterable[Sample | Mapping[str, Any]]) -> list[Sample]:
    if isinstance(samples, (Sample, Mapping, str)) or not isinstance(samples, Iterable):
        raise InvalidSampleError(f"samples: {short(samples)} is no list: give a list of samples")
    checked = []
    for index, sample in enumerate(samples):
        try:
            checked.append(Sample.of(sample))
        except InvalidSampleError as error:
            raise InvalidSampleError(f"samples[{index}]: {error}") from None
    return checked
