"""Frames whose cells Arrow would read otherwise, or not at all: as row by row."""

import datetime
import decimal
import uuid

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

import numpy as np
import pandas as pd
import pyarrow as pa

import ctxeval
from ctxeval import InvalidSampleError
from ctxeval.evaluation.columns import score_table
from ctxeval.evaluation.columns.opening import opened
from ctxeval.record.tables import pandas_rows

METRICS = ["hit_rate@1", "ndcg@10", "id_based_context_recall"]
half = decimal.Decimal("2.5")


def frame(retrieved, expected, **more):
    return pd.DataFrame(
        {"retrieved_context_ids": retrieved, "reference_context_ids": expected, **more}
    )


FRAMES = {
    "decimals of several lengths": frame([[half, decimal.Decimal("1.50")]], [["2.5"]]),
    "whole numbers beyond 64 bits": frame([[2**70, 1], [3]], [[1], [2**70]]),
    "whole numbers beyond 63 bits, and negative ones": frame([[2**63, -1]], [[-1]]),
    "whole numbers that no float holds": frame([[2**53 + 1, 0.5]], [[2**53 + 1]]),
    "UUIDs": frame([[uuid.UUID(int=1)]], [[str(uuid.UUID(int=1))]]),
    "UUIDs beside whole numbers": frame([[1, uuid.UUID(int=2)]], [["2"]]),
    "UUIDs beside whole numbers, with grades": frame([["2"]], [{1: 1, uuid.UUID(int=2): 2}]),
    "arrays": frame([np.array(["a", "b"]), np.array(["b"], object)], [np.array(["b"])] * 2),
    "days and moments": frame(
        [[datetime.date(2024, 1, 1)], [datetime.datetime(2024, 1, 1)]], [["2024-01-01"]] * 2
    ),
    "numpy's moments": frame([[np.datetime64("2024-01-01T01:00:00")]], [["2024-01-01 01:00:00"]]),
    "numpy's spans of time": frame([[np.timedelta64(1, "D")]], [["1 day, 0:00:00"]]),
    "halves of surrogate pairs": frame([["\ud800", "a"]], [["\ud800"]]),
    "grades": frame([["a", "b"], ["b"], ["c"], []], [{"a": 1, "b": 2}, {"b": 0}, {}, None]),
    "grades of whole numbers": frame([[1, 2], [2], [3]], [{1: 1, 2: 2}, {2: 0}, float("nan")]),
    "grades beside lists": frame([["a"], ["b"]], [{"a": 1}, ["b"]]),
    "grades that are empty": frame([["a", "b"]] * 2, [{"a": 1, "b": None}, {"a": np.nan, "b": 2}]),
    "grades of all types of numbers": frame([["a"]] * 3, [{"a": 1.0}, {"a": np.int8(2)}, {"b": 3}]),
    "grades of ids of all types": frame([["a", "1"]], [{"a": 1, 1: 2}]),
    "sets of what is expected": frame([["a"]], [{"a"}]),
}
WRONG = {
    "a set of what was retrieved": frame([["a"], {"a", "b"}], [["a"]] * 2),
    "bytes beside strings": frame([["a"], ["b", b"a"]], [["a"]] * 2),
    "bytes in an array": frame([["a"], np.array(["b", b"a"], object)], [["a"]] * 2),
    "a decimal that is no number": frame([["a"], [decimal.Decimal("NaN")]], [["a"]] * 2),
    "bytes": frame([["a"], [b"a"]], [["a"]] * 2),
    "a share as grade": frame([["a"]] * 2, [{"a": 1.0}, {"a": 1.5}]),
    "a boolean as grade": frame([["a"]] * 2, [{"a": 1}, {"a": True}]),
    "a boolean as grade beside floats": frame([["a"]] * 2, [{"a": 1.0}, {"a": 1.0, "b": True}]),
    "an empty id with a grade": frame([["a"]] * 2, [{"a": 1}, {"": 1}]),
    "no id with a grade": frame([["a"]] * 2, [{"a": 1}, {None: 1}]),
}


def row_by_row(given):
    told = []
    for row in pandas_rows(given, "table"):
        try:
            told.append(ctxeval.score(row.sample(), METRICS))
        except InvalidSampleError as error:
            told.append(str(error).removeprefix("table, "))
    return told


@pytest.mark.parametrize("given", [pytest.param(f, id=name) for name, f in FRAMES.items()])
def test_cells_of_pandas(given):
    told = row_by_row(given)
    scored = score_table(given, METRICS)
    evaluation = ctxeval.evaluate(given, METRICS)
    for name in METRICS:
        values = [one[name].value for one in told]
        assert [None if v != v else v for v in scored[name].tolist()] == values
        assert scored[f"{name}_status"].tolist() == [one[name].status for one in told]
        assert [row.results[name].value for row in evaluation.rows] == values
        assert evaluation.summary()[0].scored == sum(v is not None for v in values)


@pytest.mark.parametrize("given", [pytest.param(f, id=name) for name, f in WRONG.items()])
def test_cells_of_pandas_that_are_wrong(given):
    told = row_by_row(given)
    assert [isinstance(one, str) for one in told] == [False, True]
    for call, place in ((score_table, "table"), (ctxeval.evaluate, "samples")):
        with pytest.raises(InvalidSampleError, match=f"^{place}, row 2: ") as raised:
            call(given, METRICS)
        assert told[1] in str(raised.value)
    scored = score_table(given, METRICS, errors="status")
    assert scored["hit_rate@1_status"].tolist() == ["scored", "failed"]


def test_grades_by_ids_that_no_other_row_has_take_no_more_room_than_they_are():
    """As structs, each of n rows would have n fields."""
    rows = range(3000)
    given = frame([[f"a{n}"] for n in rows], [{f"a{n}": 2, f"b{n}": 1} for n in rows])
    (batch,) = opened(given).batches
    assert pa.types.is_map(batch.column("reference_context_ids").type)
    assert batch.nbytes < 100 * len(given)
    assert score_table(given, "hit_rate@1")["hit_rate@1"].sum() == len(given)


def test_dicts_elsewhere_stay_what_they_are():
    given = frame(
        [["a"]] * 2, [["a"]] * 2, metadata=[{"topic": "x", "n": 1}, {"topic": "y", "n": 2}]
    )
    groups = ctxeval.evaluate(given, "hit_rate@1").groups("topic")
    assert set(groups) == {"x", "y"}


def test_two_columns_of_one_name_in_pandas():
    given = frame([["a"]], [["a"]])
    given = pd.concat([given, given[["reference_context_ids"]]], axis=1)
    for call in (score_table, ctxeval.evaluate):
        with pytest.raises(
            InvalidSampleError, match="two columns are named 'reference_context_ids'"
        ):
            call(given, "hit_rate@1")
