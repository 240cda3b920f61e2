"""A run in a Parquet file says what the evaluation said, and finds its queries again."""

import json
import os

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("scipy")

import pyarrow as pa
import pyarrow.parquet as parquet

import ctxeval
from ctxeval import Evaluation, InvalidArgumentError, evaluate, read_samples
from ctxeval.evaluation.reporting import report_of
from ctxeval.testing import ScriptedLLM

METRICS = ["ndcg@3", "id_based_context_recall", "non_llm_context_recall"]
ROWS = [
    {"retrieved_context_ids": ["a", "b"], "reference_context_ids": ["b"]},
    {"retrieved_context_ids": ["c"], "reference_context_ids": None},
    {"retrieved_context_ids": [], "reference_context_ids": ["b"]},
    {"retrieved_context_ids": ["d", "d"], "reference_context_ids": []},
    {"retrieved_context_ids": ["e", "x"], "reference_context_ids": ["x", "e", "f"]},
]
for number, row in enumerate(ROWS):
    row.update(id=f"row {number}", user_input=f"Question {number}?")


def as_parquet(folder, rows=ROWS):
    parquet.write_table(pa.Table.from_pylist(rows), folder / "in.parquet", row_group_size=2)
    return folder / "in.parquet"


def as_jsonl(folder, rows=ROWS):
    lines = [json.dumps({k: v for k, v in row.items() if v is not None}) for row in rows]
    (folder / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder / "in.jsonl"


def as_dicts(rows):
    return [row.to_dict() for row in rows]


@pytest.mark.parametrize("made", [as_parquet, as_jsonl])
@pytest.mark.parametrize("metrics", [METRICS, "auto"], ids=["named", "auto"])
def test_a_run_is_read_back(made, metrics, tmp_path):
    path = made(tmp_path)
    expected = evaluate(list(read_samples(path)), metrics)
    evaluate(path, metrics, output=tmp_path / "run.parquet")
    run = Evaluation.load(tmp_path / "run.parquet")
    assert run.summary() == expected.summary()
    assert run.ids == expected.ids
    assert run.failures() == expected.failures()
    assert run.usage == expected.usage
    assert as_dicts(run.rows) == as_dicts(expected.rows)
    worst = run.metrics[-1]
    assert as_dicts(run.worst(worst, 2)) == as_dicts(expected.worst(worst, 2))
    assert list(run.to_dicts()) == list(expected.to_dicts())
    found, wanted = report_of(run), report_of(expected)
    for part in ("scores", "funnel", "ranking", "worst", "reasons", "notes"):
        assert getattr(found, part) == getattr(wanted, part), part
    assert ctxeval.compare(run, expected) == ctxeval.compare(expected, expected)


def test_reasons_stand_in_the_file(tmp_path):
    evaluate(as_parquet(tmp_path), METRICS, output=tmp_path / "columns.parquet")
    evaluate(ROWS, METRICS, output=tmp_path / "rows.parquet")
    table = parquet.read_table(tmp_path / "columns.parquet")
    assert table.equals(parquet.read_table(tmp_path / "rows.parquet"))
    assert table.column("ndcg@3_reason").to_pylist() == [
        None,
        "ndcg@3 needs reference_context_ids, which the sample lacks",
        None,
        "no id is expected",
        None,
    ]


def test_where_the_samples_have_changed_the_values_are_left(tmp_path):
    evaluation = evaluate(as_parquet(tmp_path), METRICS, output=tmp_path / "run.parquet")
    os.utime(tmp_path / "in.parquet", (1, 1))
    run = Evaluation.load(tmp_path / "run.parquet")
    assert run.summary() == evaluation.summary()
    assert run.failures() == evaluation.failures()
    report = report_of(run)
    assert (report.worst, report.funnel) == ((), None)
    assert report.scores == report_of(Evaluation.load(tmp_path / "run.parquet")).scores
    (note,) = report.notes
    assert "in.parquet has changed since it was evaluated" in note
    with pytest.raises(InvalidArgumentError, match="has changed since it was evaluated"):
        run.worst("ndcg@3")
    (tmp_path / "in.parquet").unlink()
    assert "is gone since" in Evaluation.load(tmp_path / "run.parquet").unreadable


def same(one, other):
    return float(one == other)


@pytest.mark.parametrize(
    ("source", "metrics"),
    [
        pytest.param(lambda folder: ROWS, METRICS, id="no file"),
        pytest.param(as_jsonl, [ctxeval.NonLLMContextRecall(same, threshold=1)], id="own metric"),
        pytest.param(as_jsonl, [ctxeval.NonLLMContextRecall(threshold=0.9)], id="own threshold"),
        pytest.param(
            as_jsonl, [ctxeval.ContextRelevance(ScriptedLLM(lambda *_: True))], id="a model"
        ),
    ],
)
def test_what_cannot_be_scored_again_is_told(source, metrics, tmp_path):
    written = evaluate(source(tmp_path), metrics, output=tmp_path / "run.parquet")
    run = Evaluation.load(tmp_path / "run.parquet")
    assert run.summary() == written.summary()
    assert run.failures() == written.failures()
    assert report_of(run).notes == (run.unreadable,)
    with pytest.raises(InvalidArgumentError, match=r"values without samples .* to a .jsonl"):
        list(run.rows)


def test_where_rows_were_left_out_places_say_nothing(tmp_path):
    bad = []
    rows = [{**ROWS[0], "retrieved_context_ids": [""]}, *ROWS]
    path = as_jsonl(tmp_path, rows)
    evaluation = evaluate(path, METRICS, output=tmp_path / "run.parquet", on_bad=bad.append)
    assert len(bad) == 1
    assert not evaluation.readable
    assert not Evaluation.load(tmp_path / "run.parquet").readable


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(pa.table({"id": ["1"]}), id="another table"),
        pytest.param(
            pa.table({"id": ["1"]}).replace_schema_metadata({"ctxeval_run": "{"}), id="cut"
        ),
    ],
)
def test_what_is_no_run(table, tmp_path):
    parquet.write_table(table, tmp_path / "run.parquet")
    with pytest.raises(InvalidArgumentError, match="is no run of ctxeval"):
        Evaluation.load(tmp_path / "run.parquet")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidArgumentError, match="is no run of ctxeval"):
        Evaluation.load(tmp_path / "cut.parquet")


def test_a_run_of_another_version(tmp_path):
    table = pa.table({"id": ["1"]}).replace_schema_metadata({"ctxeval_run": '{"ctxeval_run": 9}'})
    parquet.write_table(table, tmp_path / "run.parquet")
    with pytest.raises(InvalidArgumentError, match="has format 9, this ctxeval reads 1"):
        Evaluation.load(tmp_path / "run.parquet")
