"""As tables, results lose nothing: no column, no key, no broken text."""

import pytest

pytest.importorskip("pyarrow")

from ctxeval import Evaluation, InvalidArgumentError, evaluate
from ctxeval.evaluation.rows import Row
from ctxeval.result import MetricResult
from ctxeval.sample import Sample


def evaluation(*metadata):
    return Evaluation(
        Row(
            str(n),
            Sample(id=n, user_input="q", metadata=one),
            {"m": MetricResult(0.5, metric="m")},
        )
        for n, one in enumerate(metadata)
    )


def test_columns_that_only_later_rows_have():
    table = evaluation({}, {"topic": "tax"}).to_arrow()
    assert table.column("topic").to_pylist() == [None, "tax"]


def test_values_of_several_kinds_become_json():
    table = evaluation({"x": 1}, {"x": "one"}, {"x": [1, "two"]}, {}).to_arrow()
    assert table.column("x").to_pylist() == ["1", "one", '[1, "two"]', None]
    assert evaluation({"x": 2**70}, {"x": 1}).to_arrow().column("x").to_pylist()[1] == "1"


def test_metadata_does_not_stand_in_for_a_column():
    (row,) = evaluation({"id": "x", "m": 9, "m_status": "y", "user_input": "z"}).to_dicts()
    assert (row["id"], row["user_input"], row["m"], row["m_status"]) == ("0", "q", 0.5, "scored")
    own = [row[f"metadata.{key}"] for key in ("id", "m", "m_status", "user_input")]
    assert own == ["x", 9, "y", "z"]


def test_half_of_a_surrogate_pair_is_escaped():
    broken = evaluation({"\ud800": ["\udfff", {"k": "a\ud83d"}], "whole": "\U0001f600"})
    (row,) = broken.to_arrow().to_pylist()
    assert row["\\ud800"] == '["\\\\udfff", {"k": "a\\\\ud83d"}]'
    assert row["whole"] == "\U0001f600"
    pytest.importorskip("pandas")
    assert broken.to_pandas().loc[0, "\\ud800"] == ["\\udfff", {"k": "a\\ud83d"}]


SAMPLES = [
    {
        "id": n,
        "retrieved_context_ids": ["a"],
        "reference_context_ids": ["a" if n % 2 else "b"],
        "metadata": {"topic": "xy"[n % 2]} if n < 4 else {},
    }
    for n in range(6)
]


def test_groups_need_a_key_that_is_there():
    pytest.importorskip("scipy")
    found = evaluate(SAMPLES, ["hit_rate@1"])
    assert {name: len(one) for name, one in found.groups("topic").items()} == {
        "x": 2,
        "y": 2,
        None: 2,
    }
    for ask in (lambda: found.groups("topics"), lambda: found.summary(clusters="topics")):
        with pytest.raises(InvalidArgumentError, match="the key 'topics': did you mean 'topic'"):
            ask()


def test_what_has_no_cluster_depends_on_nothing():
    pytest.importorskip("scipy")
    samples = [{**SAMPLES[n % 2], "id": n, "metadata": {}} for n in range(30)]
    found = evaluate(
        [{**one, "metadata": {"topic": "x"}} for one in samples[:6]] + samples[6:], ["hit_rate@1"]
    )
    (by_key,) = found.summary(clusters="topic")
    (by_hand,) = found.summary(clusters=lambda row: "x" if int(row.id) < 6 else row.id)
    (in_one,) = found.summary(clusters=lambda row: "x" if int(row.id) < 6 else "none")
    assert by_key == by_hand
    assert by_key.interval != in_one.interval


@pytest.mark.parametrize("bad", [5, None, b"x"])
def test_what_is_no_run(bad):
    with pytest.raises(InvalidArgumentError, match=r"run: .* is no"):
        Evaluation.load(bad)
    with pytest.raises(InvalidArgumentError, match=r"run: .* is no Evaluation"):
        Evaluation.of(bad)


def test_a_file_that_cannot_be_written(tmp_path):
    made = evaluation({})
    for path in (tmp_path, tmp_path / "no" / "run.jsonl", tmp_path / "run.parquet"):
        with pytest.raises(InvalidArgumentError, match="cannot be written: "):
            made.save(path)
    with pytest.raises(InvalidArgumentError, match="cannot be written: "):
        made.to_jsonl(tmp_path)


def test_what_is_no_sample_is_told_of_and_left_out():
    told = []
    found = evaluate([SAMPLES[0], 5, None, SAMPLES[1]], ["hit_rate@1"], on_bad=told.append)
    assert found.ids == ["0", "1"]
    assert [str(error).split(" ", 1)[0] for error in told] == ["samples[1]:", "samples[2]:"]


def test_what_keeps_no_verdicts_is_no_store():
    with pytest.raises(InvalidArgumentError, match="store: 5 keeps no verdicts"):
        evaluate(SAMPLES, ["hit_rate@1"], store=5)
