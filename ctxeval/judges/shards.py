"""How one sample's open questions are cut into calls, and what one call asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from math import ceil
from typing import TypeVar

T = TypeVar("T")

CHUNKS_PER_CALL = 10
CLAIMS_PER_CALL = 10
MAX_CHARACTERS = 60_000
"""A call shows at most so much text of chunks, about 15,000 tokens of English, unless one
chunk alone has more."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One call: which chunks it shows, and what it asks.

    Attributes:
        shown: The hashes of the chunks that it shows.
        chunks: Those of them that are to be judged.
        claims: The indices of the claims that are to be judged.
    """

    shown: tuple[str, ...]
    chunks: tuple[str, ...] = ()
    claims: tuple[int, ...] = ()

    @property
    def asked(self) -> int:
        """How many verdicts it asks for."""
        return len(self.chunks) + len(self.claims)

    def halve_shown(self) -> tuple[Shard, Shard]:
        """Make two calls that each show half: for a prompt that is too long or refused."""
        middle = (len(self.shown) + 1) // 2
        first, second = self.shown[:middle], self.shown[middle:]
        return (
            Shard(first, tuple(c for c in self.chunks if c in first), self.claims),
            Shard(second, tuple(c for c in self.chunks if c in second), self.claims),
        )

    def halve_asked(self) -> tuple[Shard, Shard]:
        """Make two calls that each ask half: for an answer that is too long."""
        if self.chunks and self.claims:
            return replace(self, claims=()), replace(self, chunks=())
        middle = (self.asked + 1) // 2
        return (
            replace(self, chunks=self.chunks[:middle], claims=self.claims[:middle]),
            replace(self, chunks=self.chunks[middle:], claims=self.claims[middle:]),
        )


def groups(
    texts: Mapping[str, str], of: Iterable[str], most: int = CHUNKS_PER_CALL
) -> list[tuple[str, ...]]:
    """Cut chunks into groups that a call each can show.

    They go by the order of their hashes, so that a re-ranked retrieval is cut alike.

    Args:
        texts: The chunks by hash.
        of: The hashes of those to cut.
        most: How many chunks a call shows at most.
    """
    return [tuple(group) for group in _cut(sorted(of), texts, most)]


def plan(
    together: Sequence[tuple[str, ...]],
    open_chunks: Set[str],
    open_claims: Sequence[Set[int]],
) -> list[Shard]:
    """Make the calls that answer what is open.

    Args:
        together: The groups of chunks.
        open_chunks: The chunks to be judged.
        open_claims: Per group, the claims to be judged against it.

    Returns:
        The calls: of n chunks and m claims, all open, ceil(n / 10) × max(1, ceil(m / 10)),
        more where the texts are long.
    """
    shards = []
    for group, claims in zip(together, open_claims, strict=True):
        asked = tuple(chunk for chunk in group if chunk in open_chunks)
        # Claims need all of the group, since it takes several chunks to support some.
        shown = group if claims else asked
        batches = _balanced(sorted(claims), ceil(len(claims) / CLAIMS_PER_CALL)) or [[]]
        for number, batch in enumerate(batches):
            shard = Shard(shown, asked if number == 0 else (), tuple(batch))
            if shard.asked:
                shards.append(shard)
    return shards


def _cut(chunks: Sequence[str], texts: Mapping[str, str], most: int) -> list[list[str]]:
    groups = []
    for group in _balanced(list(chunks), ceil(len(chunks) / most)):
        part: list[str] = []
        size = 0
        for chunk in group:
            if part and size + len(texts[chunk]) > MAX_CHARACTERS:
                groups.append(part)
                part, size = [], 0
            part.append(chunk)
            size += len(texts[chunk])
        if part:
            groups.append(part)
    return groups


def _balanced(items: list[T], parts: int) -> list[list[T]]:
    return [items[len(items) * i // parts : len(items) * (i + 1) // parts] for i in range(parts)]
