"""One sample's results, and where many of them are kept."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ctxeval.errors import InvalidArgumentError, InvalidSampleError, short
from ctxeval.extras import load
from ctxeval.record.query import Retrieval
from ctxeval.result import MetricResult, results_from_dict, results_to_dict
from ctxeval.sample import Sample

TABLE_BATCH = 10_000

FORMAT = 1
"""The version of the files that `write_run` makes."""


@dataclass(frozen=True, slots=True)
class Row:
    """One sample's results.

    Attributes:
        id: The sample's `key`.
        sample: The sample.
        results: Its results, by the metric's name.
        stages: Where it was captured, every retrieval inside of the query, as
            `QueryRecord.stages` gives them, with their own scores.
    """

    id: str
    sample: Sample
    results: Mapping[str, MetricResult] = field(default_factory=dict)
    stages: tuple[Retrieval, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, for JSON."""
        data: dict[str, Any] = {
            "id": self.id,
            "sample": self.sample.model_dump(exclude_defaults=True),
            "results": results_to_dict(self.results),
        }
        if self.stages:
            data["stages"] = [stage.to_dict() for stage in self.stages]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Row:
        """Read what `to_dict` wrote."""
        results = results_from_dict(data["results"])
        stages = tuple(Retrieval.from_dict(stage) for stage in data.get("stages", ()))
        return cls(data["id"], Sample(**data["sample"]), results, stages)


def write_run(path: Path, rows: Iterable[Row]) -> Iterator[Row]:
    """Write rows to a file while passing them on, one JSON object a line.

    The file takes its name only when all rows are in it.

    Args:
        path: The file.
        rows: The rows.
    """
    unfinished = path.with_name(f"{path.name}.unfinished")
    with unfinished.open("w", encoding="utf-8") as lines:
        lines.write(json.dumps({"ctxeval_run": FORMAT}) + "\n")
        for row in rows:
            lines.write(json_line(row.to_dict()))
            yield row
    unfinished.replace(path)


def json_line(data: Mapping[str, Any]) -> str:
    """Write plain data as a line of JSON that UTF-8 can hold."""
    line = json.dumps(data, ensure_ascii=False, default=str) + "\n"
    try:
        line.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as broken texts have it
        line = json.dumps(data, default=str) + "\n"
    return line


def write_table(path: Path, rows: Iterable[Row]) -> Iterator[Row]:
    """Write ids, values and statuses to a Parquet file while passing the rows on.

    A tenth of `write_run`'s file; verdicts and samples are left out.

    Args:
        path: The file.
        rows: The rows.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    pa = load("pyarrow", "writing a .parquet file", "arrow")
    parquet = load("pyarrow.parquet", "writing a .parquet file", "arrow")
    unfinished = path.with_name(f"{path.name}.unfinished")
    writer = None
    metrics: list[str] = []
    rows = iter(rows)
    try:
        while batch := list(islice(rows, TABLE_BATCH)):
            if writer is None:
                metrics = list(dict.fromkeys(name for row in batch for name in row.results))
            _all_known(batch, metrics)
            columns: dict[str, Any] = {"id": pa.array([row.id for row in batch], pa.string())}
            for name in metrics:
                results = [row.results.get(name) for row in batch]
                values = [one.value if one else None for one in results]
                columns[name] = pa.array(values, pa.float64())
                statuses = [one.status if one else None for one in results]
                columns[f"{name}_status"] = pa.array(statuses, pa.string())
            table = pa.table(columns)
            if writer is None:
                writer = parquet.ParquetWriter(unfinished, table.schema)
            writer.write_table(table)
            yield from batch
    finally:
        if writer is not None:
            writer.close()
    if writer is not None:
        unfinished.replace(path)


def _all_known(batch: Iterable[Row], metrics: Iterable[str]) -> None:
    """A table's columns are those of its first rows: what comes later must not be lost."""
    known = set(metrics)
    for row in batch:
        if new := row.results.keys() - known:
            raise InvalidArgumentError(
                f"output: sample {short(row.id)} has {sorted(new)[0]!r}, which the first "
                f"{TABLE_BATCH} samples have not: name the metrics, or write .jsonl"
            )


def read_run(path: Path, ids: Container[str] | None = None) -> Iterator[Row]:
    """Read the rows of a file that `write_run` made, one by one.

    Args:
        path: The file.
        ids: The rows that are wanted; None: all of them.

    Raises:
        InvalidArgumentError: There is no such file, or it is none of these.
        InvalidSampleError: A line is broken; the message names it.
    """
    if path.suffix == ".parquet":
        raise InvalidArgumentError(
            f"run: {path} holds values without verdicts and samples: write a .jsonl to read it back"
        )
    try:
        lines = path.open(encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(f"run: {path} cannot be read: {error.strerror}") from None
    with lines:
        _check_header(path, lines.readline())
        for number, line in enumerate(lines, start=2):
            try:
                if ids is None or _id_of(line) in ids:
                    yield Row.from_dict(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidSampleError(
                    f"{path}, line {number}: no row of a run: {error}"
                ) from None


def _id_of(line: str) -> str:
    """Read a row's id without reading the row: it stands first."""
    if not line.startswith('{"id": "'):
        return str(json.loads(line)["id"])
    name, _ = json.JSONDecoder().raw_decode(line, len('{"id": '))
    return str(name)


def _check_header(path: Path, line: str) -> None:
    try:
        version = json.loads(line)["ctxeval_run"]
    except (ValueError, KeyError, TypeError):
        raise InvalidArgumentError(
            f"run: {path} is no run of ctxeval: give what evaluate(…).save(path) or "
            "ctxeval score -o wrote"
        ) from None
    if version != FORMAT:
        raise InvalidArgumentError(
            f"run: {path} has format {version}, this ctxeval reads {FORMAT}: bring it up to date"
        )
