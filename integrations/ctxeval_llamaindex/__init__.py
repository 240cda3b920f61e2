"""ctxeval for LlamaIndex: evaluators that keep node ids, and capture at query time."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ctxeval_llamaindex.dataset_evaluation import aevaluate_dataset, evaluate_dataset
    from ctxeval_llamaindex.dataset_result import DatasetResult, DatasetRow
    from ctxeval_llamaindex.evaluation_result import ContextEvaluationResult
    from ctxeval_llamaindex.evaluator import ContextEvaluator
    from ctxeval_llamaindex.handler import CtxEvalEventHandler
    from ctxeval_llamaindex.llm import as_llm
    from ctxeval_llamaindex.retrieval_metric import register, retrieval_metrics

# Loaded at first use: capture needs a seventh of what the evaluators need of LlamaIndex.
_LAZY = {
    "ContextEvaluationResult": "evaluation_result",
    "ContextEvaluator": "evaluator",
    "CtxEvalEventHandler": "handler",
    "DatasetResult": "dataset_result",
    "DatasetRow": "dataset_result",
    "aevaluate_dataset": "dataset_evaluation",
    "as_llm": "llm",
    "evaluate_dataset": "dataset_evaluation",
    "register": "retrieval_metric",
    "retrieval_metrics": "retrieval_metric",
}

__all__ = [
    "ContextEvaluationResult",
    "ContextEvaluator",
    "CtxEvalEventHandler",
    "DatasetResult",
    "DatasetRow",
    "aevaluate_dataset",
    "as_llm",
    "evaluate_dataset",
    "register",
    "retrieval_metrics",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'ctxeval_llamaindex' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"ctxeval_llamaindex.{_LAZY[name]}"), name)
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("llama_index"):
            raise
        raise ModuleNotFoundError(
            "ctxeval_llamaindex needs llama-index-core: pip install 'ctxeval[llamaindex]'",
            name=error.name,
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
