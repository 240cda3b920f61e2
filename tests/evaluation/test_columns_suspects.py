"""Rows that are no samples because of what stands beside the columns that are compared."""

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from row_by_row import row_by_row

import ctxeval
from ctxeval import InvalidSampleError
from ctxeval.evaluation.columns import by_id as columns_by_id
from ctxeval.evaluation.columns import score_table

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


def not_utf8(*, wide=False, index=1):
    """Three strings of which one is none, as files may hold them."""
    texts = [b"x", b"x", b"x"]
    texts[index] = b"\xff\xfe"
    binary = pa.array(texts, pa.large_binary() if wide else pa.binary())
    return pa.Array.from_buffers(pa.large_string() if wide else strings, 3, binary.buffers())


def one_each(values):
    return pa.ListArray.from_arrays([0, 1, 2, 3], values)


abc = pa.array([["a"], ["b"], ["c"]])
UNREADABLE = {
    "an id": ({"retrieved_context_ids": one_each(not_utf8()), "reference_context_ids": abc}, IDS),
    "a coded id": (
        {
            "retrieved_context_ids": one_each(
                pa.DictionaryArray.from_arrays([0, 1, 2], not_utf8())
            ),
            "reference_context_ids": abc,
        },
        IDS,
    ),
    "a text": (
        {"retrieved_contexts": one_each(not_utf8(wide=True)), "reference_contexts": abc},
        TEXTS,
    ),
    "a text beside ids": (
        {
            "retrieved_context_ids": abc,
            "reference_context_ids": abc,
            "retrieved_contexts": one_each(not_utf8()),
        },
        IDS,
    ),
    "a document beside ids": (
        {
            "retrieved_context_ids": abc,
            "reference_context_ids": abc,
            "retrieved_spans": one_each(
                pa.StructArray.from_arrays(
                    [not_utf8(), pa.array([0] * 3), pa.array([1] * 3)], fields=list(span)
                )
            ),
        },
        IDS,
    ),
    "a question": (
        {"retrieved_context_ids": abc, "reference_context_ids": abc, "user_input": not_utf8()},
        IDS,
    ),
    "the sample's id": (
        {"retrieved_context_ids": abc, "reference_context_ids": abc, "id": not_utf8()},
        IDS,
    ),
    "metadata": (
        {
            "retrieved_context_ids": abc,
            "reference_context_ids": pa.array([["a"], [], ["c"]]),
            "metadata": pa.StructArray.from_arrays([not_utf8()], ["topic"]),
        },
        IDS,
    ),
}


@pytest.mark.parametrize("few", [0, 10**9])
@pytest.mark.parametrize("case", UNREADABLE)
def test_strings_that_are_none(case, few, monkeypatch, tmp_path):
    monkeypatch.setattr(columns_by_id, "FEW", few)
    columns, metrics = UNREADABLE[case]
    table = pa.table(columns)
    if case not in ("a question", "the sample's id", "metadata"):  # which it does not read
        with pytest.raises(
            InvalidSampleError, match=r"table, row 2: .*is no text in UTF-8: decode"
        ):
            score_table(table, metrics)
        scored = score_table(table, metrics, errors="status")
        assert scored[f"{metrics[0]}_status"].to_pylist() == ["scored", "failed", "scored"]
    bad = []
    evaluation = ctxeval.evaluate(table, metrics, on_bad=bad.append)
    assert (len(evaluation), len(bad)) == (2, 1)
    assert str(bad[0]).startswith("samples, row 2: ")
    if case == "a coded id":  # the file cannot be read at all
        return
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(table, tmp_path / "samples.parquet")
    with pytest.raises(InvalidSampleError, match=r"samples\.parquet, row 2: .*is no text in UTF-8"):
        ctxeval.evaluate(tmp_path / "samples.parquet", metrics)


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param(pa.array([2**62] * 2, pa.timestamp("s")), id="a moment beyond all years"),
        pytest.param(
            pa.StructArray.from_arrays([pa.array([1, 2])] * 2, ["x", "x"]), id="fields of one name"
        ),
    ],
)
def test_cells_that_python_has_not(cells):
    table = pa.table({"retrieved_context_ids": [["a"]] * 2, "reference_context_ids": [[], ["a"]]})
    table = table.append_column("metadata", pa.StructArray.from_arrays([cells], ["x"]))
    with pytest.raises(
        InvalidSampleError, match=r"row 1: metadata: a cell of type struct.*cannot be"
    ):
        ctxeval.evaluate(table, IDS)
    assert score_table(table, IDS)["ndcg"].to_pylist() == [None, 1]
    ids = table.drop("metadata").append_column(
        "retrieved_spans", pa.ListArray.from_arrays([0, 1, 2], cells)
    )
    with pytest.raises(InvalidSampleError, match="row 1: retrieved_spans: "):
        score_table(ids, IDS)


def test_grades_of_which_two_have_one_name():
    grades = pa.StructArray.from_arrays([pa.array([1, 2])] * 2, ["a", "a"])
    table = pa.table({"retrieved_context_ids": [["a"]] * 2, "reference_context_ids": grades})
    with pytest.raises(InvalidSampleError, match="row 1: reference_context_ids: a cell of type"):
        score_table(table, IDS)
