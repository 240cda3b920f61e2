"""Expected places in documents, resolved to the chunks of an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ctxeval.fields import as_id
from ctxeval.record.query import Chunk
from ctxeval.sample import Sample, Span

Lost = dict[str, tuple[Span, ...]]
"""The places that no chunk holds, by the sample's key."""


def resolve_spans(
    samples: Iterable[Sample], chunks: Iterable[Chunk] | Mapping[Any, Span], min_overlap: int
) -> tuple[list[Sample], Lost]:
    """Put the ids of chunks beside expected places; see `References.from_spans`."""
    held: dict[str, list[tuple[str, Span]]] = {}
    if isinstance(chunks, Mapping):
        pairs = [(as_id(name), span) for name, span in chunks.items()]
    else:
        pairs = [(chunk.id, chunk.span) for chunk in chunks if chunk.span is not None]
    for name, span in pairs:
        held.setdefault(span.document, []).append((name, span))
    resolved = []
    lost: Lost = {}
    for sample in samples:
        ids: dict[str, None] = {}
        unheld = []
        for expected in sample.reference_spans or ():
            holding = [
                name
                for name, span in held.get(expected.document, ())
                if min(expected.end, span.end) - max(expected.start, span.start) >= min_overlap
            ]
            ids.update(dict.fromkeys(holding))
            if not holding:
                unheld.append(expected)
        if unheld:
            lost[sample.key] = tuple(unheld)
        # The texts that were expected don't run in parallel to the chunks' ids.
        resolved.append(
            sample.model_copy(
                update={
                    "reference_context_ids": list(ids) or None,
                    "reference_contexts": None,
                }
            )
            if sample.reference_spans
            else sample
        )
    return resolved, lost


def told_of_lost(lost: Lost) -> str:
    """Say which places no chunk holds, and why that may be."""
    n = sum(map(len, lost.values()))
    names = ", ".join(list(lost)[:5]) + (" and others" if len(lost) > 5 else "")
    return (
        f"reference_spans: no chunk holds {n} of the places, expected by {names}: "
        "are the documents' ids and the chunks' spans those of the same texts?"
    )
