"""The metrics: each is a judge and a formula with a name."""

from ctxeval.metrics.by_id import IDBasedContextPrecision, IDBasedContextRecall
from ctxeval.metrics.by_model import (
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    ContextUtilization,
)
from ctxeval.metrics.by_place import (
    SpanIoU,
    SpanMetric,
    SpanPrecision,
    SpanPrecisionOmega,
    SpanRecall,
)
from ctxeval.metrics.by_rank import (
    NDCG,
    AveragePrecision,
    HitRate,
    PrecisionAtK,
    RankMetric,
    RecallAtK,
    ReciprocalRank,
)
from ctxeval.metrics.by_text import (
    NonLLMContextPrecision,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
)

__all__ = [
    "NDCG",
    "AveragePrecision",
    "ContextPrecision",
    "ContextRecall",
    "ContextRelevance",
    "ContextUtilization",
    "HitRate",
    "IDBasedContextPrecision",
    "IDBasedContextRecall",
    "NonLLMContextPrecision",
    "NonLLMContextPrecisionWithReference",
    "NonLLMContextRecall",
    "PrecisionAtK",
    "RankMetric",
    "RecallAtK",
    "ReciprocalRank",
    "SpanIoU",
    "SpanMetric",
    "SpanPrecision",
    "SpanPrecisionOmega",
    "SpanRecall",
]
