"""What is kept of a model's judgements: cells, so that none is paid for twice.

A cell is one chunk's verdict for one purpose, one claim's support, or the claims of one
reference. Its key is a hash of all that decides it (the model's identity, prompts, mode,
purpose, question, what a chunk is judged for, chunk or claim, repeat) and of nothing
else: no rank, no id, no neighbour, no seed. So a re-ranked retrieval costs nothing.

Support depends on a set of chunks, and it is monotone: a claim that some chunks support
is supported by any set that holds them; one that a set does not support is not supported
by any part of it. So a claim's cell is a list of such findings, and grows.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from ctxeval.forking import lock_for

Finding = Mapping[str, Any]
"""One finding in a cell, as plain data: `value`, `reason`; for claims the `chunks` that support
needs, or that did not give it, and whether it holds of `exact`ly these; and `of` which question
it is, which a store keeps to itself."""


class CellCache(Protocol):
    """Where cells are kept. A store fulfils it; so may anything of yours."""

    def get_many(self, keys: Sequence[str]) -> Mapping[str, Sequence[Finding]]:
        """Give the findings kept under these keys, oldest first; keys without any are left out."""
        ...

    def put_many(self, findings: Iterable[tuple[str, Finding]]) -> None:
        """Keep each finding under its key, beside those that are there."""
        ...


class MemoryCache:
    """Cells of this process: the least recently used go when there are too many.

    Args:
        max_cells: How many keys are kept at most.
    """

    def __init__(self, max_cells: int = 200_000) -> None:
        """See the class."""
        self._cells: OrderedDict[str, list[Finding]] = OrderedDict()
        self._max_cells = max_cells
        self._lock = lock_for(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle as an empty one: what is kept belongs to its process."""
        return type(self), (self._max_cells,)

    def __len__(self) -> int:
        """Count the keys."""
        return len(self._cells)

    def get_many(self, keys: Sequence[str]) -> dict[str, list[Finding]]:
        """See `CellCache.get_many`."""
        with self._lock:
            found = {key: list(self._cells[key]) for key in keys if key in self._cells}
            for key in found:
                self._cells.move_to_end(key)
            return found

    def put_many(self, findings: Iterable[tuple[str, Finding]]) -> None:
        """See `CellCache.put_many`."""
        with self._lock:
            for key, finding in findings:
                kept = self._cells.setdefault(key, [])
                if finding not in kept:
                    kept.append(finding)
                self._cells.move_to_end(key)
            while len(self._cells) > self._max_cells:
                self._cells.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._cells.clear()


DEFAULT_CACHE = MemoryCache()
"""What judges share in this process unless they are given another."""


class CellKeys:
    """The keys of the cells that share all but a last part.

    Args:
        shared: What they share, as plain data.

    Examples:
        >>> keys = CellKeys("model", "question")
        >>> keys.of("one chunk") == CellKeys("model", "question").of("one chunk")
        True
    """

    def __init__(self, *shared: Any) -> None:
        """See the class."""
        text = json.dumps(shared, sort_keys=True, default=str)
        self._hash = hashlib.sha256(f"{text}\n".encode("utf-8", "surrogatepass"))

    def of(self, text: str) -> str:
        """Give the key of the cell with this last part."""
        digest = self._hash.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def text_hash(text: str) -> str:
    """Name a chunk by its text, as findings on claims do."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def question_hash(question: str) -> str:
    """Name the question that a finding is of, so that it can be deleted with it: as `of`.

    Case and white space don't matter.
    """
    return text_hash(" ".join(question.casefold().split()))[:16]


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one sample that is asked once.

    Attributes:
        cache: Where they are kept.
        chunks: The keys of the chunks' cells; None: the chunks are not judged.
        claims: The keys of the claims' cells.
        question: What the user asked.
    """

    cache: CellCache
    chunks: CellKeys | None
    claims: CellKeys
    question: str

    def keep(self, findings: Iterable[tuple[str, Finding]]) -> None:
        """Keep under their keys those findings that could be read."""
        of = question_hash(self.question)
        readable = [(key, {**one, "of": of}) for key, one in findings if one["value"] is not None]
        if readable:
            self.cache.put_many(readable)


def supporting(findings: Sequence[Finding], chunks: Set[str]) -> Finding | None:
    """Find what says that a claim is supported by some of these chunks."""
    for finding in findings:
        if finding["value"] and chunks >= set(finding["chunks"]):
            return finding
    return None


def ruling_out(findings: Sequence[Finding], chunks: Set[str]) -> Finding | None:
    """Find what says that a claim is not supported by these chunks, shown together.

    A set that was only shown in parts (`exact`) says so of itself, and nothing of its
    subsets: two of its chunks may have been in different parts.
    """
    for finding in findings:
        named = set(finding["chunks"])
        if not finding["value"] and (chunks == named or (not finding["exact"] and chunks <= named)):
            return finding
    return None
