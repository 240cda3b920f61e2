"""What a lookup of expectations brings, and what a query's own metadata says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ctxeval.errors import InvalidSampleError
from ctxeval.sample import Sample


class Found(NamedTuple):
    """What a lookup brought.

    Attributes:
        sample: The expectation, None where none was found.
        reason: Why none was found; "" where one was.
    """

    sample: Sample | None
    reason: str = ""


_IN_METADATA = {
    "ctxeval_reference": "reference",
    "ctxeval_reference_ids": "reference_context_ids",
    "ctxeval_reference_contexts": "reference_contexts",
}

KEYS = ("ctxeval_id", *_IN_METADATA)
"""What a query's metadata may say to ctxeval."""


def unknown_in(metadata: Mapping[str, Any]) -> list[str]:
    """Give the metadata keys that look as if they were for ctxeval, and are none of `KEYS`."""
    return [key for key in metadata if key.startswith("ctxeval_") and key not in KEYS]


def expected_in(metadata: Mapping[str, Any]) -> Found | None:
    """Take what is expected from a query's own metadata.

    Args:
        metadata: What the application passed along; `ctxeval_reference`,
            `ctxeval_reference_ids` and `ctxeval_reference_contexts` count.

    Returns:
        The expectation, or why it can't be one; None where none of the keys is there.
    """
    fields = {field: metadata[key] for key, field in _IN_METADATA.items() if key in metadata}
    if not fields:
        return None
    try:
        return Found(Sample(**fields))
    except InvalidSampleError as error:
        return Found(None, f"the query's metadata is no reference: {error}")
