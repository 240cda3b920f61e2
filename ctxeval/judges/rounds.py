"""One round of judging: take what is known, wait for what is under way, ask for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce

from ctxeval.judges.asking import Asker, Question
from ctxeval.judges.calling import all_of
from ctxeval.judges.cells import Cells, Finding, ruling_out, supporting
from ctxeval.judges.flights import Flights
from ctxeval.judges.replies import Reading
from ctxeval.judges.shards import Shard, groups, plan

Item = str | int
"""What is judged: a chunk by its hash, or a claim by its number."""


@dataclass(frozen=True, slots=True)
class Round:
    """One sample asked once.

    Attributes:
        question: What is asked.
        asker: Who asks.
        cells: Where findings are kept.
        max_chunks: How many chunks a call shows at most.
    """

    question: Question
    asker: Asker
    cells: Cells
    max_chunks: int

    async def findings(self) -> dict[Item, Finding]:
        """Get a finding for each chunk and for each claim.

        An unread one has the value None, and is not kept.

        Raises:
            JudgeError: The endpoint gives no reply, for good.
        """
        keys: dict[Item, str] = {
            n: self.cells.claims.of(c) for n, c in enumerate(self.question.claims)
        }
        if self.cells.chunks is not None:
            keys.update({h: self.cells.chunks.of(t) for h, t in self.question.texts.items()})
        # A claim that is asked of other chunks meanwhile is another judgement.
        chunk_set = " ".join(sorted(self.question.texts))
        names = {i: key if isinstance(i, str) else f"{key} {chunk_set}" for i, key in keys.items()}
        together = groups(self.question.texts, self.question.texts, self.max_chunks)
        open_claims: list[set[int]] = []

        def look_up(missing: Sequence[Item]) -> dict[Item, Finding]:
            nonlocal open_claims
            known, open_claims = self._look_up({item: keys[item] for item in missing}, together)
            return known

        async def ask(mine: Sequence[Item]) -> dict[Item, Finding]:
            return await self._ask(set(mine), keys, together, open_claims)

        return await Flights.of(self.cells.cache).gather(names, look_up, ask)

    def _look_up(
        self, missing: Mapping[Item, str], together: Sequence[tuple[str, ...]]
    ) -> tuple[dict[Item, Finding], list[set[int]]]:
        """Take what is kept; and give, per group of chunks, the claims that are open for it."""
        kept = self.cells.cache.get_many(list(missing.values()))
        chunks = set(self.question.texts)
        known: dict[Item, Finding] = {}
        open_claims: list[set[int]] = [set() for _ in together]
        for item, key in missing.items():
            findings = kept.get(key, ())
            if isinstance(item, str):
                if findings:
                    known[item] = findings[-1]
            elif (support := supporting(findings, chunks)) is not None:
                known[item] = support
            else:
                ruled = [ruling_out(findings, set(group)) for group in together]
                if ruled and None not in ruled:
                    known[item] = {**(ruled[0] or {}), "chunks": sorted(chunks)}
                for claims, finding in zip(open_claims, ruled, strict=True):
                    if finding is None:
                        claims.add(item)
        return known, open_claims

    async def _ask(
        self,
        mine: Set[Item],
        keys: Mapping[Item, str],
        together: Sequence[tuple[str, ...]],
        open_claims: Sequence[set[int]],
    ) -> dict[Item, Finding]:
        chunks = {item for item in mine if isinstance(item, str)}
        claims = [of_group & mine for of_group in open_claims]
        if not any(claims):  # then the chunks that are known need not be shown
            together = groups(self.question.texts, chunks, self.max_chunks)
            claims = [set() for _ in together]
        shards = plan(together, chunks, claims)
        answers = await all_of(self._ask_and_keep(shard, keys) for shard in shards)
        found: dict[Item, Finding] = {}
        for answer in answers:
            for item, finding in answer.items():
                before = found.get(item)
                found[item] = finding if before is None else _stronger(before, finding)
        return found

    async def _ask_and_keep(self, shard: Shard, keys: Mapping[Item, str]) -> dict[Item, Finding]:
        """Keep what one call brought at once: what was paid for survives an interruption."""
        answer = await self.asker.ask(self.question, shard)
        found: dict[Item, Finding] = {}
        kept: list[tuple[str, Finding]] = []
        for chunk, reading in answer.chunks.items():
            found[chunk] = _finding(reading, ())
            kept.append((keys[chunk], found[chunk]))
        for claim in shard.claims:
            parts = [_finding(reading, shown) for n, reading, shown in answer.claims if n == claim]
            whole = reduce(_stronger, parts)
            if len(parts) > 1:
                kept += [(keys[claim], part) for part in parts]
                if not whole["value"]:
                    whole = {**whole, "chunks": sorted(shard.shown), "exact": True}
            found[claim] = whole
            kept.append((keys[claim], whole))
        self.cells.keep(kept)
        return found


def _finding(reading: Reading, shown: Sequence[str]) -> Finding:
    """Write a reading down: with the chunks that support needs, or that did not give it."""
    named = [shown[number - 1] for number in reading.chunks] if reading.value else shown
    return {
        "value": reading.value,
        "reason": reading.reason,
        "chunks": sorted(named),
        "exact": False,
    }


def _stronger(one: Finding, other: Finding) -> Finding:
    """Join what two calls say of a claim: any support is support, else any unread is unread."""
    strength = {True: 2, None: 1, False: 0}
    return other if strength[other["value"]] > strength[one["value"]] else one
