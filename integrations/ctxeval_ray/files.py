"""Files of Parquet, scored on the command line's behalf."""
# pyright: reportMissingImports=false

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Collection, Iterator
from glob import glob
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import ray
from ray import data
from ray.exceptions import RayError

from ctxeval import (
    LLM,
    Evaluation,
    InvalidArgumentError,
    InvalidSampleError,
    MetricResult,
    Metrics,
    Row,
    Sample,
)
from ctxeval_ray.dataset import score_dataset

_REASONS = {
    "undefined": "nothing is expected",
    "failed": "the row is no sample: without --skip-bad its error is told",
    "skipped": "a field that the metric needs is missing",
}
"""Why there is no value, where a metric that asks no model does not say so itself."""

_OURS = re.compile(r"^ctxeval\.errors\.\w+: (.+)$", re.MULTILINE)


def score_files(
    files: str,
    metrics: Metrics,
    *,
    llm: LLM | None = None,
    concurrency: int = 16,
    store: str | None = None,
    output: Path | None = None,
    errors: Literal["raise", "status"] = "raise",
) -> Evaluation:
    """Score files of Parquet on Ray: the cluster of RAY_ADDRESS, or this machine's processors.

    Args:
        files: A path, a folder, or a pattern; or an address that Ray reads, a bucket's folder say.
        metrics: As of `score_dataset`, like the others.
        llm: The model.
        concurrency: How many calls to it are under way at most.
        store: Where its verdicts are kept.
        output: A folder that the rows with their scores go to, as files of Parquet.
        errors: What a row does that is no sample.

    Returns:
        The values and statuses, without samples and verdicts.

    Raises:
        InvalidArgumentError: As of `score_dataset`; or there is something at the output.
        InvalidSampleError: A row is no sample, or there are no such files.
    """
    if output is not None and output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InvalidArgumentError(f"output: there is something at {output}: give a new folder")
    if output is not None and output.suffix in (".jsonl", ".json", ".csv"):
        raise InvalidArgumentError(
            f"output: {output} would be a folder of Parquet files: give it the name of one"
        )
    found = [files] if "://" in files else sorted(glob(files, recursive=True))
    if not found:
        raise InvalidSampleError(f"{files}: there are no such files ({Path(files).absolute()})")
    started = not ray.is_initialized()
    if started:
        _start()
    try:
        read = data.read_parquet(found)
        given = read.schema().names
        scored = score_dataset(
            read,
            metrics,
            llm=llm,
            concurrency=concurrency,
            store=store,
            errors=errors,
        )
        if output is not None:
            scored.write_parquet(str(output.absolute()))
            scored = data.read_parquet(str(output.absolute()))
        return Evaluation(_rows(scored, given), output or Path("scores.parquet"))
    except (RayError, pa.ArrowException) as error:
        said = _OURS.findall(str(error))
        if said:
            raise InvalidSampleError(f"{files}: {said[-1]}") from None
        cause = getattr(error, "cause", error)
        if not isinstance(cause, pa.ArrowException):
            raise
        raise InvalidSampleError(
            f"{files}: they can't be read together: {cause}: give files of Parquet, each column "
            "of one type"
        ) from None
    finally:
        if started:
            ray.shutdown()


def _start() -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    here: dict[str, Any] = {"include_dashboard": False}
    ray.init(
        log_to_driver=False, logging_level="ERROR", **({} if "RAY_ADDRESS" in os.environ else here)
    )
    data.DataContext.get_current().enable_progress_bars = sys.stderr.isatty()


def _rows(scored: data.Dataset, given: Collection[str]) -> Iterator[Row]:
    """Give what a summary needs, batch by batch; of the given columns the ids alone."""
    number = 0
    for batch in scored.iter_batches(batch_format="pyarrow", batch_size=None):
        names = batch.column_names
        metrics = [n for n in names if n not in given and f"{n}_status" in names]
        kept = [f"{name}{end}" for name in metrics for end in ("", "_status", "_reason")]
        for row in batch.select([n for n in ("id", *kept) if n in names]).to_pylist():
            key = number if row.get("id") in (None, "") else row["id"]
            results = {name: _result(name, row) for name in metrics}
            yield Row(str(key), Sample(id=key), results)
            number += 1


def _result(name: str, row: dict[str, Any]) -> MetricResult:
    status = row[f"{name}_status"]
    reason = row.get(f"{name}_reason") or _REASONS.get(status, "")
    return MetricResult(row[name], status, reason, metric=name)
