"""Gather from many views what a report says of all of them, in one pass."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite
from statistics import median

from ctxeval.report.agreement import agreement
from ctxeval.report.content import Agreement, Funnel, FunnelStage, Rank, Ranking
from ctxeval.report.view import ChunkView, QueryView, StageView

RANKS = 20
"""So many ranks are told apart."""

STAGES = 30
"""So many stages are told apart: names may be made up anew for each query."""


class Collector:
    """Takes views, and sums them up: funnel, ranks, agreement."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._stages: dict[tuple[str, str, int], _Stage] = {}
        self._ranks: dict[int, _Rank] = {}
        self._behind = 0
        self._judged: Counter[str] = Counter()
        self._found: Counter[str] = Counter()
        self._votes: dict[tuple[str, str], list[tuple[bool | None, ...]]] = defaultdict(list)

    def add(self, view: QueryView) -> None:
        """Take one more view."""
        seen: Counter[tuple[str, str]] = Counter()
        for place, stage in enumerate(view.stages):
            named = stage.kind, stage.name
            key = (*named, seen[named])
            seen[named] += 1
            given = [chunk for source in stage.sources for chunk in view.stages[source].chunks]
            self._stages.setdefault(key, _Stage()).add(place, stage, given)
            self._found.update(found.judge for found in stage.found)
        if view.stages and not view.stages[-1].error:
            self._add_ranks(view.stages[-1].chunks)
        self._add_votes(view)

    def _add_ranks(self, chunks: Iterable[ChunkView]) -> None:
        for chunk in chunks:
            for verdict in chunk.verdicts:
                self._judged[verdict.judge] += 1
            if chunk.rank <= RANKS:
                self._ranks.setdefault(chunk.rank, _Rank()).add(chunk)
            else:
                self._behind += 1

    def _add_votes(self, view: QueryView) -> None:
        voted: dict[tuple[str, str], tuple[bool | None, ...]] = {}
        for stage in view.stages:
            for chunk in stage.chunks:
                for verdict in chunk.verdicts:
                    if verdict.votes:
                        voted[verdict.judge, chunk.text] = verdict.votes
        for (judge, _), votes in voted.items():
            self._votes[judge, "chunks"].append(votes)
        for unit in view.units:
            if unit.votes:
                self._votes[unit.judge, "claims"].append(unit.votes)

    def funnel(self) -> Funnel | None:
        """Give the funnel by the first judge; None where nothing was judged."""
        judges = _ordered(self._judged) or _ordered(self._found)
        if not judges:
            return None
        frequent = sorted(self._stages, key=lambda key: -self._stages[key].queries)[:STAGES]
        keys = sorted(frequent, key=lambda key: self._stages[key].place)
        stages = tuple(self._stages[key].summed(*key[:2], judges[0]) for key in keys)
        return Funnel(judges[0], stages, len(self._stages) - len(stages))

    def ranking(self) -> Ranking | None:
        """Give the ranks; None where no chunk was judged."""
        judges = tuple(_ordered(self._judged))
        if not judges:
            return None
        ranks = tuple(self._ranks[rank].summed(rank, judges) for rank in sorted(self._ranks))
        return Ranking(judges, ranks, self._behind)

    def agreements(self) -> tuple[Agreement, ...]:
        """Say how far each judge that was asked repeatedly agrees with itself."""
        return tuple(agreement(*key, self._votes[key]) for key in sorted(self._votes))


def _ordered(said: Counter[str]) -> list[str]:
    """Put judges in order: exact ones first, then those who said most."""
    return sorted(said, key=lambda judge: (judge.startswith("model"), -said[judge]))


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
class _Stage:
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
        return self.places / self.queries

    def add(self, place: int, stage: StageView, given: list[ChunkView]) -> None:
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


@dataclass(slots=True)
class _Rank:
    chunks: int = 0
    scores: list[float] = field(default_factory=list)
    relevant: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)

    def add(self, chunk: ChunkView) -> None:
        self.chunks += 1
        if chunk.score is not None and isfinite(chunk.score):
            self.scores.append(chunk.score)
        for verdict in chunk.verdicts:
            if verdict.value is not None:
                self.judged[verdict.judge] += 1
                self.relevant[verdict.judge] += verdict.value

    def summed(self, rank: int, judges: tuple[str, ...]) -> Rank:
        of_each = tuple((self.relevant[judge], self.judged[judge]) for judge in judges)
        mean = sum(self.scores) / len(self.scores) if self.scores else None
        return Rank(rank, self.chunks, of_each, mean)
