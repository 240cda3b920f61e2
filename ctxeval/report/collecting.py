"""Gather from many views what a report says of all of them, in one pass."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from ctxeval.report.agreement import Agreement, agreement
from ctxeval.report.funnel import Funnel, StageSum
from ctxeval.report.ranking import Ranking, RankSum
from ctxeval.report.view import ChunkView, QueryView

RANKS = 20
"""So many ranks are told apart."""

STAGES = 30
"""So many stages are told apart: names may be made up anew for each query."""


class Collector:
    """Takes views, and sums them up: funnel, ranks, agreement."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._stages: dict[tuple[str, str, int], StageSum] = {}
        self._ranks: dict[int, RankSum] = {}
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
            self._stages.setdefault(key, StageSum()).add(place, stage, given)
            self._found.update(found.judge for found in stage.found)
        if view.stages and not view.stages[-1].error:
            self._add_ranks(view.stages[-1].chunks)
        self._add_votes(view)

    def _add_ranks(self, chunks: Iterable[ChunkView]) -> None:
        for chunk in chunks:
            for verdict in chunk.verdicts:
                self._judged[verdict.judge] += 1
            if chunk.rank <= RANKS:
                self._ranks.setdefault(chunk.rank, RankSum()).add(chunk)
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
