"""Where relevant chunks get lost, stage by stage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite
from statistics import median

from ctxeval.report.view import ChunkView, StageView


@dataclass(frozen=True, slots=True)
class FunnelStage:
    """One stage of all queries that have it.

    Attributes:
        kind: "retrieve", "rerank" or "prompt".
        name: The retriever's name.
        queries: How many queries have the stage.
        failed: In how many it failed.
        chunks: How many chunks it gave, over all queries.
        relevant: How many of these are relevant, repeats aside.
        unjudged: Of how many no verdict is known.
        judged: In how many queries anything was judged.
        empty: In how many it gave nothing, without failing.
        lost: How many relevant chunks it was given and did not pass on; None where it was
            given none.
        covered: How many units of what was expected its chunks cover.
        expected: How many units were expected of it.
        unknown: Of how many of these it is not known whether its chunks cover them.
        hits: In how many queries it holds a relevant chunk.
        seconds: How long it took, in the median; None where that is not known.
    """

    kind: str
    name: str
    queries: int
    failed: int
    chunks: int
    relevant: int
    unjudged: int
    judged: int
    empty: int
    lost: int | None
    covered: int
    expected: int
    unknown: int
    hits: int
    seconds: float | None

    @property
    def known(self) -> int:
        """Of how many expected units it is known whether they were found."""
        return self.expected - self.unknown

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the numbers leave out, a few words each."""
        queries = "query" if self.empty == 1 else "queries"
        chunks = "chunk" if self.unjudged == 1 else "chunks"
        told = (
            (self.failed, f"failed in {self.failed:,}"),
            (self.empty, f"gave nothing in {self.empty:,} {queries}"),
            (self.unjudged, f"{self.unjudged:,} {chunks} not judged"),
            (self.unknown, f"{self.unknown:,} of what was expected not judged"),
        )
        return tuple(words for n, words in told if n)


@dataclass(frozen=True, slots=True)
class Funnel:
    """Where relevant chunks get lost.

    Attributes:
        judge: Who says which chunks are relevant.
        stages: The stages that most queries have, first one first.
        left: How many stages there are besides.
    """

    judge: str
    stages: tuple[FunnelStage, ...]
    left: int = 0


@dataclass(slots=True)
class _Counts:
    """What one judge says of one stage, over all queries."""

    relevant: int = 0
    judged: int = 0
    queries: int = 0
    lost: int = 0
    hits: int = 0
    covered: int = 0
    expected: int = 0
    unknown: int = 0


@dataclass(slots=True)
class StageSum:
    """Sums one stage up over many queries."""

    queries: int = 0
    failed: int = 0
    empty: int = 0
    fed: int = 0
    chunks: int = 0
    places: int = 0
    latencies: list[float] = field(default_factory=list)
    counts: dict[str, _Counts] = field(default_factory=lambda: defaultdict(_Counts))

    @property
    def place(self) -> float:
        """Its place among the stages, in the mean."""
        return self.places / self.queries

    def add(self, place: int, stage: StageView, given: list[ChunkView]) -> None:
        """Take the stage of one more query.

        Args:
            place: Its place among the query's stages.
            stage: The stage.
            given: The chunks that it was given.
        """
        self.queries += 1
        self.places += place
        self.failed += bool(stage.error)
        self.empty += not (stage.chunks or stage.error)
        self.fed += bool(stage.sources)
        self.chunks += len(stage.chunks)
        if stage.latency and isfinite(stage.latency):
            self.latencies.append(stage.latency)
        relevant = _relevant(stage.chunks)
        for chunk in stage.chunks:
            for verdict in chunk.verdicts:
                self.counts[verdict.judge].judged += verdict.value is not None
        for judge in _who_judged(stage):
            self.counts[judge].queries += 1
        for judge, names in relevant.items():
            self.counts[judge].relevant += len(names)
            self.counts[judge].hits += 1
        for judge, names in _relevant(given).items():
            self.counts[judge].lost += len(names - relevant.get(judge, set()))
        for found in stage.found:
            self.counts[found.judge].covered += found.covered
            self.counts[found.judge].expected += found.expected
            self.counts[found.judge].unknown += found.unknown

    def summed(self, kind: str, name: str, judge: str) -> FunnelStage:
        """Give what this judge says of it."""
        counts = self.counts[judge]
        return FunnelStage(
            kind,
            name,
            self.queries,
            self.failed,
            self.chunks,
            counts.relevant,
            self.chunks - counts.judged,
            counts.queries,
            self.empty,
            counts.lost if self.fed else None,
            counts.covered,
            counts.expected,
            counts.unknown,
            counts.hits,
            median(self.latencies) if self.latencies else None,
        )


def _who_judged(stage: StageView) -> set[str]:
    """Give the judges whose verdict on any of a stage's chunks is known; of no chunks, all are."""
    if not stage.chunks:
        return {found.judge for found in stage.found}
    said = (verdict for chunk in stage.chunks for verdict in chunk.verdicts)
    return {verdict.judge for verdict in said if verdict.value is not None}


def _relevant(chunks: Iterable[ChunkView]) -> dict[str, set[str]]:
    """Name the relevant chunks by each judge."""
    names: dict[str, set[str]] = {}
    for chunk in chunks:
        for verdict in chunk.verdicts:
            if verdict.value:
                names.setdefault(verdict.judge, set()).add(chunk.id or chunk.text)
    return names
