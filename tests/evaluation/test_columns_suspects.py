"""Rows that are no samples because of what stands beside the columns that are compared."""

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

import ctxeval
from ctxeval import InvalidSampleError
from ctxeval.evaluation.columns import by_id as columns_by_id
from ctxeval.evaluation.columns import score_table
from ctxeval.record.tables import arrow_rows
from ctxeval.scoring import score_all

IDS = ["hit_rate@2", "ndcg", "id_based_context_precision"]
TEXTS = ["non_llm_context_recall"]
lists, strings, int64 = pa.list_, pa.string(), pa.int64()
span = pa.struct([("document", strings), ("start", int64), ("end", int64)])
coded = pa.DictionaryArray.from_arrays([0, 1, 2], pa.array(["x", None, "y"]))


def graded(cells):
    return pa.array(cells, pa.map_(strings, int64))


def spans(cells, kind=span):
    keys = [field.name for field in kind]
    return pa.array(
        [c and [dict(zip(keys, one, strict=True)) for one in c] for c in cells], lists(kind)
    )


FINE = {
    "retrieved_context_ids": pa.array([["a"], ["b"], None]),
    "reference_context_ids": pa.array([["a"], ["c"], ["b"]]),
}
# In each the second row is no sample, and the others are.
WRONG = {
    "a null text": {"retrieved_contexts": pa.array([["x"], [None], None])},
    "a null text that is expected": {"reference_contexts": pa.array([None, [None], ["x"]])},
    "a null text in a dictionary": {
        "retrieved_contexts": pa.ListArray.from_arrays([0, 1, 2, 3], coded)
    },
    "texts that are numbers": {"retrieved_contexts": pa.array([None, [1], []])},
    "a span that ends before it starts": {
        "retrieved_spans": spans([[("d", 0, 4)], [("d", 5, 4)], None])
    },
    "a span that starts before 0": {"retrieved_spans": spans([None, [("d", -1, 4)], None])},
    "a span without an end": {"retrieved_spans": spans([None, [("d", 1, None)], None])},
    "a span in no document": {"retrieved_spans": spans([[("d", 1, 2)], [(None, 1, 2)], None])},
    "a span in an empty document": {
        "reference_spans": spans([[("d", 1, 2)] * 3, [("", 1, 2)], []])
    },
    "a null span": {"retrieved_spans": pa.array([None, [None], []], lists(span))},
    "spans of other fields": {
        "retrieved_spans": spans(
            [None, [("d", 1)], None], pa.struct([("document", strings), ("at", int64)])
        )
    },
    "spans of shares": {
        "retrieved_spans": pa.array([None, [{"document": "d", "start": 0.5, "end": 1}], None])
    },
    "grades of which one is null": {
        "reference_context_ids": graded([[("a", 1)], [("b", 1), ("c", None)], [("d", 1)]]),
        "reference_contexts": pa.array([["x"], ["y", "z"], ["x"]]),
    },
    "an id that is graded twice": {
        "reference_context_ids": graded([[("a", 1)], [("b", 1), ("b", 0)], [("b", 1)]]),
        "reference_contexts": pa.array([["x"], ["y", "z"], ["x"]]),
    },
    "grades that differ in number from the texts": {
        "reference_context_ids": pa.array([{"a": 1}, {"b": 1}, {"a": 1, "b": 0}]),
        "reference_contexts": pa.array([["x"], ["y", "z"], ["x", "y"]]),
    },
}
TEXTS_WRONG = {
    "a null id": {"retrieved_context_ids": pa.array([["a"], [None], ["b"]])},
    "an empty id": {"reference_context_ids": pa.array([["a"], [""], ["b"]])},
    "ids that are booleans": {"retrieved_context_ids": pa.array([None, [True], None])},
    "an empty id with a grade": {"reference_context_ids": pa.array([None, {"": 1}, None])},
}


def row_by_row(table, metrics):
    told = []
    for row in arrow_rows(table.to_batches(), table.schema.names, "table"):
        try:
            told.append(score_all([row.sample()], ctxeval.resolve_metrics(metrics))[0])
        except InvalidSampleError as error:
            told.append(str(error))
    return told


CASES = [pytest.param(FINE | more, IDS, id=name) for name, more in WRONG.items()]
CASES += [
    pytest.param(
        {
            name: pa.array([["x"], ["y"], ["z"]])
            for name in ("retrieved_contexts", "reference_contexts")
        }
        | more,
        TEXTS,
        id=f"{name} beside texts",
    )
    for name, more in TEXTS_WRONG.items()
]


@pytest.mark.parametrize("few", [0, 8, 10**9])
@pytest.mark.parametrize(("columns", "metrics"), CASES)
def test_what_is_wrong_beside_the_columns_that_are_compared(columns, metrics, few, monkeypatch):
    monkeypatch.setattr(columns_by_id, "FEW", few)
    table = pa.table(columns)
    told = row_by_row(table, metrics)
    assert [isinstance(one, str) for one in told] == [False, True, False]
    with pytest.raises(InvalidSampleError) as raised:
        score_table(table, metrics)
    assert str(raised.value) == told[1]
    scored = score_table(table, metrics, errors="status")
    for name in metrics:
        expected = [
            ("failed", None) if isinstance(one, str) else (one[name].status, one[name].value)
            for one in told
        ]
        found = zip(scored[f"{name}_status"].to_pylist(), scored[name].to_pylist(), strict=True)
        assert list(found) == expected


def test_a_row_that_is_scored_alone_is_named_by_its_own_number(monkeypatch):
    """Of rows of single lengths: their error names them, not their place among such rows."""
    monkeypatch.setattr(columns_by_id, "FEW", 0)
    read = pa.table({**FINE, "retrieved_contexts": pa.array([["x"], ["x", "y"], None])})
    with pytest.raises(InvalidSampleError, match="table, row 2: Sample: retrieved_contexts has 2"):
        score_table(read, "ndcg")


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="older than views")
@pytest.mark.parametrize("few", [0, 10**9])
def test_types_of_which_arrow_takes_no_single_rows(few, monkeypatch):
    monkeypatch.setattr(columns_by_id, "FEW", few)
    texts = pa.array([["x"], ["y"], None], lists(pa.string_view()))
    table = pa.table({**FINE, "retrieved_contexts": texts})
    assert score_table(table, "hit_rate@1")["hit_rate@1"].to_pylist() == [1, 0, None]
