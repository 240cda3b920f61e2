"""References against an index as it is now: what is gone, and what lives elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxeval.errors import InvalidArgumentError, short
from ctxeval.fields import as_id
from ctxeval.record.query import Chunk, QueryRecord
from ctxeval.sample import Sample, Span


@dataclass(frozen=True, slots=True)
class Staleness:
    """What of some references no longer fits an index.

    Attributes:
        missing: By the reference's key, the expected ids that the index does not have.
        moved: By the reference's key, of those the ones whose text the index has under
            another id, with that id.
        checked: How many expected ids were looked up.
    """

    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    moved: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    checked: int = 0

    def __bool__(self) -> bool:
        """Is anything stale?"""
        return bool(self.missing)

    def __str__(self) -> str:
        """Say it in a line per reference."""
        n = sum(map(len, self.missing.values()))
        lines = [f"{n} of {self.checked} expected ids are not in the index"]
        for key, names in self.missing.items():
            told = [
                f"{name} (its text is now in {self.moved[key][name]})"
                if name in self.moved.get(key, {})
                else name
                for name in names
            ]
            lines.append(f"  {key}: {', '.join(told)}")
        return "\n".join(lines)


def index_of(index: Any) -> dict[str, str | None]:
    """Give the ids of an index with their texts, where they are known.

    Args:
        index: Ids; a mapping from id to text; chunks, documents or nodes (anything with an
            id and a text); or a store of captured records (anything with `records()`).

    Raises:
        InvalidArgumentError: It is none of these.
    """
    read: Callable[[], Iterable[QueryRecord]] | None = getattr(index, "records", None)
    if read is not None:
        stages = (stage for record in read() for stage in record.retrievals)
        return {chunk.id: chunk.text for stage in stages for chunk in stage.chunks}
    if isinstance(index, Mapping):
        return {as_id(name): text for name, text in index.items()}
    if isinstance(index, str) or not isinstance(index, Iterable):
        raise InvalidArgumentError(
            f"index: {short(index)} is none: give its ids, a mapping from id to text, or its chunks"
        )
    found: dict[str, str | None] = {}
    for item in index:
        name, text = _id_and_text(item)
        try:
            found[as_id(name)] = text
        except ValueError as error:
            raise InvalidArgumentError(f"index: {error}") from None
    return found


def _id_and_text(item: Any) -> tuple[Any, str | None]:
    for name in ("id", "node_id", "id_"):
        if hasattr(item, name):
            text = getattr(item, "text", None) or getattr(item, "page_content", None)
            return getattr(item, name), text if isinstance(text, str) else None
    return item, None


def staleness(references: Iterable[Sample], index: Any) -> Staleness:
    """Look the expected ids up in an index; see `References.check`."""
    known = index_of(index)
    by_text = {_folded(text): name for name, text in known.items() if text}
    missing: dict[str, tuple[str, ...]] = {}
    moved: dict[str, dict[str, str]] = {}
    checked = 0
    for sample in references:
        expected = list(sample.reference_context_ids or ())
        checked += len(expected)
        gone = tuple(name for name in expected if name not in known)
        if not gone:
            continue
        missing[sample.key] = gone
        texts = dict(zip(expected, sample.reference_contexts or (), strict=False))
        now = {name: by_text.get(_folded(texts[name])) for name in gone if name in texts}
        if found := {name: there for name, there in now.items() if there is not None}:
            moved[sample.key] = found
    return Staleness(missing, moved, checked)


def _folded(text: str) -> str:
    return " ".join(text.split())


def resolve_spans(
    samples: Iterable[Sample], chunks: Iterable[Chunk] | Mapping[Any, Span], min_overlap: int
) -> list[Sample]:
    """Turn expected places into ids of chunks; see `References.from_spans`."""
    places: dict[str, list[tuple[str, Span]]] = {}
    if isinstance(chunks, Mapping):
        pairs = [(as_id(name), span) for name, span in chunks.items()]
    else:
        pairs = [(chunk.id, chunk.span) for chunk in chunks if chunk.span is not None]
    for name, span in pairs:
        places.setdefault(span.document, []).append((name, span))
    resolved = []
    lost = []
    for sample in samples:
        ids = {
            name: None
            for expected in sample.reference_spans or ()
            for name, span in places.get(expected.document, ())
            if min(expected.end, span.end) - max(expected.start, span.start) >= min_overlap
        }
        if not ids:
            lost.append(sample.key)
        # The texts and places that were expected don't run in parallel to the chunks' ids.
        update = {"reference_context_ids": list(ids), "reference_contexts": None}
        fields = {**dict(sample), **update, "reference_spans": None}
        fields["metadata"] = {
            **sample.metadata,
            "reference_spans": [dict(span) for span in sample.reference_spans or ()],
        }
        resolved.append(Sample(**fields))
    if lost:
        raise InvalidArgumentError(
            f"reference_spans: no chunk holds the places expected by {', '.join(lost[:5])}"
            f"{' and others' if len(lost) > 5 else ''}: are the documents' ids and the chunks' "
            "spans those of the same texts?"
        )
    return resolved
