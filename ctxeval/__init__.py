"""Measure how good the retrieval of a RAG application is, query by query, and why."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ctxeval.errors import (
    AuthenticationError,
    ContextOverflowError,
    CtxEvalError,
    ExportError,
    InvalidArgumentError,
    InvalidSampleError,
    JudgeError,
    MissingExtraError,
    MissingFieldError,
    NotScoredError,
    NotTracedError,
    QuotaError,
    StoreError,
)
from ctxeval.judges.ids import IdJudge
from ctxeval.judges.spans import SpanJudge
from ctxeval.judges.text import TextJudge
from ctxeval.metric import Metric
from ctxeval.metrics import (
    NDCG,
    AveragePrecision,
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    ContextUtilization,
    HitRate,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    NonLLMContextPrecision,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    PrecisionAtK,
    RecallAtK,
    ReciprocalRank,
    SpanIoU,
    SpanPrecision,
    SpanPrecisionOmega,
    SpanRecall,
)
from ctxeval.result import MetricResult
from ctxeval.sample import Sample, Span
from ctxeval.verdicts import Usage, Verdict, Verdicts

if TYPE_CHECKING:
    from ctxeval.calibration.agreement import calibrate
    from ctxeval.calibration.calibration import Calibration
    from ctxeval.calibration.correction import Corrected
    from ctxeval.capture.notebook import load_ipython_extension, unload_ipython_extension
    from ctxeval.capture.recorder import Recorder
    from ctxeval.capture.resending import resend
    from ctxeval.capture.trace import trace
    from ctxeval.evaluation.columns import score_table
    from ctxeval.evaluation.compare import Comparison, compare
    from ctxeval.evaluation.evaluate import aevaluate, evaluate
    from ctxeval.evaluation.evaluation import Evaluation
    from ctxeval.evaluation.gate import GateFailure, gate
    from ctxeval.evaluation.judge_check import JudgeCheck, check_judge
    from ctxeval.evaluation.label_samples import label_samples
    from ctxeval.evaluation.pooling import pooled
    from ctxeval.evaluation.rows import Row
    from ctxeval.judges.embedding import EmbeddingSimilarity
    from ctxeval.judges.llm import LLMJudge
    from ctxeval.llm.factory import llm_factory
    from ctxeval.llm.faults import Fault
    from ctxeval.llm.loop import in_thread
    from ctxeval.llm.protocol import LLM, Completion, FirstToken, FirstTokenLLM
    from ctxeval.llm.ways import Ways
    from ctxeval.naming import Metrics, MetricSet, metric_by_name, resolve_metrics
    from ctxeval.record.query import Chunk, QueryRecord, QueryStatus, Retrieval, text_id
    from ctxeval.record.reading import read_samples
    from ctxeval.record.references import References
    from ctxeval.record.tracing import TraceSpan, current_span
    from ctxeval.scoring import ascore, score
    from ctxeval.store.store import Store

__version__ = "0.1.0"

# Loaded at first use, so that `import ctxeval` stays quick.
_LAZY = {
    "calibrate": "ctxeval.calibration.agreement",
    "Calibration": "ctxeval.calibration.calibration",
    "Corrected": "ctxeval.calibration.correction",
    "load_ipython_extension": "ctxeval.capture.notebook",
    "unload_ipython_extension": "ctxeval.capture.notebook",
    "Recorder": "ctxeval.capture.recorder",
    "resend": "ctxeval.capture.resending",
    "trace": "ctxeval.capture.trace",
    "EmbeddingSimilarity": "ctxeval.judges.embedding",
    "Comparison": "ctxeval.evaluation.compare",
    "compare": "ctxeval.evaluation.compare",
    "score_table": "ctxeval.evaluation.columns",
    "aevaluate": "ctxeval.evaluation.evaluate",
    "evaluate": "ctxeval.evaluation.evaluate",
    "Evaluation": "ctxeval.evaluation.evaluation",
    "GateFailure": "ctxeval.evaluation.gate",
    "gate": "ctxeval.evaluation.gate",
    "JudgeCheck": "ctxeval.evaluation.judge_check",
    "check_judge": "ctxeval.evaluation.judge_check",
    "label_samples": "ctxeval.evaluation.label_samples",
    "pooled": "ctxeval.evaluation.pooling",
    "Row": "ctxeval.evaluation.rows",
    "LLMJudge": "ctxeval.judges.llm",
    "llm_factory": "ctxeval.llm.factory",
    "Fault": "ctxeval.llm.faults",
    "LLM": "ctxeval.llm.protocol",
    "Completion": "ctxeval.llm.protocol",
    "FirstToken": "ctxeval.llm.protocol",
    "FirstTokenLLM": "ctxeval.llm.protocol",
    "Ways": "ctxeval.llm.ways",
    "Store": "ctxeval.store.store",
    "in_thread": "ctxeval.llm.loop",
    "Chunk": "ctxeval.record.query",
    "QueryRecord": "ctxeval.record.query",
    "QueryStatus": "ctxeval.record.query",
    "Retrieval": "ctxeval.record.query",
    "text_id": "ctxeval.record.query",
    "read_samples": "ctxeval.record.reading",
    "References": "ctxeval.record.references",
    "TraceSpan": "ctxeval.record.tracing",
    "current_span": "ctxeval.record.tracing",
    "Metrics": "ctxeval.naming",
    "MetricSet": "ctxeval.naming",
    "metric_by_name": "ctxeval.naming",
    "resolve_metrics": "ctxeval.naming",
    "ascore": "ctxeval.scoring",
    "score": "ctxeval.scoring",
}

__all__ = [
    "LLM",
    "NDCG",
    "AuthenticationError",
    "AveragePrecision",
    "Calibration",
    "Chunk",
    "Comparison",
    "Completion",
    "ContextOverflowError",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "ContextUtilization",
    "Corrected",
    "CtxEvalError",
    "EmbeddingSimilarity",
    "Evaluation",
    "ExportError",
    "Fault",
    "FirstToken",
    "FirstTokenLLM",
    "GateFailure",
    "HitRate",
    "IDBasedContextPrecision",
    "IDBasedContextRecall",
    "IdJudge",
    "InvalidArgumentError",
    "InvalidSampleError",
    "JudgeCheck",
    "JudgeError",
    "LLMJudge",
    "Metric",
    "MetricResult",
    "MetricSet",
    "Metrics",
    "MissingExtraError",
    "MissingFieldError",
    "NonLLMContextPrecision",
    "NonLLMContextPrecisionWithReference",
    "NonLLMContextRecall",
    "NotScoredError",
    "NotTracedError",
    "PrecisionAtK",
    "QueryRecord",
    "QueryStatus",
    "QuotaError",
    "RecallAtK",
    "ReciprocalRank",
    "Recorder",
    "References",
    "Retrieval",
    "Row",
    "Sample",
    "Span",
    "SpanIoU",
    "SpanJudge",
    "SpanPrecision",
    "SpanPrecisionOmega",
    "SpanRecall",
    "Store",
    "StoreError",
    "TextJudge",
    "TraceSpan",
    "Usage",
    "Verdict",
    "Verdicts",
    "Ways",
    "aevaluate",
    "ascore",
    "calibrate",
    "check_judge",
    "compare",
    "current_span",
    "evaluate",
    "gate",
    "in_thread",
    "label_samples",
    "llm_factory",
    "load_ipython_extension",
    "metric_by_name",
    "pooled",
    "read_samples",
    "resend",
    "resolve_metrics",
    "score",
    "score_table",
    "text_id",
    "trace",
    "unload_ipython_extension",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'ctxeval' has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
