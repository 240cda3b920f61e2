"""The file that samples were read from, for when single ones are wanted once more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import stat
from pathlib import Path
from typing import Any

from ctxeval.record.reading import Samples, path_of, read_samples
from ctxeval.sample import Sample


@dataclass(frozen=True, slots=True)
class Origin:
    """A file of samples as it was.

    Attributes:
        path: Its absolute path.
        changed: When it was changed, in nanoseconds.
        size: How many bytes it has.
        metadata_columns: The columns that go to the samples' metadata.
    """

    path: Path
    changed: int
    size: int
    metadata_columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: Any) -> Origin | None:
        """Take the file that samples will be read from, if there is one."""
        path = path_of(source)
        if path is None or (isinstance(source, Samples) and source.begun):
            return None
        metadata = tuple(source.metadata_columns) if isinstance(source, Samples) else ()
        try:
            now = stat(path)
        except OSError:
            return None
        return cls(path.absolute(), now.st_mtime_ns, now.st_size, metadata)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Origin:
        """Read what `to_dict` wrote."""
        metadata = tuple(map(str, data["metadata_columns"]))
        return cls(Path(data["path"]), int(data["changed"]), int(data["size"]), metadata)

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, for JSON."""
        return {
            "path": str(self.path),
            "changed": self.changed,
            "size": self.size,
            "metadata_columns": list(self.metadata_columns),
        }

    def fault(self) -> str:
        """Say what became of the file; "" where it is still what it was."""
        try:
            now = stat(self.path)
        except OSError:
            return "is gone"
        same = (now.st_mtime_ns, now.st_size) == (self.changed, self.size)
        return "" if same else "has changed"

    def samples(self) -> Samples:
        """Read the samples again."""
        return read_samples(self.path, metadata_columns=self.metadata_columns)

    def samples_at(self, places: Sequence[int]) -> Iterator[Sample]:
        """Read those at these places, which are in ascending order."""
        wanted = set(places)
        for place, row in enumerate(self.samples().rows()):
            if place in wanted:
                yield row.sample()
            if place == places[-1]:
                return
