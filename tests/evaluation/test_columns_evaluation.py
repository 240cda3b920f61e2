"""Evaluating a table column by column comes to what row by row would, rows included."""

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("scipy")

import pyarrow as pa
import pyarrow.parquet as parquet

import ctxeval
from ctxeval import InvalidArgumentError, InvalidSampleError, aevaluate, evaluate, read_samples
from ctxeval.evaluation import evaluate as module
from ctxeval.evaluation import reporting
from ctxeval.evaluation.columns import evaluating, joining, late, opening
from ctxeval.evaluation.reporting import report_of
from ctxeval.scoring import begin_all, score_all

METRICS = ["ndcg@3", "id_based_context_recall", "non_llm_context_recall"]
ROWS = [
    {"retrieved_context_ids": ["a", "b"], "reference_context_ids": ["b"]},
    {"retrieved_context_ids": ["c"], "reference_context_ids": None},
    {"retrieved_context_ids": [], "reference_context_ids": ["b"]},
    {"retrieved_context_ids": ["d", "d"], "reference_context_ids": []},
    {"retrieved_context_ids": ["e", "x"], "reference_context_ids": ["x", "e", "f"]},
]
for number, row in enumerate(ROWS):
    row["user_input"] = f"Question {number}?"
    row["retrieved_contexts"] = [f"text of {name}" for name in row["retrieved_context_ids"]]
    row["reference_contexts"] = None if number == 3 else ["text of e", "nothing alike"]
    if row["reference_context_ids"] is not None:
        row["reference_contexts"] = [f"text of {name}" for name in row["reference_context_ids"]]
    row["metadata"] = {"topic": "even" if number % 2 == 0 else "odd"}
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "retrieved_context_ids": pa.list_(pa.string()),
        "reference_context_ids": pa.list_(pa.string()),
        "user_input": pa.string(),
        "retrieved_contexts": pa.list_(pa.string()),
        "reference_contexts": pa.list_(pa.string()),
        "metadata": pa.struct({"topic": pa.string()}),
    }
)


def with_ids(rows):
    return [{"id": f"row {number}", **row} for number, row in enumerate(rows)]


@pytest.fixture
def scored_alone(monkeypatch):
    """Counts the samples that are scored row by row."""
    counted = []

    def counting(samples, metrics):
        counted.extend(samples)
        return begin_all(samples, metrics)

    def counting_later(samples, metrics):
        counted.extend(samples)
        return score_all(samples, metrics)

    monkeypatch.setattr(module, "begin_all", counting)
    monkeypatch.setattr(late, "score_all", counting_later)
    monkeypatch.setattr(joining, "BATCH", 2)
    return counted


def as_arrow(rows, tmp_path):
    return pa.Table.from_pylist(rows, SCHEMA)


def as_pandas(rows, tmp_path):
    return pytest.importorskip("pandas").DataFrame(rows, columns=SCHEMA.names)


def as_polars(rows, tmp_path):
    return pytest.importorskip("polars").from_arrow(as_arrow(rows, tmp_path))


def as_file(rows, tmp_path):
    parquet.write_table(as_arrow(rows, tmp_path), tmp_path / "in.parquet", row_group_size=2)
    return tmp_path / "in.parquet"


every_kind = pytest.mark.parametrize("made", [as_arrow, as_pandas, as_polars, as_file])
every_choice = pytest.mark.parametrize(
    "metrics", [pytest.param(METRICS, id="named"), pytest.param("auto", id="auto")]
)


@every_kind
@every_choice
@pytest.mark.parametrize("named", [True, False])
def test_it_comes_to_the_same(made, metrics, named, scored_alone, tmp_path):
    rows = with_ids(ROWS) if named else ROWS
    expected = evaluate(list(rows), metrics)
    scored_alone.clear()
    evaluation = evaluate(made(rows, tmp_path), metrics)
    assert repr(evaluation) == repr(expected)
    assert evaluation.summary() == expected.summary()
    assert evaluation.metrics == expected.metrics
    assert len(evaluation) == len(rows)
    assert evaluation.usage == expected.usage
    for name in evaluation.metrics:
        assert evaluation.places(name) == expected.places(name)
    if named:
        assert evaluation.ids == expected.ids
    assert evaluation.failures() == expected.failures()
    assert list(evaluation.to_dicts()) == list(expected.to_dicts())
    assert evaluation.ids == expected.ids
    assert scored_alone == []  # and only now, for the rows
    worst = evaluation.worst(evaluation.metrics[0], 2)
    assert as_dicts(worst) == as_dicts(expected.worst(evaluation.metrics[0], 2))
    assert len(scored_alone) == 2
    assert as_dicts(evaluation.rows) == as_dicts(expected.rows)
    assert len(scored_alone) == 2 + len(rows)


def as_dicts(rows):
    return [row.to_dict() for row in rows]


@every_kind
def test_single_rows_are_had_as_of_a_list(made, scored_alone, tmp_path):
    expected = list(evaluate(list(ROWS), METRICS).rows)
    scored_alone.clear()
    rows = evaluate(made(ROWS, tmp_path), METRICS).rows
    assert len(rows) == len(expected)
    assert scored_alone == []
    assert as_dicts([rows[1], rows[-1]]) == as_dicts([expected[1], expected[-1]])
    assert len(scored_alone) == 2
    for some in (slice(1, 3), slice(-2, None), slice(None, None, -2), slice(9, 9)):
        assert as_dicts(rows[some]) == as_dicts(expected[some])
    assert as_dicts(reversed(rows)) == as_dicts(reversed(expected))
    for place in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError, match=f"no row {place}: they are {len(expected)}"):
            rows[place]
    with pytest.raises(TypeError):
        rows["1"]


@every_kind
@pytest.mark.parametrize("named", [True, False])
def test_ids_are_known_without_scoring(made, named, scored_alone, tmp_path):
    rows = with_ids(ROWS) if named else ROWS
    expected = evaluate(list(rows), METRICS)
    scored_alone.clear()
    evaluation = evaluate(made(rows, tmp_path), METRICS)
    assert evaluation.values("ndcg@3") == expected.values("ndcg@3")
    wanted = [expected.ids[4], expected.ids[1]]
    assert scored_alone == []
    assert as_dicts(evaluation.of_ids(wanted)) == as_dicts(expected.of_ids(wanted))
    assert len(scored_alone) == 2


@every_kind
def test_groups_are_formed_without_scoring(made, scored_alone, tmp_path):
    expected = evaluate(with_ids(ROWS), METRICS).groups("topic")
    scored_alone.clear()
    groups = evaluate(made(with_ids(ROWS), tmp_path), METRICS).groups("topic")
    assert list(groups) == list(expected) == ["even", "odd"]
    for name, group in groups.items():
        assert group.summary() == expected[name].summary()
        assert group.ids == expected[name].ids
        assert group.failures() == expected[name].failures()
        assert list(group.to_dicts()) == list(expected[name].to_dicts())
    assert scored_alone == []
    assert as_dicts(groups["odd"].rows) == as_dicts(expected["odd"].rows)
    assert len(scored_alone) == 2
    assert as_dicts(groups["even"].worst("ndcg@3", 1)) == as_dicts(
        expected["even"].worst("ndcg@3", 1)
    )
    assert len(scored_alone) == 3
    with pytest.raises(InvalidArgumentError, match="did you mean 'topic'"):
        evaluate(made(with_ids(ROWS), tmp_path), METRICS).groups("topics")


def test_comparison_and_gate_score_no_row(scored_alone, tmp_path):
    rows = with_ids(ROWS)
    changed = [{**row, "retrieved_context_ids": row["retrieved_context_ids"][::-1]} for row in rows]
    by_row = [evaluate(list(one), ["ndcg@3", "hit_rate@1"]) for one in (rows, changed)]
    scored_alone.clear()
    by_column = [
        evaluate(
            as_arrow(one, tmp_path).drop_columns(["retrieved_contexts"]), ["ndcg@3", "hit_rate@1"]
        )
        for one in (rows, changed)
    ]
    assert ctxeval.compare(*by_column) == ctxeval.compare(*by_row)
    assert ctxeval.gate(by_column[0], min_coverage=0.1) == ctxeval.gate(by_row[0], min_coverage=0.1)
    assert scored_alone == []


def test_a_report_of_many_looks_at_some(scored_alone, monkeypatch, tmp_path):
    monkeypatch.setattr(reporting, "LOOKED_AT", 40)
    monkeypatch.setattr(reporting, "OPENED", 3)
    monkeypatch.setattr(reporting, "LACKING", 10)
    rows = [{**ROWS[n % len(ROWS)], "id": f"row {n}"} for n in range(300)]
    expected = report_of(evaluate(list(rows), ["ndcg@3", "hit_rate@1"]))
    scored_alone.clear()
    found = report_of(evaluate(as_arrow(rows, tmp_path), ["ndcg@3", "hit_rate@1"]))
    assert 40 <= len(scored_alone) <= 53
    assert found.ranking.ranks[0].chunks < expected.ranking.ranks[0].chunks
    (note,) = found.notes
    assert "40 queries, drawn at random from 300" in note
    assert expected.notes == ()
    for part in ("queries", "scores", "worst", "reasons", "usage"):
        assert getattr(found, part) == getattr(expected, part), part


@every_kind
@pytest.mark.parametrize("named", [True, False])
def test_from_a_table_to_a_parquet_file(made, named, scored_alone, tmp_path):
    rows = with_ids(ROWS) if named else ROWS
    expected = evaluate(list(rows), METRICS, output=tmp_path / "expected.parquet")
    scored_alone.clear()
    evaluation = evaluate(made(rows, tmp_path), METRICS, output=tmp_path / "out.parquet")
    assert scored_alone == []
    written = parquet.read_table(tmp_path / "out.parquet")
    assert written.equals(parquet.read_table(tmp_path / "expected.parquet"))
    assert evaluation.summary() == expected.summary()
    assert evaluation.ids == expected.ids
    assert as_dicts(evaluation.worst("ndcg@3", 1)) == as_dicts(
        evaluate(list(rows), METRICS).worst("ndcg@3", 1)
    )
    assert sorted(path.name for path in tmp_path.iterdir() if "unfinished" in path.name) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"retrieved_context_ids": ["a", ""]}, r"row 5: retrieved_context_ids\[1\]"),
        ({"retrieved_contexts": ["a", None]}, r"row 5: retrieved_contexts\[1\]"),
        ({"retrieved_contexts": ["a"]}, "row 5: .* run in parallel"),
        ({"id": ""}, "row 5: id: '' is no id"),
    ],
)
def test_a_row_that_is_no_sample(change, said, scored_alone, tmp_path):
    table = as_arrow([*with_ids(ROWS[:4]), {"id": "x", **ROWS[4], **change}], tmp_path)
    for metrics in (METRICS, ["ndcg@3"]):
        with pytest.raises(InvalidSampleError, match=f"samples, {said}"):
            evaluate(table, metrics)
    bad = []
    evaluation = evaluate(table, METRICS, on_bad=bad.append)
    assert len(bad) == 1
    assert evaluation.ids == ["row 0", "row 1", "row 2", "row 3"]
    evaluate(table, METRICS, on_bad=bad.append, output=tmp_path / "out.parquet")
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == 4


def with_topics(rows):
    """Give rows with further columns, one of which has the name of a field."""
    others = [[{"deep": n}] if n % 2 else None for n in range(len(rows))]
    return [
        {**row, "topic": row["metadata"]["topic"], "response": n, "other": others[n]}
        for n, row in enumerate(rows)
    ]


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "file"])
@pytest.mark.parametrize("output", [None, "out.parquet"])
def test_further_columns_go_to_the_metadata(kind, output, scored_alone, tmp_path):
    rows = with_topics(with_ids(ROWS))
    columns = ["topic", "response", "other"]
    table = pa.Table.from_pylist(rows)
    source = table
    if kind == "pandas":
        source = pytest.importorskip("pandas").DataFrame(rows)
    elif kind == "polars":
        source = pytest.importorskip("polars").from_arrow(table)
    elif kind == "file":
        parquet.write_table(table, tmp_path / "in.parquet", row_group_size=2)
        source = tmp_path / "in.parquet"
    expected = evaluate(list(read_samples(rows, metadata_columns=columns)), METRICS)
    scored_alone.clear()
    path = output and tmp_path / output
    found = evaluate(read_samples(source, metadata_columns=columns), METRICS, output=path)
    assert found.summary() == expected.summary()
    assert found.failures() == expected.failures()
    assert found.groups("topic")["odd"].summary() == expected.groups("topic")["odd"].summary()
    assert scored_alone == []
    assert as_dicts(found.worst("ndcg@3", 2)) == as_dicts(expected.worst("ndcg@3", 2))
    assert as_dicts(found.rows) == as_dicts(expected.rows)
    if kind == "file" and output:
        again = ctxeval.Evaluation.load(path)
        assert as_dicts(again.rows) == as_dicts(expected.rows)


def test_what_was_begun_to_be_read_goes_on_row_by_row(scored_alone, tmp_path):
    samples = read_samples(as_arrow(with_ids(ROWS), tmp_path))
    next(samples)
    assert evaluate(samples, METRICS).ids == ["row 1", "row 2", "row 3", "row 4"]


def test_an_unknown_column_is_told(scored_alone, tmp_path):
    table = as_arrow(ROWS, tmp_path).append_column("topic", pa.array(["x"] * len(ROWS)))
    with pytest.raises(InvalidSampleError, match="unknown column 'topic'"):
        evaluate(table, METRICS)


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(pa.array(['["a"]'] * 5), id="lists as JSON"),
        pytest.param(pa.array([[1.0]] * 5), id="ids that are floats"),
    ],
)
def test_cells_that_are_not_plain_go_row_by_row(column, scored_alone, tmp_path):
    table = as_arrow(ROWS, tmp_path).select(["reference_context_ids"])
    table = table.append_column("retrieved_context_ids", column)
    evaluation = evaluate(table, ["ndcg@3"])
    assert len(scored_alone) == len(ROWS)
    assert evaluation.summary()[0].scored == 3


def test_other_metrics_go_row_by_row(scored_alone, tmp_path):
    metrics = [
        "ndcg@3",
        ctxeval.NonLLMContextRecall(lambda one, other: float(one == other), threshold=1),
    ]
    assert len(evaluate(as_arrow(ROWS, tmp_path), metrics)) == len(scored_alone) == len(ROWS)


def test_a_file_that_has_changed_since(scored_alone, tmp_path):
    evaluation = evaluate(as_file(with_ids(ROWS), tmp_path), METRICS)
    as_file(with_ids(ROWS[1:]), tmp_path)
    assert len(evaluation.values("ndcg@3")) == 3
    with pytest.raises(InvalidArgumentError, match=r"in.parquet.* has changed"):
        evaluation.worst("ndcg@3")


def test_a_frame_that_has_changed_since(scored_alone, tmp_path):
    frame = as_pandas(with_ids(ROWS), tmp_path)
    evaluation = evaluate(frame, METRICS)
    frame.loc[0, "user_input"] = "changed"
    assert next(row.sample.user_input for row in evaluation.rows) == "Question 0?"


def test_without_pyarrow_row_by_row(scored_alone, monkeypatch, tmp_path):
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    assert len(evaluate(as_pandas(ROWS, tmp_path), METRICS)) == len(scored_alone) == len(ROWS)


def test_nothing_in_it(scored_alone, tmp_path):
    assert len(evaluate(as_arrow([], tmp_path), METRICS)) == 0
    with pytest.raises(InvalidSampleError, match="holds no sample"):
        evaluate(as_file([], tmp_path), METRICS)


async def test_it_can_be_cancelled(scored_alone, monkeypatch, tmp_path):
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    table = as_arrow(with_ids(ROWS), tmp_path)

    def without_end():
        loop.call_soon_threadsafe(begun.set)
        while True:
            yield from table.to_batches()

    endless = opening.Opened(table.column_names, without_end(), lambda: table, table.take)
    monkeypatch.setattr(evaluating, "opened", lambda source: endless)
    task = asyncio.create_task(aevaluate(table, METRICS))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_file_that_is_gone(tmp_path):
    path = as_file(with_ids(ROWS), tmp_path)
    evaluation = evaluate(path, METRICS)
    Path(path).unlink()
    with pytest.raises(
        InvalidArgumentError, match=r"in.parquet is gone since .* evaluate it again"
    ):
        evaluation.worst("ndcg@3")


def test_batches_readers_and_data_sets_are_tables(tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    table = as_arrow(with_ids(ROWS), tmp_path)
    path = as_file(with_ids(ROWS), tmp_path)
    expected = evaluate(table, METRICS)
    for source in (
        table.combine_chunks().to_batches()[0],
        table.to_reader(max_chunksize=2),
        dataset.dataset(path),
    ):
        evaluation = evaluate(source, METRICS)
        assert evaluation.summary() == expected.summary(), type(source)
        assert evaluation.failures() == expected.failures()
        assert evaluation.worst("ndcg@3") == expected.worst("ndcg@3")
    assert list(ctxeval.read_samples(table.to_reader())) == list(ctxeval.read_samples(table))
