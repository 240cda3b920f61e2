"""How one sample's open questions are cut into calls, and what one call asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from math import ceil
from typing import TypeVar

T = TypeVar("T")

MAX_CHUNKS = 10
MAX_CLAIMS = 10
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


def plan(
    texts: Mapping[str, str],
    open_chunks: Set[str],
    open_claims: Mapping[int, Set[str]],
    max_chunks: int = MAX_CHUNKS,
) -> list[Shard]:
    """Cut what is open into calls.

    Chunks go by the order of their hashes, so that a re-ranked retrieval is cut alike. A
    call that asks for claims is filled up with chunks that are known, since it takes
    several chunks to support some claims.

    Args:
        texts: All chunks of the sample, by hash.
        open_chunks: Those to be judged.
        open_claims: The claims to be judged, each with the chunks that are not yet
            known to leave it unsupported.
        max_chunks: How many chunks a call shows at most.

    Returns:
        The calls: of n chunks and m claims, all open, ceil(n / 10) × max(1, ceil(m / 10)),
        more where the texts are long.
    """
    wanted = sorted(set(open_chunks).union(*open_claims.values()))
    shards = []
    for group in _cut(wanted, texts, max_chunks):
        claims = [claim for claim, rest in open_claims.items() if not rest.isdisjoint(group)]
        shown = _fill(group, texts, max_chunks) if claims else group
        asked = tuple(chunk for chunk in group if chunk in open_chunks)
        batches = _balanced(claims, ceil(len(claims) / MAX_CLAIMS)) if claims else [[]]
        for number, batch in enumerate(batches):
            shards.append(Shard(tuple(shown), asked if number == 0 else (), tuple(batch)))
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


def _fill(group: list[str], texts: Mapping[str, str], most: int) -> list[str]:
    shown = list(group)
    size = sum(len(texts[chunk]) for chunk in group)
    for chunk in sorted(texts.keys() - set(group)):
        size += len(texts[chunk])
        if len(shown) >= most or size > MAX_CHARACTERS:
            break
        shown.append(chunk)
    return shown


def _balanced(items: list[T], parts: int) -> list[list[T]]:
    return [items[len(items) * i // parts : len(items) * (i + 1) // parts] for i in range(parts)]
