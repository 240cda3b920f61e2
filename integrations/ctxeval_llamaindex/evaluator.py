"""A metric as an evaluator, wherever LlamaIndex takes one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.evaluation import BaseEvaluator
from llama_index.core.prompts.mixin import PromptDictType

from ctxeval import LLM, InvalidArgumentError, Metric, ascore, resolve_metrics, score
from ctxeval_llamaindex.cases import Case, Settings
from ctxeval_llamaindex.evaluation_result import ContextEvaluationResult
from ctxeval_llamaindex.llm import judging
from ctxeval_llamaindex.nodes import IdFrom, checked_id_from, checked_mode, mode_for
from ctxeval_llamaindex.responses import Reading, read_response


class ContextEvaluator(BaseEvaluator):
    """Evaluate by a metric of ctxeval's.

    Whatever is wrong with what is evaluated makes an invalid result with its reason, never
    an exception: in a `BatchEvalRunner` one item costs no other.

    `evaluate` and `aevaluate` take query, response and contexts, and by keyword
    `context_ids`, `reference`, `reference_contexts`, `reference_ids` (a list, or grades by
    id), `reference_claims` and `reference_spans`; other keywords are passed over.
    `evaluate_response` and `aevaluate_response` take query and response, and the same
    keywords: ids, scores and texts are those of the response's nodes. A stream is not read:
    evaluate after it was. Of an agent's output, the nodes are those that its tools gave; of
    several tool calls they are pooled, and the metrics of ranks say that there is no one
    order.

    Args:
        metric: The metric, or its name.
        llm: The model that judges, of ctxeval's or LlamaIndex's kind, for a metric by name.
        threshold: The least score that passes.
        id_from: What identifies a node: "node_id"; "source_id", the id of its document;
            "metadata:<key>"; or a function of the node. Where a node has none of it, its
            node id stands in.
        context_text: The metadata mode of the texts: "llm", as a model is shown them, or
            "none", without metadata; None: "none" for metrics that compare texts, else "llm".

    Raises:
        InvalidArgumentError: One of the arguments cannot be.
    """

    def __init__(
        self,
        metric: Metric | str,
        *,
        llm: LLM | BaseLLM | None = None,
        threshold: float = 0.5,
        id_from: IdFrom = "node_id",
        context_text: str | None = None,
    ) -> None:
        """See the class."""
        if not isinstance(metric, (Metric, str)):
            raise InvalidArgumentError(f"metric: {metric!r} is no metric: give one, or its name")
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)):
            raise InvalidArgumentError(f"threshold: {threshold!r} is no number: 0.5, say")
        if not 0 <= threshold <= 1:
            raise InvalidArgumentError(f"threshold: {threshold!r} is not within 0 and 1")
        (self.metric,) = resolve_metrics(metric, judging(llm))
        self.threshold = threshold
        self.id_from = checked_id_from(id_from)
        self.context_text = mode_for(self.metric, checked_mode(context_text))

    def evaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        *,
        context_ids: Sequence[object] | None = None,
        reference: str | None = None,
        reference_contexts: Sequence[str] | None = None,
        reference_ids: Collection[object] | Mapping[Any, int] | None = None,
        **kwargs: Any,
    ) -> ContextEvaluationResult:
        """Evaluate texts and ids; see the class."""
        kwargs.update(query=query, response=response, contexts=contexts, context_ids=context_ids)
        kwargs.update(reference=reference, reference_contexts=reference_contexts)
        return self._evaluate({**kwargs, "reference_ids": reference_ids})

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        *,
        context_ids: Sequence[object] | None = None,
        reference: str | None = None,
        reference_contexts: Sequence[str] | None = None,
        reference_ids: Collection[object] | Mapping[Any, int] | None = None,
        **kwargs: Any,
    ) -> ContextEvaluationResult:
        """Evaluate texts and ids from asynchronous code; see the class."""
        kwargs.update(query=query, response=response, contexts=contexts, context_ids=context_ids)
        kwargs.update(reference=reference, reference_contexts=reference_contexts)
        return await self._aevaluate({**kwargs, "reference_ids": reference_ids})

    def evaluate_response(
        self, query: str | None = None, response: Any = None, **kwargs: Any
    ) -> ContextEvaluationResult:
        """Evaluate what an engine, an agent or a retriever returned; see the class."""
        reading = read_response(response)
        return self._evaluate({**kwargs, "query": query, "response": reading.text}, reading)

    async def aevaluate_response(
        self, query: str | None = None, response: Any = None, **kwargs: Any
    ) -> ContextEvaluationResult:
        """Evaluate what was returned, from asynchronous code; see the class."""
        reading = read_response(response)
        return await self._aevaluate({**kwargs, "query": query, "response": reading.text}, reading)

    def _evaluate(
        self, given: dict[str, Any], reading: Reading | None = None
    ) -> ContextEvaluationResult:
        case = Case(self._settings, given, reading or Reading())
        if case.result is None:
            with case.guarded():
                case.result = score(case.sample, [self.metric])[self.metric.name]
        return case.conclude()

    async def _aevaluate(
        self, given: dict[str, Any], reading: Reading | None = None
    ) -> ContextEvaluationResult:
        case = Case(self._settings, given, reading or Reading())
        if case.result is None:
            with case.guarded():
                case.result = (await ascore(case.sample, [self.metric]))[self.metric.name]
        return case.conclude()

    @property
    def _settings(self) -> Settings:
        return Settings(self.metric, self.threshold, self.id_from, self.context_text)

    def _get_prompts(self) -> PromptDictType:
        return {}  # the prompts are the metric's own: see instructions= there

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        """Change nothing; see `_get_prompts`."""
