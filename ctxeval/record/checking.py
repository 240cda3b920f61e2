"""References against an index as it is now: what is gone, and what lives elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxeval.record.index import look_up
from ctxeval.sample import Sample


@dataclass(frozen=True, slots=True)
class Staleness:
    """What of some references no longer fits an index.

    Attributes:
        missing: By the reference's key, the expected ids that the index does not have.
        moved: By the reference's key, of those the ones whose text the index has under
            another id, with that id.
        checked: How many expected ids were looked up.
        unseen: By the reference's key, the expected ids that a retriever did not bring and
            whose texts are not known, so that nothing can be said of them.
    """

    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    moved: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    checked: int = 0
    unseen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
        if self.unseen:
            n = sum(map(len, self.unseen.values()))
            lines.append(
                f"{n} did not come from the retriever, which may yet have them: "
                "give their reference_contexts, or the index's ids"
            )
            lines += [f"  {key}: {', '.join(names)}" for key, names in self.unseen.items()]
        return "\n".join(lines)


def staleness(references: Iterable[Sample], index: Any) -> Staleness:
    """Look the expected ids up in an index; see `References.check`."""
    samples = list(references)
    known, whole = look_up(index, samples)
    by_text = {_folded(text): name for name, text in known.items() if text}
    missing: dict[str, tuple[str, ...]] = {}
    moved: dict[str, dict[str, str]] = {}
    unseen: dict[str, tuple[str, ...]] = {}
    checked = 0
    for sample in samples:
        expected = list(sample.reference_context_ids or ())
        checked += len(expected)
        texts = dict(zip(expected, sample.reference_contexts or (), strict=False))
        gone = [name for name in expected if name not in known]
        unknown = () if whole else tuple(name for name in gone if name not in texts)
        if unknown:
            unseen[sample.key] = unknown
        if gone := [name for name in gone if name not in unknown]:
            missing[sample.key] = tuple(gone)
        now = {name: by_text.get(_folded(texts[name])) for name in gone if name in texts}
        if found := {name: there for name, there in now.items() if there is not None}:
            moved[sample.key] = found
    return Staleness(missing, moved, checked, unseen)


def _folded(text: str) -> str:
    return " ".join(text.split())
