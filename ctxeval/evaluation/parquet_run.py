"""A run as a Parquet file: ids, values, statuses and reasons in columns, the rest in its footer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from ctxeval.errors import InvalidArgumentError, short
from ctxeval.evaluation.holding import VALUES_ALONE, Holder, Nowhere
from ctxeval.evaluation.origin import Origin
from ctxeval.evaluation.rows import FORMAT, Row, unfinished_of, unreadable
from ctxeval.evaluation.tables import whole
from ctxeval.evaluation.tallies import Tallies
from ctxeval.evaluation.tally import STATUSES, Tally
from ctxeval.extras import load
from ctxeval.naming import MetricSet
from ctxeval.verdicts import Usage

BATCH = 10_000
KEY = b"ctxeval_run"

COLUMNS = ("", "_status", "_reason")
"""What the names of a metric's columns end in: the value, the status, and why there is no value."""


class RunTable:
    """Writes a run; the file takes its name when it is finished.

    Args:
        path: The file.
        metrics: The metrics' names.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """

    def __init__(self, path: Path, metrics: Iterable[str]) -> None:
        """See the class."""
        self._pa = load("pyarrow", "writing a .parquet file", "arrow")
        parquet = load("pyarrow.parquet", "writing a .parquet file", "arrow")
        self._path = path
        schema = self._pa.schema([("id", self._pa.string())])
        for name in metrics:
            schema = schema.append(self._pa.field(name, self._pa.float64()))
            for end in COLUMNS[1:]:
                schema = schema.append(self._pa.field(f"{name}{end}", self._pa.string()))
        self._schema = schema
        self._writer = parquet.ParquetWriter(unfinished_of(path), schema)

    def write(self, ids: Sequence[str], columns: Iterable[Any]) -> None:
        """Write rows.

        Args:
            ids: Their ids.
            columns: For each metric the values, the statuses, and the reasons.
        """
        names = self._pa.array([whole(name) for name in ids], self._pa.string())
        table = self._pa.Table.from_arrays([names, *columns], schema=self._schema)
        self._writer.write_table(table)

    def finish(self, tallies: Tallies, chosen: MetricSet, origin: Origin | None) -> None:
        """Write the footer, and let the file take its name.

        Args:
            tallies: What is known of all rows.
            chosen: The metrics.
            origin: Where all samples can be had again, to be scored by the metrics' names; None
                where they can't.
        """
        told = {
            "ctxeval_run": FORMAT,
            "usage": asdict(tallies.usage),
            "metrics": {name: _told(tally) for name, tally in tallies.of.items()},
            "samples": origin and {**origin.to_dict(), "auto": chosen.auto},
        }
        self._writer.add_key_value_metadata({KEY.decode(): json.dumps(told)})
        self.close()
        unfinished_of(self._path).replace(self._path)

    def close(self) -> None:
        """Close the file, finished or not."""
        self._writer.close()


def _told(tally: Tally) -> dict[str, Any]:
    return {
        "signatures": list(tally.signatures),
        "low": tally.low,
        "high": tally.high,
        "repeated": tally.repeated,
        "flipped": tally.flipped,
    }


def write_table(
    path: Path, rows: Iterable[Row], chosen: MetricSet, origin: Callable[[], Origin | None]
) -> Tallies:
    """Write a run; a tenth of `write_run`'s file: verdicts and samples are left out.

    Args:
        path: The file.
        rows: The rows.
        chosen: The metrics.
        origin: Gives, when all rows are written, what `RunTable.finish` takes.

    Returns:
        What is known of the rows.

    Raises:
        MissingExtraError: pyarrow is not installed.
        InvalidArgumentError: A later row has a metric that the first ones have not.
    """
    pa = load("pyarrow", "writing a .parquet file", "arrow")
    tallies = Tallies([])
    table = None
    metrics: list[str] = []
    rows = iter(rows)
    try:
        while batch := list(islice(rows, BATCH)):
            if table is None:
                metrics = list(dict.fromkeys(name for row in batch for name in row.results))
                table = RunTable(path, metrics)
            _all_known(batch, metrics)
            columns = []
            for name in metrics:
                found = [row.results.get(name) for row in batch]
                columns.append(pa.array([one and one.value for one in found], pa.float64()))
                columns.append(pa.array([one and one.status for one in found], pa.string()))
                reasons = [(one and whole(one.reason)) or None for one in found]
                columns.append(pa.array(reasons, pa.string()))
            table.write([row.id for row in batch], columns)
            for row in batch:
                tallies.add(row)
        if table is not None:
            table.finish(tallies, chosen, origin())
    finally:
        if table is not None:
            table.close()
    return tallies


def _all_known(batch: Iterable[Row], metrics: Iterable[str]) -> None:
    """A table's columns are those of its first rows: what comes later must not be lost."""
    known = set(metrics)
    for row in batch:
        if new := row.results.keys() - known:
            raise InvalidArgumentError(
                f"output: sample {short(row.id)} has {sorted(new)[0]!r}, which the first "
                f"{BATCH} samples have not: name the metrics, or write .jsonl"
            )


def read_table(path: Path) -> tuple[Tallies, Holder]:
    """Read a run that `RunTable` wrote.

    Returns:
        What is known of its rows, and what scores single ones of them again.

    Raises:
        InvalidArgumentError: There is no such file, or it is no run.
    """
    pa = load("pyarrow", "reading a .parquet file", "arrow")
    parquet = load("pyarrow.parquet", "reading a .parquet file", "arrow")
    no_run = InvalidArgumentError(
        f"run: {path} is no run of ctxeval: give what evaluate(…, output=path) or "
        "ctxeval score -o wrote"
    )
    try:
        with path.open("rb") as binary, parquet.ParquetFile(binary) as file:
            told = json.loads((file.metadata.metadata or {}).get(KEY, b"{}"))
            if told.get("ctxeval_run") == FORMAT:
                return _read(file, told), _holder(told)
    except OSError as error:
        raise unreadable(path, error) from None
    except (pa.ArrowException, json.JSONDecodeError):
        raise no_run from None
    if "ctxeval_run" not in told:
        raise no_run
    raise InvalidArgumentError(
        f"run: {path} has format {told['ctxeval_run']}, this ctxeval reads {FORMAT}: "
        "bring it up to date"
    )


def _read(file: Any, told: Mapping[str, Any]) -> Tallies:
    tallies = Tallies([])
    tallies.usage = Usage(**told["usage"])
    for name, one in told["metrics"].items():
        tallies.of[name] = Tally(
            low=one["low"],
            high=one["high"],
            signatures=dict.fromkeys(one["signatures"]),
            repeated=one["repeated"],
            flipped=one["flipped"],
        )
    assert tallies.ids is not None
    for batch in file.iter_batches():
        tallies.ids.extend(batch.column("id").to_pylist())
        for name, tally in tallies.of.items():
            _add(tally, tallies.size, *(batch.column(f"{name}{end}") for end in COLUMNS))
        tallies.size += len(batch)
    return tallies


def _add(tally: Tally, first: int, values: Any, statuses: Any, reasons: Any) -> None:
    import numpy as np

    pa = load("pyarrow", "reading a .parquet file", "arrow")
    compute = load("pyarrow.compute", "reading a .parquet file", "arrow")
    codes = compute.index_in(statuses, pa.array(STATUSES)).fill_null(-1)
    codes = codes.to_numpy(zero_copy_only=False).astype(np.int8)
    tally.add_column(first, values.fill_null(0).to_numpy(zero_copy_only=False), codes, codes >= 0)
    for row in np.flatnonzero(codes > 0).tolist():
        tally.explain(first + row, STATUSES[codes[row]], reasons[row].as_py() or "")


def _holder(told: Mapping[str, Any]) -> Holder:
    from ctxeval.evaluation.columns.late import Late
    from ctxeval.evaluation.columns.opening import of_origin

    if told["samples"] is None:
        return Nowhere(VALUES_ALONE)
    origin = Origin.from_dict(told["samples"])
    if fault := origin.fault():
        return Nowhere(
            f"{origin.path} {fault} since it was evaluated, and queries are read from it: to see "
            "some, evaluate it again"
        )
    try:
        metrics = MetricSet(list(told["metrics"]))
    except InvalidArgumentError:  # a metric of the user's own
        return Nowhere(VALUES_ALONE)
    signed = {name: [metric.signature] for name, metric in metrics.by_name().items()}
    if signed != {name: one["signatures"] for name, one in told["metrics"].items()}:
        return Nowhere(VALUES_ALONE)
    return Late(of_origin(origin), MetricSet() if told["samples"]["auto"] else metrics)
