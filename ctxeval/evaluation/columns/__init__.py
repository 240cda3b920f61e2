"""Score tables column by column."""

from ctxeval.evaluation.columns.table import score_table

__all__ = ["score_table"]
