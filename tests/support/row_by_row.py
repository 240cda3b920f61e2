"""Rows of a table scored one by one: what columns must come to as well."""

import ctxeval
from ctxeval import InvalidSampleError
from ctxeval.record.tables import arrow_rows
from ctxeval.scoring import score_all


def row_by_row(table, metrics):
    """Score each row by itself: its results, or what is wrong with it."""
    told = []
    for row in arrow_rows(table.to_batches(), table.schema.names, "table"):
        try:
            told.append(score_all([row.sample()], ctxeval.resolve_metrics(metrics))[0])
        except InvalidSampleError as error:
            told.append(str(error))
    return told
