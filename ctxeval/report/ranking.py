"""How relevant the chunks are, rank by rank."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import isfinite

from ctxeval.report.view import ChunkView


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank of what the queries retrieved in the end.

    Attributes:
        rank: From 1.
        chunks: How many queries have a chunk there.
        relevant: Per judge, how many of these chunks are relevant and how many were judged.
        score: What the retriever gave them, in the mean; None where that is not known.
    """

    rank: int
    chunks: int
    relevant: tuple[tuple[int, int], ...]
    score: float | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """How relevant the chunks are, rank by rank.

    Attributes:
        judges: Who says so.
        ranks: The ranks, best first.
        left: How many chunks stand behind them.
    """

    judges: tuple[str, ...]
    ranks: tuple[Rank, ...]
    left: int = 0


@dataclass(slots=True)
class RankSum:
    """Sums one rank up over many queries."""

    chunks: int = 0
    scores: list[float] = field(default_factory=list)
    relevant: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)

    def add(self, chunk: ChunkView) -> None:
        """Take what one more query has there."""
        self.chunks += 1
        if chunk.score is not None and isfinite(chunk.score):
            self.scores.append(chunk.score)
        for verdict in chunk.verdicts:
            if verdict.value is not None:
                self.judged[verdict.judge] += 1
                self.relevant[verdict.judge] += verdict.value

    def summed(self, rank: int, judges: tuple[str, ...]) -> Rank:
        """Give what these judges say of it."""
        of_each = tuple((self.relevant[judge], self.judged[judge]) for judge in judges)
        mean = sum(self.scores) / len(self.scores) if self.scores else None
        return Rank(rank, self.chunks, of_each, mean)
