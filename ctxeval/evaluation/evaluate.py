"""Score many samples: in order, with bounded memory, and without one costing another."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future
from contextvars import copy_context
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, overload

from ctxeval.errors import InvalidArgumentError, InvalidSampleError, short
from ctxeval.evaluation.columns.evaluating import evaluate_columns
from ctxeval.evaluation.columns.late import Late
from ctxeval.evaluation.columns.opening import of_origin
from ctxeval.evaluation.evaluation import Evaluation
from ctxeval.evaluation.holding import VALUES_ALONE, Holder, Nowhere
from ctxeval.evaluation.origin import Origin
from ctxeval.evaluation.parquet_run import write_table
from ctxeval.evaluation.progress import progress_bar
from ctxeval.evaluation.rows import Row, run_path, write_run
from ctxeval.judges.calling import CONCURRENCY
from ctxeval.judges.rehearsal import Rehearsal
from ctxeval.naming import Metrics, MetricSet
from ctxeval.record.query import QueryRecord, question_ids
from ctxeval.record.reading import path_of, rows_of
from ctxeval.sample import Sample
from ctxeval.scoring import Results, begin_all
from ctxeval.verdicts import Usage

if TYPE_CHECKING:
    from ctxeval.judges.cells import CellCache
    from ctxeval.judges.llm import LLMJudge
    from ctxeval.llm.protocol import LLM

BATCH = 256
"""How many samples are under way: enough to keep a model's calls coming."""


class Window(deque[tuple[Sample, "Future[Results]"]]):
    """The samples under way, with their results to come."""

    closed = False

    def close(self) -> None:
        """Cancel what is under way, and take no more."""
        self.closed = True
        for _, future in list(self):
            future.cancel()


@overload
def evaluate(
    samples: Any,
    metrics: Metrics | MetricSet = ...,
    *,
    llm: LLM | LLMJudge | None = ...,
    concurrency: int = ...,
    store: CellCache | str | PathLike[str] | None = ...,
    progress: bool | None = ...,
    output: str | PathLike[str] | None = ...,
    on_bad: Callable[[InvalidSampleError], None] | None = ...,
    dry_run: Literal[False] = ...,
) -> Evaluation: ...


@overload
def evaluate(
    samples: Any,
    metrics: Metrics | MetricSet = ...,
    *,
    llm: LLM | LLMJudge | None = ...,
    store: CellCache | str | PathLike[str] | None = ...,
    on_bad: Callable[[InvalidSampleError], None] | None = ...,
    dry_run: Literal[True],
) -> Usage: ...


def evaluate(
    samples: Any,
    metrics: Metrics | MetricSet = "auto",
    *,
    llm: LLM | LLMJudge | None = None,
    concurrency: int = 16,
    store: CellCache | str | PathLike[str] | None = None,
    progress: bool | None = None,
    output: str | PathLike[str] | None = None,
    on_bad: Callable[[InvalidSampleError], None] | None = None,
    dry_run: bool = False,
) -> Evaluation | Usage:
    """Score many samples by several metrics.

    Every sample gets a result from every metric: scored, undefined, failed or skipped, with
    the reason. What a model judged is kept as soon as it is judged, so that after an
    interruption the same call goes on from there.

    Args:
        samples: A list, a generator, a path (.jsonl, .csv, .json, .parquet), a DataFrame, a
            data set of Ragas, or captured records; see `ctxeval.record.reading`.
        metrics: Metrics or their names, or "auto": whatever a sample has the fields for.
        llm: The model, or a judge with one, for metrics given by name and for "auto".
        concurrency: How many calls to a model are under way at most.
        store: Where a model's verdicts are kept: a `Store`, a file or a URL; None: where
            each metric keeps them.
        progress: Show a progress bar? None: where somebody looks.
        output: A file that the rows go to as they come, for `Evaluation.load`; they are not
            kept in memory then. To a .parquet go ids, values, statuses and reasons alone.
        on_bad: Is told of each row that is no sample, which is then left out; None: the
            first one is raised.
        dry_run: Ask no model, and give what it would take instead: how many requests
            and, at 4 letters a token and a claim per sentence, how many tokens.

    Raises:
        InvalidSampleError: A row is no sample.
        InvalidArgumentError: A metric is unknown, or a number is out of range.

    Examples:
        >>> evaluation = evaluate(
        ...     [{"id": 7, "retrieved_context_ids": ["a"], "reference_context_ids": ["a", "b"]}],
        ...     ["id_based_context_recall"],
        ... )
        >>> evaluation.values("id_based_context_recall")
        {'7': 0.5}
    """
    if dry_run:
        rehearsal = Rehearsal()
        chosen = _chosen(metrics, llm, store).with_judges(rehearsal.of)
        for _ in _rows(_samples(samples, on_bad), chosen, concurrency, Window()):
            pass
        return rehearsal.usage
    return _evaluate(samples, metrics, llm, concurrency, store, progress, output, on_bad, Window())


async def aevaluate(
    samples: Any,
    metrics: Metrics | MetricSet = "auto",
    *,
    llm: LLM | LLMJudge | None = None,
    concurrency: int = 16,
    store: CellCache | str | PathLike[str] | None = None,
    progress: bool | None = None,
    output: str | PathLike[str] | None = None,
    on_bad: Callable[[InvalidSampleError], None] | None = None,
) -> Evaluation:
    """Score many samples from asynchronous code; see `evaluate`."""
    window = Window()
    try:
        return await asyncio.to_thread(
            _evaluate, samples, metrics, llm, concurrency, store, progress, output, on_bad, window
        )
    except asyncio.CancelledError:
        window.close()
        raise


def _evaluate(
    samples: Any,
    metrics: Metrics | MetricSet,
    llm: LLM | LLMJudge | None,
    concurrency: int,
    store: CellCache | str | PathLike[str] | None,
    progress: bool | None,
    output: str | PathLike[str] | None,
    on_bad: Callable[[InvalidSampleError], None] | None,
    window: Window,
) -> Evaluation:
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise InvalidArgumentError(f"concurrency: {short(concurrency)} is no integer >= 1")
    chosen = _chosen(metrics, llm, store)
    path = None if output is None else run_path(output, "output", (".jsonl", ".parquet"))
    read = path_of(samples)
    if path and read and path.resolve() == read.resolve():
        raise InvalidArgumentError(
            f"output: {short(str(path))} is the file of the samples, which the run would replace: "
            "give another name"
        )
    total = len(samples) if isinstance(samples, Sized) else None

    def numbers(done: Iterator[int]) -> Iterator[int]:
        bar: Callable[[Iterator[int]], Iterator[int]] = progress_bar(progress, total)
        for number in bar(done):
            if window.closed:
                raise asyncio.CancelledError
            yield number

    if path is None or path.suffix == ".parquet":
        by_columns = evaluate_columns(samples, chosen, numbers, path)
        if by_columns is not None:
            return by_columns
    origin = None if chosen.calls_model else Origin.of(samples)
    left_out: list[InvalidSampleError] = []

    def leave_out(error: InvalidSampleError) -> None:
        if on_bad is None:
            raise error
        left_out.append(error)
        on_bad(error)

    shown = progress_bar(progress, total)(
        _rows(_samples(samples, leave_out), chosen, concurrency, window)
    )
    if path is None:
        return Evaluation(shown)
    if path.suffix != ".parquet":
        return Evaluation(write_run(path, shown), path)
    tallies = write_table(path, shown, chosen, lambda: None if left_out else origin)
    holder: Holder = Nowhere(VALUES_ALONE)
    if origin is not None and not left_out:
        holder = Late(of_origin(origin), chosen)
    return Evaluation.of_tallies(tallies, holder, path)


def _chosen(
    metrics: Metrics | MetricSet,
    llm: LLM | LLMJudge | None,
    store: CellCache | str | PathLike[str] | None,
) -> MetricSet:
    chosen = metrics if isinstance(metrics, MetricSet) else MetricSet(metrics, llm)
    if store is None:
        return chosen
    if isinstance(store, (str, PathLike)):
        from ctxeval.store import Store

        store = Store.of(store)
    if not hasattr(store, "get_many") or not hasattr(store, "put_many"):
        raise InvalidArgumentError(
            f"store: {short(store)} keeps no verdicts: give a Store, a file or a URL"
        )
    cache: CellCache = store
    return chosen.with_judges(lambda judge: judge.with_cache(cache))


def _rows(
    samples: Iterator[Sample], metrics: MetricSet, concurrency: int, window: Window
) -> Iterator[Row]:
    """Keep a window of samples under way, and give their rows in order."""
    context = copy_context()
    context.run(CONCURRENCY.set, concurrency)
    try:
        while batch := list(islice(samples, BATCH)):
            window.extend(zip(batch, context.run(begin_all, batch, metrics), strict=True))
            if window.closed:
                raise asyncio.CancelledError
            while len(window) > BATCH:
                yield _first(window)
        while window:
            yield _first(window)
    finally:
        window.close()


def _first(window: Window) -> Row:
    """Wait for the first of the window; it stays in there meanwhile, to be cancelled with it."""
    sample, future = window[0]
    row = Row(sample.key, sample, future.result())
    window.popleft()
    return row


def _samples(source: Any, on_bad: Callable[[InvalidSampleError], None] | None) -> Iterator[Sample]:
    """Go through the samples; of captured records, what they retrieved and what was expected."""
    if not isinstance(source, (str, PathLike)) and isinstance(source, Iterable):
        items = list(source) if isinstance(source, Sequence) else source
        if isinstance(items, list) and any(isinstance(item, QueryRecord) for item in items):
            names = iter(question_ids(item for item in items if isinstance(item, QueryRecord)))
            source = [
                item.sample().model_copy(update={"id": next(names)})
                if isinstance(item, QueryRecord)
                else item
                for item in items
            ]
    for row in rows_of(source, "samples"):
        try:
            sample = row.sample()
        except InvalidSampleError as error:
            if on_bad is None:
                raise
            on_bad(error)
        else:
            yield sample
