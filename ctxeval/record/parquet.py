"""Batches of Parquet files, as large as their rows allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

ROWS = 2**16
"""How many rows are read at once, at most."""

BYTES = 2**26
"""How many bytes are read at once, roughly: Arrow refuses lists with 2 GB of text in one batch."""

TRIED = 2**7
"""So many rows are read to see how large they are: a file writes recurring texts only once."""


def parquet_batches(file: Any, groups: Iterable[int] | None = None) -> Iterator[Any]:
    """Go through record batches.

    Args:
        file: A ParquetFile of pyarrow.
        groups: The numbers of the row groups; None: all.
    """
    widest = 1.0
    for group in range(file.num_row_groups) if groups is None else groups:
        of_group = file.metadata.row_group(group)
        widest = max(widest, of_group.total_byte_size / max(of_group.num_rows, 1))
        if of_group.num_rows > TRIED:
            first = next(file.iter_batches(batch_size=TRIED, row_groups=[group]))
            widest = max(widest, first.nbytes / max(len(first), 1))
        at_once = max(1, min(ROWS, int(BYTES / widest)))
        for batch in file.iter_batches(batch_size=at_once, row_groups=[group]):
            widest = max(widest, batch.nbytes / max(len(batch), 1))
            yield batch
