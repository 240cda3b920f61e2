"""Evaluate a table column by column, where that comes to what row by row would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from os import PathLike, stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxeval.errors import InvalidArgumentError, InvalidSampleError
from ctxeval.evaluation.evaluation import Evaluation, Later
from ctxeval.evaluation.rows import Row, unfinished_of
from ctxeval.evaluation.tally import Tally
from ctxeval.extras import load
from ctxeval.naming import MetricSet
from ctxeval.record.tables import arrow_batches
from ctxeval.sample import Sample

if TYPE_CHECKING:
    from ctxeval.evaluation.columns.scoring import TableScorer

Rows = Callable[[Any], Iterator[Row]]
"""Scores what was given row by row."""


def evaluate_columns(
    source: Any,
    metrics: MetricSet,
    rows: Rows,
    shown: Callable[[Iterator[int]], Iterator[int]],
    output: Path | None,
) -> Evaluation | None:
    """Evaluate a table.

    Args:
        source: Perhaps a Table of pyarrow, a DataFrame of pandas or polars, or the path of a
            Parquet file.
        metrics: The metrics.
        rows: For when single rows are asked for.
        shown: Shows how far it has come.
        output: The Parquet file that ids, values and statuses go to.

    Returns:
        None where it is to be done row by row: it is no such table, a metric knows no
        columns, or a cell is not plainly what it should be.
    """
    opened = None if metrics.calls_model else _opened(source)
    if opened is None or (metrics.auto and output is not None):
        return None
    names, batches, again = opened

    from ctxeval.evaluation.columns.formulas import formula_of
    from ctxeval.evaluation.columns.joining import chosen_for
    from ctxeval.evaluation.columns.scoring import TableScorer
    from ctxeval.evaluation.columns.texts import by_text

    chosen = chosen_for(names, metrics)
    if not all(formula_of(metric) is not None or by_text(metric) for metric in chosen):
        return None
    scorer = TableScorer(chosen, "samples", raising=True)
    run = _Run(scorer, skipped=not metrics.auto)
    try:
        with ExitStack() as files:
            if output is not None:
                run.write_to(output, files)
            for _ in shown(run.numbers(batches)):
                pass
    except (_NotPlain, InvalidSampleError, load("pyarrow", "a table", "arrow").ArrowException):
        return None
    if not run.size:
        return None
    if output is not None:
        unfinished_of(output).replace(output)
    tallies = run.tallies
    for metric in chosen:
        tallies[metric.name].signatures[metric.signature] = None
    if metrics.auto:  # as they come up row by row
        there = [entry for entry in tallies.items() if len(entry[1].rows)]
        tallies = dict(sorted(there, key=lambda entry: entry[1].rows[0]))
    return Evaluation.of_columns(tallies, Later(run.size, run.ids, lambda: rows(again())), output)


class _NotPlain(Exception):
    """A batch is to be read row by row."""


class _Run:
    """The batches that have been scored."""

    def __init__(self, scorer: TableScorer, *, skipped: bool) -> None:
        """Begin with none; are skipped results counted?"""
        self._scorer = scorer
        self._skipped = skipped
        self._write: Callable[[list[str], list[Any]], None] | None = None
        self.tallies = {name: Tally() for name in scorer.names}
        self.ids: list[str] | None = []
        self.size = 0

    def write_to(self, output: Path, files: ExitStack) -> None:
        """Write ids, values and statuses, too."""
        pa = load("pyarrow", "writing a .parquet file", "arrow")
        parquet = load("pyarrow.parquet", "writing a .parquet file", "arrow")
        schema = pa.schema([("id", pa.string())])
        for name in self._scorer.names:
            schema = schema.append(pa.field(name, pa.float64()))
            schema = schema.append(pa.field(f"{name}_status", pa.string()))
        writer = files.enter_context(parquet.ParquetWriter(unfinished_of(output), schema))

        def write(ids: list[str], columns: list[Any]) -> None:
            writer.write_table(
                pa.Table.from_arrays([pa.array(ids, pa.string()), *columns], schema=schema)
            )

        self._write = write

    def numbers(self, batches: Iterable[Any]) -> Iterator[int]:
        """Score batches, and give the number of each row that is done."""
        from ctxeval.evaluation.columns.joining import arrays, joined, joined_batches, scores_of
        from ctxeval.evaluation.columns.reading import is_plain

        for batch in joined_batches(batches):
            if not is_plain(batch):
                raise _NotPlain
            columns = joined(self._scorer, scores_of(batch, self._scorer, self.size))
            ids = _ids(batch, hashed=self._write is not None)
            self.ids = None if self.ids is None or ids is None else self.ids + ids
            if self._write is not None and ids is not None:
                self._write(ids, arrays(columns))
            for tally, (values, codes) in zip(self.tallies.values(), columns, strict=True):
                tally.add_column(self.size, values, codes, skipped=self._skipped)
            yield from range(self.size, self.size + len(batch))
            self.size += len(batch)


def _ids(batch: Any, *, hashed: bool) -> list[str] | None:
    """Give the rows' ids; None where some have none, unless the hashes are worth their time."""
    from ctxeval.evaluation.columns.reading import plain_ids, samples

    pa = load("pyarrow", "a table", "arrow")
    if "id" in batch.schema.names:
        ids = plain_ids(batch.column("id"))
        if ids is not None and not ids.null_count:
            named: list[str] = ids.cast(pa.string()).to_pylist()
            return named
    if not hashed:
        return None
    return [sample.key for sample in samples(batch, "samples", 0) if isinstance(sample, Sample)]


def _opened(source: Any) -> tuple[list[str], Iterator[Any], Callable[[], Any]] | None:
    """Give a table's columns, its batches, and what gives the same table again."""
    if find_spec("pyarrow") is None:
        return None
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        return _of_file(path) if path.suffix.lower() == ".parquet" else None
    if hasattr(source, "itertuples"):
        return _of_pandas(source)
    if hasattr(source, "iter_rows") and hasattr(source, "to_arrow"):
        return _of_polars(source)
    if not hasattr(source, "column_names"):  # what is read only once, and data sets
        return None
    batches = arrow_batches(source)
    return None if batches is None else (source.schema.names, iter(batches), lambda: source)


def _of_polars(frame: Any) -> tuple[list[str], Iterator[Any], Callable[[], Any]] | None:
    polars = load("polars", "a table", "arrow")
    if any(isinstance(kind, polars.Object) for kind in frame.dtypes):
        return None
    try:
        table = frame.to_arrow()
    except (load("pyarrow", "a table", "arrow").ArrowException, polars.exceptions.PolarsError):
        return None  # of a type that Arrow lacks
    return table.schema.names, iter(table.to_batches()), lambda: frame


def _of_pandas(frame: Any) -> tuple[list[str], Iterator[Any], Callable[[], Any]] | None:
    pa = load("pyarrow", "a table", "arrow")
    if any(name is not None for name in frame.index.names):
        return None
    try:
        names = list(frame.columns)
        arrays = [pa.array(frame[name], from_pandas=True) for name in names]
        table = pa.Table.from_arrays(arrays, names=names)
    except (pa.ArrowException, TypeError, ValueError):  # cells or names of no one type
        return None
    kept = frame.copy()  # rows that are asked for later are those of now
    return names, iter(table.to_batches()), lambda: kept


def _of_file(path: Path) -> tuple[list[str], Iterator[Any], Callable[[], Any]] | None:
    pa = load("pyarrow", "a table", "arrow")
    parquet = load("pyarrow.parquet", "a table", "arrow")
    try:
        before = stat(path)
        file = parquet.ParquetFile(path)
    except (OSError, pa.ArrowException):
        return None

    def again() -> Path:
        try:
            now = stat(path)
        except OSError:
            now = None
        if now is None or (now.st_mtime_ns, now.st_size) != (before.st_mtime_ns, before.st_size):
            what = "is gone" if now is None else "has changed"
            raise InvalidArgumentError(
                f"samples: {path} {what} since it was evaluated, and single "
                "rows are read from it: evaluate it again"
            )
        return path

    def batches() -> Iterator[Any]:
        with file:
            yield from file.iter_batches()

    return file.schema_arrow.names, batches(), again
