"""One query of a data set after the other: ask it, score what comes, isolate what fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from ctxeval import (
    LLM,
    CtxEvalError,
    InvalidArgumentError,
    InvalidSampleError,
    Metric,
    MetricResult,
    Metrics,
    MetricSet,
    Sample,
    ascore,
    score,
)
from ctxeval_llamaindex.dataset_result import DatasetResult, DatasetRow
from ctxeval_llamaindex.llm import judging
from ctxeval_llamaindex.matching import misplaced, random_ids
from ctxeval_llamaindex.nodes import (
    AnyNode,
    IdFrom,
    checked_id_from,
    checked_mode,
    mode_for,
    retrieved,
)
from ctxeval_llamaindex.responses import Reading, read_response
from ctxeval_llamaindex.suppression import suppress


class _Asked(NamedTuple):
    """A query that was asked.

    Attributes:
        sample: What was retrieved and what was expected.
        nodes: What was retrieved.
        parts: Metrics, with the sample that has the texts in the mode that fits them.
    """

    sample: Sample
    nodes: Sequence[AnyNode]
    parts: list[tuple[Sample, list[Metric]]]


class Queries:
    """Asks and scores; the arguments are those of `evaluate_dataset`."""

    def __init__(
        self,
        target: BaseRetriever | BaseQueryEngine,
        metrics: Metrics,
        llm: LLM | BaseLLM | None,
        postprocessors: Sequence[BaseNodePostprocessor],
        id_from: IdFrom,
        context_text: str | None,
    ) -> None:
        """Check the arguments."""
        if not isinstance(target, (BaseRetriever, BaseQueryEngine)):
            hint = "give its .as_retriever()" if hasattr(target, "as_retriever") else "give one"
            raise InvalidArgumentError(
                f"retriever: a {type(target).__name__} is no retriever and no query engine: {hint}"
            )
        if postprocessors and isinstance(target, BaseQueryEngine):
            raise InvalidArgumentError("postprocessors: a query engine has its own: give none")
        listed = isinstance(postprocessors, (list, tuple))
        if not listed or not all(isinstance(p, BaseNodePostprocessor) for p in postprocessors):
            raise InvalidArgumentError(
                f"postprocessors: {postprocessors!r:.80} is no list of postprocessors"
            )
        self.target = target
        self.postprocessors = postprocessors
        self.metrics = MetricSet(metrics, judging(llm))
        self.id_from = checked_id_from(id_from)
        self.context_text = checked_mode(context_text)

    def row(self, sample: Sample) -> DatasetRow:
        """Ask one query, and score."""
        try:
            asked = self._asked(sample, self._ask(_question(sample)))
            with suppress():
                results = [score(part, metrics) for part, metrics in asked.parts]
            return self._row(asked, results)
        except Exception as error:
            return self._failed(sample, error)

    async def arow(self, sample: Sample, limit: asyncio.Semaphore) -> DatasetRow:
        """Ask one query within the limit, and score, in the running loop."""
        try:
            async with limit:
                reading = await self._aask(_question(sample))
            asked = self._asked(sample, reading)
            with suppress():
                results = [await ascore(part, metrics) for part, metrics in asked.parts]
            return self._row(asked, results)
        except Exception as error:
            return self._failed(sample, error)

    def _ask(self, question: str) -> Reading:
        if isinstance(self.target, BaseQueryEngine):
            response: Any = self.target.query(question)
            if isinstance(response, StreamingResponse):
                response = response.get_response()
            return read_response(response)
        nodes = self.target.retrieve(question)
        for postprocessor in self.postprocessors:
            nodes = postprocessor.postprocess_nodes(nodes, query_str=question)
        return read_response(nodes)

    async def _aask(self, question: str) -> Reading:
        if isinstance(self.target, BaseQueryEngine):
            response: Any = await self.target.aquery(question)
            if isinstance(response, AsyncStreamingResponse):
                response = await response.get_response()
            elif isinstance(response, StreamingResponse):
                response = await asyncio.to_thread(response.get_response)
            return read_response(response)
        nodes = await self.target.aretrieve(question)
        for postprocessor in self.postprocessors:
            nodes = await postprocessor.apostprocess_nodes(nodes, query_str=question)
        return read_response(nodes)

    def _asked(self, sample: Sample, reading: Reading) -> _Asked:
        """Put what was retrieved into the sample, and pair it with the metrics for it."""
        if reading.nodes is None:
            raise InvalidSampleError(reading.no_nodes)
        nodes = reading.nodes
        if reading.text is not None:
            sample = sample.model_copy(update={"response": reading.text})

        def filled(mode: str) -> Sample:
            return sample.model_copy(update=retrieved(nodes, self.id_from, mode))

        whole = filled(self.context_text or "llm")
        modes: dict[str, list[Metric]] = {}
        for metric in self.metrics.of(whole):
            modes.setdefault(mode_for(metric, self.context_text), []).append(metric)
        return _Asked(whole, nodes, [(filled(mode), metrics) for mode, metrics in modes.items()])

    def _row(self, asked: _Asked, results: Sequence[dict[str, MetricResult]]) -> DatasetRow:
        merged = {name: result for part in results for name, result in part.items()}
        expected = asked.sample.reference_context_ids or ()
        if advice := misplaced(asked.nodes, self.id_from, expected):
            _advise(merged, advice)
        in_order = [metric.name for metric in self.metrics.of(asked.sample)]
        return DatasetRow(asked.sample, {name: merged[name] for name in in_order})

    def _failed(self, sample: Sample, error: Exception) -> DatasetRow:
        own = isinstance(error, CtxEvalError)
        said = str(error) if own else f"{type(error).__name__}: {error}"
        nothing = {"retrieved_contexts": (), "retrieved_context_ids": (), "retrieved_spans": ()}
        metrics = self.metrics.of(sample.model_copy(update=nothing))
        return DatasetRow(sample, {m.name: m.result(None, "failed", said) for m in metrics}, said)

    def conclude(self, rows: Sequence[DatasetRow]) -> DatasetResult:
        """Look at all rows together: where no expected id was ever found, ids may be random."""
        ids = [(row, row.sample.reference_context_ids or ()) for row in rows]
        if not any(set(row.retrieved_ids) & set(expected) for row, expected in ids):
            for row, expected in ids:
                _advise(row.results, random_ids(row.retrieved_ids, expected))
        return DatasetResult(rows)


def _advise(results: dict[str, MetricResult], advice: str) -> None:
    """Put a note into the results by id that have none."""
    for result in results.values():
        by_id = result.verdicts is not None and result.verdicts.judge == "id"
        if by_id and not result.reason:
            result.reason = advice


def _question(sample: Sample) -> str:
    if not (sample.user_input or "").strip():
        raise InvalidSampleError("the query has no text: give it a user_input")
    return sample.user_input or ""
