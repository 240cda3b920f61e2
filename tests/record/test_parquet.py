"""Parquet files whose rows are too large to be read as many at once."""

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

import ctxeval
from ctxeval.evaluation.columns import joining
from ctxeval.record import parquet
from ctxeval.record.parquet import parquet_batches


def written(path, rows=3000, group=1000):
    """Texts that recur, so that the file holds each but once."""
    texts = [["some words " * 20, "others " * 30]] * rows
    ids = [[n, n + 1] for n in range(rows)]
    columns = {"retrieved_context_ids": ids, "retrieved_contexts": texts}
    table = pa.table({**columns, "reference_context_ids": [[1]] * rows})
    pq.write_table(table, path, row_group_size=group)
    return table


def test_large_rows_are_read_a_few_at_once(tmp_path, monkeypatch):
    """Else Arrow refuses 2 GB of text in one batch, as if the file were none."""
    table = written(tmp_path / "samples.parquet")
    monkeypatch.setattr(parquet, "BYTES", 100_000)
    with pq.ParquetFile(tmp_path / "samples.parquet") as file:
        assert file.metadata.row_group(0).total_byte_size < 50_000
        batches = list(parquet_batches(file))
        assert pa.Table.from_batches(batches).equals(table)
        assert max(batch.nbytes for batch in batches) < 200_000
        (of_group,) = {
            batch.column(0)[0].as_py()[0] // 1000 for batch in parquet_batches(file, [1])
        }
        assert of_group == 1
    read = ctxeval.read_samples(tmp_path / "samples.parquet")
    assert [sample.retrieved_context_ids[0] for sample in read] == [str(n) for n in range(3000)]
    evaluation = ctxeval.evaluate(tmp_path / "samples.parquet", "hit_rate@1")
    assert evaluation.rows[2999].sample.retrieved_context_ids == ("2999", "3000")


def test_large_batches_are_not_joined(monkeypatch):
    batches = pa.table({"x": ["word " * 100] * 50}).to_batches(max_chunksize=10)
    assert [len(batch) for batch in joining.joined_batches(batches)] == [50]
    monkeypatch.setattr(joining, "BYTES", 8_000)
    assert [len(batch) for batch in joining.joined_batches(batches)] == [20, 20, 10]


def test_small_rows_are_read_many_at_once(tmp_path):
    pq.write_table(pa.table({"x": range(100_000)}), tmp_path / "x.parquet")
    with pq.ParquetFile(tmp_path / "x.parquet") as file:
        assert [len(batch) for batch in parquet_batches(file)] == [parquet.ROWS, 34_464]


def test_coded_ids_of_several_row_groups(tmp_path):
    """Which Arrow does not read as one batch."""
    ids = pa.array([["a", "b"], ["c"]] * 4, pa.list_(pa.dictionary(pa.int32(), pa.string())))
    table = pa.table({"retrieved_context_ids": ids, "reference_context_ids": [["c"]] * 8})
    pq.write_table(table, tmp_path / "samples.parquet", row_group_size=3)
    evaluation = ctxeval.evaluate(tmp_path / "samples.parquet", "hit_rate@1")
    assert evaluation.summary()[0].interval.mean == 0.5
    assert evaluation.rows[7].results["hit_rate@1"].value == 1
