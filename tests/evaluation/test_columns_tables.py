"""Tables of all kinds, cells of all types, and rows that are none: as row by row."""

import datetime
import decimal
import random
import uuid

import pytest

pytest.importorskip("pyarrow")

import numpy as np
import pyarrow as pa
from row_by_row import row_by_row

import ctxeval
from ctxeval import (
    NDCG,
    ContextRelevance,
    InvalidArgumentError,
    InvalidSampleError,
    NonLLMContextRecall,
    ReciprocalRank,
    SpanRecall,
    TextJudge,
)
from ctxeval.evaluation.columns import by_id as columns_by_id
from ctxeval.evaluation.columns import ids as columns_ids
from ctxeval.evaluation.columns import score_table
from ctxeval.testing import ScriptedLLM

IDS = [
    "id_based_context_precision",
    "id_based_context_recall",
    "hit_rate@2",
    "reciprocal_rank",
    "precision@3",
    "recall@2",
    "ndcg",
    "ndcg@2",
    "average_precision",
    "average_precision@2[retrieved]",
]
lists, strings, int64 = pa.list_, pa.string(), pa.int64()
coded = pa.dictionary(pa.int8(), strings)


def array(cells, kind):
    return cells if isinstance(cells, pa.Array) else pa.array(cells, kind)


def by_id(retrieved, expected, retrieved_type=None, expected_type=None):
    return pa.table(
        {
            "retrieved_context_ids": array(retrieved, retrieved_type),
            "reference_context_ids": array(expected, expected_type),
        }
    )


def under_null():
    """Lists of which a null one has ids in the buffers all the same, one of them empty."""
    values = pa.array(["a", "", "c", "d", "e"])
    offsets = pa.array([0, 1, 3, 5], pa.int32())
    return pa.ListArray.from_arrays(offsets, values, mask=pa.array([False, True, False]))


def reads_views():
    return hasattr(pa, "list_view") and hasattr(pa, "string_view")


CELLS = {
    "null lists": by_id([None, ["a"], None], [["a"], None, None], lists(strings), lists(strings)),
    "no type at all": by_id([None, None], [["a"], None]),
    "empty lists of no type": by_id([[], []], [["a"], []], lists(pa.null())),
    "nothing": by_id([], [], lists(strings), lists(strings)),
    "no chunks": pa.table(
        {
            "retrieved_context_ids": pa.chunked_array([], lists(strings)),
            "reference_context_ids": pa.chunked_array([], lists(strings)),
        }
    ),
    "ids under a null list": pa.table(
        {
            "retrieved_context_ids": under_null(),
            "reference_context_ids": pa.array([["a"], ["c"], ["e", "d"]]),
        }
    ),
    "integers and strings": by_id([[1, 2, 3]], [["1", "03", "3"]]),
    "unsigned and signed": by_id(
        [[2**64 - 1, 5]], [[-1, 5]], lists(pa.uint64()), lists(pa.int64())
    ),
    "small integers": by_id([[1, -5, 7]], [[7]], lists(pa.int8()), lists(pa.uint8())),
    "floats that are whole": by_id([[1.0, 2.0]], [[2]]),
    "floats that are not": by_id([[1.5, 2.0]], [["1.5"]]),
    "decimals": by_id([[decimal.Decimal("1.0"), decimal.Decimal("2.5")]], [["2.5"]]),
    "dates": by_id([[datetime.date(2024, 5, 1)]], [["2024-05-01"]]),
    "fixed sizes": by_id([["a", "b"], None, ["c", "c"]], [["b"], ["x"], ["c"]], lists(strings, 2)),
    "large lists of large strings": by_id(
        [["a", "b"], None], [["b"], ["x"]], pa.large_list(pa.large_string()), lists(strings)
    ),
    "dictionaries that differ": pa.table(
        {
            "retrieved_context_ids": pa.chunked_array(
                [pa.array([["a"]], lists(coded)), pa.array([["b", "a"], ["c"]], lists(coded))]
            ),
            "reference_context_ids": pa.chunked_array([[["a"], ["a"]], [["b"]]]),
        }
    ),
    "grades as structs": by_id([["a", "b"], ["b"], []], [{"a": 1}, {"a": 0, "b": 3}, None]),
    "grades that are floats": by_id([["a"], ["b"]], [{"a": 2.0}, {"a": 1.0, "b": 3.0}]),
    "no grades at all": by_id([["a"], ["b"]], [{}, {}], None, pa.struct([])),
    "grades as maps": by_id(
        [["a", "b"], ["b"], ["a"]],
        [[("a", 2), ("b", 1)], [("b", 0)], [("a", None)]],
        None,
        pa.map_(strings, pa.int32()),
    ),
    "an id that is graded twice": by_id(
        [["a", "b"], ["a"]],
        [[("a", 2), ("b", 1), ("a", 0)], [("a", 0), ("a", 3)]],
        None,
        pa.map_(strings, int64),
    ),
    "great grades": by_id(
        [["a", "b"]], [[("b", 2**63 - 1), ("a", 2**63 - 2)]], None, pa.map_(strings, int64)
    ),
    "greater grades": by_id(
        [["a", "b"]], [[("b", 2**64 - 1), ("a", 3)]], None, pa.map_(strings, pa.uint64())
    ),
    "lists as JSON": by_id(['["a"]', None], [["a"], ["b"]]),
    "words of 16 bytes": by_id(
        [["x" * n for n in (15, 16, 17, 31, 32, 33, 48, 1000)]],
        [["x" * n for n in (14, 16, 18, 32, 47, 48, 999, 1000)]],
    ),
}
if reads_views():
    CELLS["views"] = by_id(
        [["a", "b"], None, ["c"]],
        [["b"], ["x"], ["c"]],
        pa.list_view(strings),
        pa.large_list_view(pa.string_view()),
    )
if hasattr(pa, "uuid"):
    ids = pa.array([uuid.UUID(int=n).bytes for n in (1, 2)], pa.binary(16))
    ids = pa.ExtensionArray.from_storage(pa.uuid(), ids)
    CELLS["UUIDs"] = by_id(
        pa.ListArray.from_arrays([0, 2], ids), pa.ListArray.from_arrays([0, 1], ids[1:])
    )

WRONG = {
    "a null id": by_id([["b"], ["a", None]], [["a"], ["b"]]),
    "an empty id": by_id([["a"], ["a", ""]], [["a"], ["b"]]),
    "an empty id in a dictionary": by_id([["a"], ["", "a"]], [["a"], ["b"]], lists(coded)),
    "a null integer": by_id([[2], [1, None]], [[1], [2]]),
    "booleans": by_id([[], [True]], [[1], [2]]),
    "bytes": by_id([[], [b"a"]], [["a"], ["a"]]),
    "not a number": by_id([[1.0], [float("nan")]], [[1], [2]]),
    "an id that is a list": by_id([[], [["a"]]], [["a"], ["a"]]),
    "an id where a list is due": by_id([None, "a"], [["a"], ["a"]]),
    "a number where a list is due": by_id([None, 5], [["a"], ["a"]]),
    "grades of the retrieved": by_id([None, {"a": 1}], [["a"], ["a"]]),
    "a grade that is a share": by_id([["a"], ["b"]], [{"a": 1.0}, {"a": 0.0, "b": 0.5}]),
    "a grade that is a boolean": by_id([["a"], ["b"]], [None, {"a": True}]),
    "more texts than ids": by_id([["a"], ["b"]], [["a"], ["b"]]).append_column(
        "retrieved_contexts", pa.array([["x"], ["y", "z"]])
    ),
    "more texts than graded ids": by_id(
        [["a"], ["b"]], [[("a", 1)], [("b", 1)]], None, pa.map_(strings, int64)
    ).append_column("reference_contexts", pa.array([["x"], ["y", "z"]])),
    "a text where a list is due": by_id([["a"], ["b"]], [["a"], ["b"]]).append_column(
        "retrieved_contexts", pa.array([None, "y"])
    ),
}


def assert_same(scored, told, metrics):
    for name in metrics:
        values = [None if isinstance(one, str) else one[name].value for one in told]
        statuses = ["failed" if isinstance(one, str) else one[name].status for one in told]
        assert scored.column(name).to_pylist() == values, name
        assert scored.column(f"{name}_status").to_pylist() == statuses, name


@pytest.mark.parametrize("way", ["few rows alone", "all by columns", "all ids collide"])
@pytest.mark.parametrize("table", [pytest.param(t, id=name) for name, t in CELLS.items()])
def test_cells_of_all_types(table, way, monkeypatch):
    if way != "few rows alone":
        monkeypatch.setattr(columns_by_id, "FEW", 10**9)
    if way == "all ids collide":
        monkeypatch.setattr(columns_ids, "mixed", lambda words, *_: np.zeros(len(words[0]), "u4"))
    told = row_by_row(table, IDS)
    assert not any(isinstance(one, str) for one in told)
    assert_same(score_table(table, IDS), told, IDS)


@pytest.mark.parametrize("table", [pytest.param(t, id=name) for name, t in WRONG.items()])
def test_rows_that_are_no_samples(table):
    told = row_by_row(table, IDS)
    assert [isinstance(one, str) for one in told] == [False, True]
    with pytest.raises(InvalidSampleError) as raised:
        score_table(table, IDS)
    assert str(raised.value) == told[1]
    assert str(raised.value).startswith("table, row 2: ")
    assert_same(score_table(table, IDS, errors="status"), told, IDS)


def test_a_null_text():
    table = pa.table(
        {"retrieved_contexts": [["a"], ["a", None]], "reference_contexts": [["a"]] * 2}
    )
    with pytest.raises(InvalidSampleError, match=r"row 2: retrieved_contexts\[1\]: None"):
        score_table(table, "non_llm_context_recall")
    scored = score_table(table, "non_llm_context_recall", errors="status")
    assert scored.column("non_llm_context_recall").to_pylist() == [1, None]
    assert scored.column("non_llm_context_recall_status").to_pylist() == ["scored", "failed"]


def test_a_missing_column():
    table = by_id([["a"]], [["a"]]).rename_columns(["retrieved_context_ids", "reference_ids"])
    with pytest.raises(InvalidSampleError, match="ndcg needs the column 'reference_context_ids'"):
        score_table(table, "ndcg")
    scored = score_table(table, "ndcg", errors="status")
    assert scored.column("ndcg_status").to_pylist() == ["skipped"]
    nothing = score_table(pa.table({"x": [1, 2]}), "ndcg", errors="status")
    assert nothing.column("ndcg").to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("table", "metrics", "said"),
    [
        ([["a"]], "ndcg", "is no table: give a Table"),
        (by_id([["a"]], [["a"]]), "ndgc", "unknown"),
        (by_id([["a"]], [["a"]]), [ContextRelevance(ScriptedLLM())], "asks a model"),
        (by_id([["a"]], [["a"]]).append_column("ndcg", pa.array([1.0])), "ndcg", "already"),
        (by_id([["a"]], [["a"]]).append_column("ndcg_status", pa.array([1])), "ndcg", "already"),
    ],
)
def test_arguments_that_cannot_be(table, metrics, said):
    with pytest.raises(InvalidArgumentError, match=said):
        score_table(table, metrics)


def test_a_way_with_errors_that_is_none():
    with pytest.raises(InvalidArgumentError, match="'ignore' is unknown"):
        score_table(by_id([["a"]], [["a"]]), "ndcg", errors="ignore")


def test_two_columns_of_one_name():
    column = pa.array([["a"]])
    names = ["retrieved_context_ids", "reference_context_ids", "reference_context_ids"]
    with pytest.raises(InvalidSampleError, match="two columns are named"):
        score_table(pa.table([column] * 3, names=names), "ndcg")


def test_other_columns_stay_as_they_are():
    table = by_id([["a"]], [["a"]]).append_column("topic", pa.array(["x"]))
    table = table.replace_schema_metadata({"kept": "yes"})
    scored = score_table(table, ["ndcg", "hit_rate@1"])
    assert scored.select(table.column_names).equals(table)
    assert scored.schema.metadata == {b"kept": b"yes"}
    added = ["ndcg", "ndcg_status", "hit_rate@1", "hit_rate@1_status"]
    assert scored.column_names == [*table.column_names, *added]
    assert [scored.schema.field(name).type for name in added] == [pa.float64(), pa.string()] * 2


def test_what_is_given_is_given_back():
    table = by_id([["a", "b"], ["c"], None], [["b"], [], ["a"]])
    (batch,) = table.to_batches()
    scored = score_table(table, IDS)
    assert score_table(batch, IDS) == scored.to_batches()[0]
    reader = pa.RecordBatchReader.from_batches(table.schema, [batch, batch.slice(1)])
    told = score_table(reader, IDS)
    assert isinstance(told, pa.RecordBatchReader)
    read = told.read_all()
    assert read.equals(pa.concat_tables([scored, scored.slice(1)]))


def test_a_reader_counts_its_rows_through():
    table = by_id([["a"], ["b"], ["c", ""]], [["a"], ["b"], ["c"]])
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1))
    told = score_table(reader, "ndcg")
    assert told.read_next_batch().column("ndcg").to_pylist() == [1]
    told.read_next_batch()
    with pytest.raises(InvalidSampleError, match="table, row 3: retrieved_context_ids"):
        told.read_next_batch()


def test_frames_of_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "retrieved_context_ids": [["a", "b"], None, ["c"], ["b"]],
            "reference_context_ids": [{"b": 2}, {"b": 1}, {}, {"a": 1, "b": 3}],
            "topic": [1, 2, 3, 4],
        },
        index=[7, 7, 8, 9],
    )
    scored = score_table(frame, ["reciprocal_rank", "ndcg"])
    assert scored.reciprocal_rank.isna().tolist() == [False, True, True, False]
    assert scored.reciprocal_rank.dropna().tolist() == [0.5, 1.0]
    assert scored.reciprocal_rank_status.tolist() == ["scored", "skipped", "undefined", "scored"]
    assert (
        scored.ndcg.tolist()[-1]
        == ctxeval.NDCG()
        .score(retrieved_context_ids=["b"], reference_context_ids={"a": 1, "b": 3})
        .value
    )
    assert scored.index.tolist() == [7, 7, 8, 9]
    assert scored.topic.tolist() == [1, 2, 3, 4]
    assert "ndcg" not in frame.columns


def test_frames_of_pandas_whose_ids_have_no_type_in_common():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "retrieved_context_ids": [[1, "b"], ["c"], float("nan")],
            "reference_context_ids": [["1"], ["b"], ["a"]],
        }
    )
    scored = score_table(frame, "reciprocal_rank")
    assert scored.reciprocal_rank_status.tolist() == ["scored", "scored", "skipped"]
    assert scored.reciprocal_rank.tolist()[:2] == [1, 0]
    frame.loc[1, "retrieved_context_ids"] = 5
    with pytest.raises(InvalidSampleError, match="table, row 2: retrieved_context_ids: 5 is a int"):
        score_table(frame, "reciprocal_rank")


def test_frames_of_polars():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {
            "retrieved_context_ids": [["a", "b"], None, ["c"]],
            "reference_context_ids": [["b"], ["b"], []],
            "topic": [1, 2, 3],
        }
    )
    scored = score_table(frame, "reciprocal_rank")
    assert scored.columns == [*frame.columns, "reciprocal_rank", "reciprocal_rank_status"]
    assert scored["reciprocal_rank"].to_list() == [0.5, None, None]
    assert scored["reciprocal_rank_status"].to_list() == ["scored", "skipped", "undefined"]


def test_auto_takes_what_there_are_columns_for():
    ids = score_table(by_id([["a"]], [["a"]]))
    assert [name for name in ids.column_names if name.endswith("_status")] == [
        "id_based_context_precision_status",
        "id_based_context_recall_status",
        "reciprocal_rank_status",
        "ndcg@10_status",
    ]
    texts = score_table(pa.table({"retrieved_contexts": [["a"]], "reference_contexts": [["a"]]}))
    assert texts.column("non_llm_context_recall").to_pylist() == [1]
    with pytest.raises(InvalidSampleError, match="no metric for its columns"):
        score_table(pa.table({"x": [1]}))


def test_metrics_that_know_only_single_rows():
    class LastRank(ReciprocalRank):
        stem = "last_rank"

        def formula(self, answers, verdicts):
            return 1 / max(rank for rank, answer in enumerate(answers, 1) if answer)

    span = [{"document": "d", "start": 0, "end": 4}]
    half = [{"document": "d", "start": 0, "end": 2}]
    table = by_id([["a", "b"], ["x", "b"]], [["a", "b"], ["b"]])
    table = table.append_column("retrieved_spans", pa.array([half * 2, span * 2]))
    table = table.append_column("reference_spans", pa.array([span * 2, span]))
    scored = score_table(table, [LastRank(), SpanRecall(), "hit_rate@1"])
    assert scored.column("last_rank").to_pylist() == [0.5, 0.5]
    assert scored.column("span_recall").to_pylist() == [0.5, 1]
    assert scored.column("hit_rate@1").to_pylist() == [1, 0]


def test_measures_of_every_kind():
    texts = {
        "retrieved_contexts": [["one two three", "two one three", "else"], ["", "x"], []],
        "reference_contexts": [["one two three", "three two one"], ["x", "y"], ["z"]],
    }
    metrics = [
        NonLLMContextRecall("token_sort_ratio"),
        NDCG(2, judge=TextJudge("jaro_winkler", 0.7)),
        ReciprocalRank(judge=TextJudge(lambda one, other: float(one[0] == other[0]), 1)),
    ]
    metrics[1].name = "by jaro"
    table = pa.table(texts)
    assert_same(score_table(table, metrics), row_by_row(table, metrics), [m.name for m in metrics])


@pytest.mark.parametrize(
    ("rows", "retrieved", "expected"), [(400, 12, 5), (60, 90, 30), (4, 900, 400), (40, 2, 200)]
)
def test_long_and_short_lists_together(rows, retrieved, expected):
    randomly = random.Random(rows)
    ids = [f"https://example.org/{n}/part" for n in range(2 * max(retrieved, expected))]

    def some(most):
        return [randomly.choices(ids, k=randomly.randint(0, most)) for _ in range(rows)]

    table = by_id(some(retrieved), some(expected), lists(strings), lists(strings))
    assert_same(score_table(table, IDS), row_by_row(table, IDS), IDS)


def test_types_of_polars_that_arrow_lacks():
    polars = pytest.importorskip("polars")
    ids = {"retrieved_context_ids": [[2**70, 1]], "reference_context_ids": [[1]]}
    wide = polars.List(polars.Int128)
    frame = polars.DataFrame(
        {**ids, "trace": [object()]},
        schema={
            "retrieved_context_ids": wide,
            "reference_context_ids": wide,
            "trace": polars.Object,
        },
    )
    scored = score_table(frame, "reciprocal_rank")
    assert scored["reciprocal_rank"].to_list() == [0.5]
    assert scored.columns[:3] == frame.columns
    evaluation = ctxeval.evaluate(frame.drop("trace"), ["reciprocal_rank"])
    assert evaluation.worst("reciprocal_rank")[0].results["reciprocal_rank"].value == 0.5
    objects = frame.with_columns(
        polars.Series("retrieved_context_ids", [["b", "a"]], dtype=polars.Object),
        polars.Series("reference_context_ids", [["a"]], dtype=polars.Object),
    )
    assert score_table(objects, "reciprocal_rank")["reciprocal_rank"].to_list() == [0.5]
    evaluation = ctxeval.evaluate(objects.drop("trace"), ["reciprocal_rank"])
    assert evaluation.values("reciprocal_rank").popitem()[1] == 0.5


def test_a_frame_that_is_not_collected():
    frame = pytest.importorskip("polars").LazyFrame({"retrieved_context_ids": [["a"]]})
    for call in (score_table, ctxeval.evaluate):
        with pytest.raises(InvalidArgumentError, match=r"give its \.collect\(\)"):
            call(frame, "ndcg")


def test_another_field_is_no_guess_for_a_missing_column():
    table = pa.table({"retrieved_context_ids": [["a"]]})
    with pytest.raises(InvalidSampleError, match="missing: add it, or leave the metric out"):
        score_table(table, "ndcg")
    table = table.append_column("reference_contexts_ids", table.column(0))
    with pytest.raises(InvalidSampleError, match="did you mean 'reference_contexts_ids'"):
        score_table(table, "ndcg")
