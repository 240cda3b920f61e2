"""What is done with each batch, in whichever process it is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from copy import copy
from typing import Any, Literal

import pyarrow as pa

from ctxeval import (
    LLM,
    InvalidArgumentError,
    InvalidSampleError,
    LLMJudge,
    Metric,
    MetricResult,
    Metrics,
    MetricSet,
    Sample,
    aevaluate,
    read_samples,
    score_table,
)
from ctxeval_ray.limits import Limits

Errors = Literal["raise", "status"]

_ROW = re.compile(r"table, row (\d+): ")
_TEXTS = ("user_input", "response", "reference")


class Batches:
    """Scores batches by metrics that ask no model: a function that can be sent anywhere.

    Args:
        metrics: The metrics, or "auto".
        errors: As of `ctxeval.score_table`.
    """

    def __init__(self, metrics: Metrics, errors: Errors) -> None:
        """See the class."""
        self._metrics = metrics
        self._errors: Errors = errors

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Add the columns."""
        return _score(_plain(batch), self._metrics, self._errors)


def _score(batch: pa.Table, metrics: Metrics, errors: Errors) -> pa.Table:
    try:
        return score_table(batch, metrics, errors=errors)
    except InvalidSampleError as error:
        said = str(error)
        if (at := _ROW.match(said)) is None:
            raise InvalidSampleError(f"dataset{said.removeprefix('table')}") from None
        raise InvalidSampleError(f"{_named(batch, int(at[1]))}: {said[at.end() :]}") from None


def _named(batch: pa.Table, number: int) -> str:
    """Name a row, counted from 1: its number in its block tells nobody where it is."""
    if "id" in batch.column_names:
        return f"dataset, the row {batch.column('id')[number - 1].as_py()!r}"
    return f"dataset, row {number} of a block (give rows an id to be told which)"


class JudgedBatches:
    """Scores batches by metrics of which some ask a model: one client for all of them.

    Args:
        metrics: The metrics, or "auto".
        llm: The model, for "auto".
        errors: As of `ctxeval.score_table`.
        limits: What the model may cost, and where its verdicts are kept.
        concurrency: How many calls are under way at most.
    """

    def __init__(
        self,
        metrics: Metrics,
        llm: LLM | None,
        errors: Errors,
        limits: Limits,
        concurrency: int,
    ) -> None:
        """See the class."""
        chosen = MetricSet(metrics, llm)
        judges: dict[tuple[object, ...], LLMJudge] = {}

        def limited(judge: LLMJudge) -> LLMJudge:
            # Metrics that share a judge must go on to share one, and its verdicts.
            if judge.shared_by not in judges:
                made = copy(judge) if limits.store is None else judge.with_cache(limits.store)
                made.llm = limits.of(judge.llm)
                judges[judge.shared_by] = made
            return judges[judge.shared_by]

        self._metrics = chosen.with_judges(limited)
        self._errors: Errors = errors
        self._concurrency = concurrency

    async def __call__(self, batch: pa.Table) -> AsyncIterator[pa.Table]:
        """Add the columns."""
        batch = _plain(batch)
        names = batch.column_names
        chosen = self._metrics.of(_with_fields(names))
        if not chosen:
            raise InvalidSampleError(f"dataset: there is no metric for its columns {names}")
        asking = [metric for metric in chosen if metric.judge.calls_model]
        free = [metric for metric in chosen if not metric.judge.calls_model]
        self._check(asking, names)
        scored = batch
        if free:
            scored = await asyncio.to_thread(_score, batch, free, self._errors)
        if asking:
            results = await self._judge(asking, batch)
            for metric in asking:
                of_metric = [result[metric.name] for result in results]
                for name, column in _columns(metric.name, of_metric):
                    scored = scored.append_column(name, column)
        yield scored

    def _check(self, asking: Sequence[Metric], names: Sequence[str]) -> None:
        for metric in asking:
            for name in (metric.name, f"{metric.name}_status", f"{metric.name}_reason"):
                if name in names:
                    raise InvalidArgumentError(
                        f"dataset: it has a column {name!r} already: drop it, or rename it"
                    )
            if self._errors == "raise" and (missing := metric.missing(_with_fields(names))):
                raise InvalidSampleError(f"dataset: {missing}: its columns are {names}")

    async def _judge(self, metrics: list[Metric], batch: pa.Table) -> list[dict[str, MetricResult]]:
        read = list(_read(batch))
        bad = [one for one in read if isinstance(one, InvalidSampleError)]
        if bad and self._errors == "raise":
            raise bad[0]
        samples = [one for one in read if isinstance(one, Sample)]
        evaluation = await aevaluate(
            samples, metrics, concurrency=self._concurrency, progress=False
        )
        rows = iter(evaluation.rows)
        return [
            dict(next(rows).results)
            if isinstance(one, Sample)
            else {metric.name: metric.result(None, "failed", str(one)) for metric in metrics}
            for one in read
        ]


def _with_fields(names: Sequence[str]) -> Sample:
    """Make a sample that has the fields for which there are columns."""
    fields: dict[str, Any] = {name: () for name in names if name in Sample.model_fields}
    fields.update({name: "" for name in _TEXTS if name in names})
    for name in ("id", "metadata"):
        fields.pop(name, None)
    return Sample(**fields)


def _read(batch: pa.Table) -> Iterator[Sample | InvalidSampleError]:
    """Read rows one by one: what is wrong with one is no matter of another."""
    known = batch.select([name for name in batch.column_names if name in Sample.model_fields])
    for number, row in enumerate(read_samples(known).rows(), start=1):
        if isinstance(row.fields, InvalidSampleError):
            told = str(row.fields).removeprefix(f"{row.place}: ")
            yield InvalidSampleError(f"{_named(batch, number)}: {told}")
        else:
            assert isinstance(row.fields, Sample)
            yield row.fields


def _columns(name: str, results: Sequence[MetricResult]) -> Iterator[tuple[str, pa.Array]]:
    yield name, pa.array([one.value for one in results], pa.float64())
    yield f"{name}_status", pa.array([one.status for one in results], pa.string())
    yield f"{name}_reason", pa.array([one.reason or None for one in results], pa.string())


def _plain(batch: pa.Table) -> pa.Table:
    """Turn Ray's tensors and objects into what Arrow has, where a sample has them."""
    for place, field in enumerate(batch.schema):
        if field.name in Sample.model_fields and type(field.type).__module__.startswith("ray."):
            cells = [
                cell.tolist() if hasattr(cell, "tolist") else cell
                for cell in batch.column(place).to_pylist()
            ]
            batch = batch.set_column(place, field.name, _array(field.name, cells))
    return batch


def _array(name: str, cells: list[Any]) -> pa.Array:
    try:
        pairs = [pair for cell in cells if isinstance(cell, list) for pair in cell]
        if name != "reference_context_ids" or not pairs or {*map(type, pairs)} != {tuple}:
            return pa.array(cells)
        ids, grades = (pa.array(side).type for side in zip(*pairs, strict=True))  # it was a map
        return pa.array(cells, pa.map_(ids, grades))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidSampleError(
            f"dataset: the column {name!r} holds what Arrow has no one type for: {error}: give "
            "lists, and ids as strings"
        ) from None
