"""Scores where people already look: one exporter per product, each given the user's own client."""

from ctxeval.export.langfuse import Langfuse
from ctxeval.export.langsmith import LangSmith
from ctxeval.export.mlflow import MLflow
from ctxeval.export.opentelemetry import OpenTelemetry
from ctxeval.export.phoenix import Phoenix
from ctxeval.export.score import Score, scores_of

__all__ = ["LangSmith", "Langfuse", "MLflow", "OpenTelemetry", "Phoenix", "Score", "scores_of"]
