"""One sample's results, and where many of them are kept."""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, get_args

from ctxeval.errors import InvalidArgumentError, InvalidSampleError, short
from ctxeval.record.query import Retrieval
from ctxeval.result import MetricResult, Status, results_from_dict, results_to_dict
from ctxeval.sample import Sample

UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What plain data raises that was changed since it was written."""

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
        for result in results.values():
            _check(result)
        stages = tuple(Retrieval.from_dict(stage) for stage in data.get("stages", ()))
        if not isinstance(data["id"], str):
            raise TypeError(f"id: {short(data['id'])} is no text")
        return cls(data["id"], Sample(**data["sample"]), results, stages)


def _check(result: MetricResult) -> None:
    """See that a result was not changed since it was written, as far as that shows."""
    for said in (result.metric, result.reason, result.signature):
        if not isinstance(said, str):
            raise TypeError(f"{short(said)} is no text")
    value = result.value
    scored = isinstance(value, (int, float)) and 0 <= value <= 1
    if result.status not in get_args(Status) or scored != (result.status == "scored"):
        raise ValueError(f"{short(value)} and {short(result.status)} are no result")


def write_run(path: Path, rows: Iterable[Row]) -> Iterator[Row]:
    """Write rows to a file while passing them on, one JSON object a line.

    The file takes its name only when all rows are in it.

    Args:
        path: The file.
        rows: The rows.
    """
    unfinished = unfinished_of(path)
    written = False
    try:
        with unfinished.open("w", encoding="utf-8") as lines:
            lines.write(json.dumps({"ctxeval_run": FORMAT}) + "\n")
            for row in rows:
                lines.write(json_line(row.to_dict()))
                written = True
                yield row
    except BaseException:
        if not written:  # of a run that never began nothing is left
            unfinished.unlink(missing_ok=True)
        raise
    unfinished.replace(path)


def unfinished_of(path: Path) -> Path:
    """Give the name of a file that is still being written."""
    return path.with_name(f"{path.name}.unfinished")


def run_path(
    path: str | PathLike[str], argument: str, suffixes: Collection[str], what: str = "run"
) -> Path:
    """Take the path of a file to write.

    Args:
        path: The path.
        argument: What the user calls it.
        suffixes: Those that it may have.
        what: What is written.

    Raises:
        InvalidArgumentError: It is no path, has another suffix, or can't be written.
    """
    if not isinstance(path, (str, PathLike)):
        raise InvalidArgumentError(f"{argument}: {short(path)} is no path")
    path = Path(path)
    why = ""
    if path.is_dir():
        why = "it is a directory"
    elif not path.absolute().parent.is_dir():
        why = "its directory does not exist"
    elif path.suffix not in suffixes:
        why = f"{path.suffix!r} is no suffix of a {what}: give {' or '.join(suffixes)}"
    if why:
        raise InvalidArgumentError(f"{argument}: {short(str(path))} cannot be written: {why}")
    return path


def json_line(data: Any) -> str:
    """Write plain data as a line of JSON that UTF-8 can hold."""
    line = json.dumps(data, ensure_ascii=False, default=str) + "\n"
    try:
        line.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as broken texts have it
        line = json.dumps(data, default=str) + "\n"
    return line


def read_run(path: Path, places: Container[int] | None = None) -> Iterator[Row]:
    """Read the rows of a file that `write_run` made, one by one.

    Args:
        path: The file.
        places: The rows that are wanted, counted from 0; None: all of them.

    Raises:
        InvalidArgumentError: There is no such file, or it is none of these.
        InvalidSampleError: A line is broken; the message names it.
    """
    try:
        lines = path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from None
    with lines:
        _check_header(path, lines.readline())
        for place, line in enumerate(lines):
            if places is not None and place not in places:
                continue
            try:
                row = Row.from_dict(json.loads(line.decode()))
            except UNREADABLE as error:
                raise InvalidSampleError(
                    f"{path}, line {place + 2}: no row of a run: {error}"
                ) from None
            yield row


def unreadable(path: Path, error: OSError) -> InvalidArgumentError:
    """Say that a run's file can't be read."""
    return InvalidArgumentError(
        f"run: {path} cannot be read: {error.strerror}: give a file that `ctxeval score -o`, "
        f"evaluate(output=) or Evaluation.save wrote ({path.absolute()})"
    )


def _check_header(path: Path, line: bytes) -> None:
    try:
        version = json.loads(line)["ctxeval_run"]
    except UNREADABLE:
        raise InvalidArgumentError(
            f"run: {path} is no run of ctxeval: give what evaluate(…).save(path) or "
            "ctxeval score -o wrote"
        ) from None
    if version != FORMAT:
        raise InvalidArgumentError(
            f"run: {path} has format {version}, this ctxeval reads {FORMAT}: bring it up to date"
        )
