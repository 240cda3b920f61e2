"""Ask a retriever or an engine every query of a data set, and score what it gives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from importlib import import_module
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from ctxeval import LLM, InvalidArgumentError, Metrics, Sample
from ctxeval_llamaindex.dataset_queries import Queries
from ctxeval_llamaindex.dataset_result import DatasetResult, DatasetRow
from ctxeval_llamaindex.datasets import dataset_samples
from ctxeval_llamaindex.nodes import IdFrom


async def aevaluate_dataset(
    retriever: BaseRetriever | BaseQueryEngine,
    dataset: Any,
    metrics: Metrics = "auto",
    *,
    llm: LLM | BaseLLM | None = None,
    postprocessors: Sequence[BaseNodePostprocessor] = (),
    concurrency: int = 8,
    id_from: IdFrom = "node_id",
    context_text: str | None = None,
    show_progress: bool = False,
) -> DatasetResult:
    """Ask every query of a data set, and score what comes; see `evaluate_dataset`.

    It calls `aretrieve` or `aquery` in the running loop, and awaits the judging.
    """
    queries = Queries(retriever, metrics, llm, postprocessors, id_from, context_text)
    samples = dataset_samples(dataset)
    limit = asyncio.Semaphore(_checked(concurrency))
    with _progress(len(samples), show_progress) as step:

        async def one(sample: Sample) -> DatasetRow:
            row = await queries.arow(sample, limit)
            step()
            return row

        rows = await asyncio.gather(*(one(sample) for sample in samples))
    return queries.conclude(rows)


def evaluate_dataset(
    retriever: BaseRetriever | BaseQueryEngine,
    dataset: Any,
    metrics: Metrics = "auto",
    *,
    llm: LLM | BaseLLM | None = None,
    postprocessors: Sequence[BaseNodePostprocessor] = (),
    concurrency: int = 8,
    id_from: IdFrom = "node_id",
    context_text: str | None = None,
    show_progress: bool = False,
) -> DatasetResult:
    """Ask every query of a data set, and score what comes.

    It calls `retrieve` or `query` in threads, so it works in a script as in a notebook. No
    query costs another: one that fails has a row with its error and "failed" results.

    Args:
        retriever: A retriever, or a query engine, whose `source_nodes` are scored and whose
            answer is the response; the retriever costs no call of a model.
        dataset: A data set of LlamaIndex's form (anything with `queries`, `relevant_docs` and
            maybe `corpus`: an object, a dict, a JSON file), `References`, or what
            `References.of` takes.
        metrics: Metrics or their names, or "auto": whatever a query has the fields for.
        llm: The model that judges, of ctxeval's or LlamaIndex's kind, for metrics by name.
        postprocessors: What is applied to a retriever's nodes, in this order.
        concurrency: How many queries are under way at once.
        id_from: As of `ContextEvaluator`.
        context_text: As of `ContextEvaluator`.
        show_progress: Show a bar, where tqdm is installed?

    Returns:
        A row per query, in order; means and a DataFrame of them.

    Raises:
        InvalidArgumentError: An argument cannot be.
        InvalidSampleError: A query of the data set is malformed.
    """
    queries = Queries(retriever, metrics, llm, postprocessors, id_from, context_text)
    samples = dataset_samples(dataset)
    pool = ThreadPoolExecutor(_checked(concurrency), thread_name_prefix="ctxeval-query")
    with _progress(len(samples), show_progress) as step:

        def one(sample: Sample) -> DatasetRow:
            row = queries.row(sample)
            step()
            return row

        try:
            asked = [pool.submit(copy_context().run, one, sample) for sample in samples]
            rows = [future.result() for future in asked]
        finally:  # an interrupt does not wait for what has not begun
            pool.shutdown(wait=False, cancel_futures=True)
    return queries.conclude(rows)


def _checked(concurrency: object) -> int:
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise InvalidArgumentError(f"concurrency: {concurrency!r} is no number of queries: 8, say")
    return concurrency


@contextmanager
def _progress(total: int, show: bool) -> Iterator[Callable[[], object]]:
    """Give what is to be called after each query."""
    try:
        tqdm = import_module("tqdm").tqdm if show else None
    except ModuleNotFoundError:
        tqdm = None
    if tqdm is None:
        yield lambda: None
        return
    with tqdm(total=total, desc="queries") as bar:
        yield bar.update
