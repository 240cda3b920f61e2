"""One round of judging: take what is known, wait for what is under way, ask for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ctxeval.judges.asking import Answer, Asker, Question, all_of
from ctxeval.judges.cells import CellCache, CellKeys, Finding, Flights, support
from ctxeval.judges.replies import Reading
from ctxeval.judges.shards import Shard, plan

Item = str | int
"""What is judged: a chunk by its hash, or a claim by its number."""


@dataclass(frozen=True, slots=True)
class Round:
    """One sample asked once.

    Attributes:
        question: What is asked.
        asker: Who asks.
        cache: Where findings are kept.
        chunk_keys: The keys of the chunks' cells; None: the chunks are not judged.
        claim_keys: The keys of the claims' cells.
        max_chunks: How many chunks a call shows at most.
    """

    question: Question
    asker: Asker
    cache: CellCache
    chunk_keys: CellKeys | None
    claim_keys: CellKeys
    max_chunks: int

    async def findings(self) -> dict[Item, Finding]:
        """Get a finding for each chunk and for each claim.

        An unread one has the value None, and is not kept.

        Raises:
            JudgeError: The endpoint gives no reply, for good.
        """
        keys: dict[Item, str] = {
            n: self.claim_keys.of(c) for n, c in enumerate(self.question.claims)
        }
        if self.chunk_keys is not None:
            keys.update({h: self.chunk_keys.of(t) for h, t in self.question.texts.items()})
        found: dict[Item, Finding] = {}
        while missing := {item: key for item, key in keys.items() if item not in found}:
            known, rest = self._look_up(missing)
            found.update(known)
            # A claim that is asked of other chunks meanwhile is another judgement.
            chunk_set = " ".join(sorted(self.question.texts))
            names = {
                item: key if isinstance(item, str) else f"{key} {chunk_set}"
                for item, key in missing.items()
                if item not in known
            }
            flights = Flights.of(self.cache)
            theirs = {i: future for i, name in names.items() if (future := flights.get(name))}
            mine = {item: name for item, name in names.items() if item not in theirs}
            if mine:
                with flights.take(mine) as arrived:
                    arrived.update(await self._ask(mine, rest))
                found.update(arrived)
            for item, future in theirs.items():
                if (finding := await flights.land(future)) is not None:  # None: interrupted
                    found[item] = finding
        return found

    def _look_up(
        self, missing: Mapping[Item, str]
    ) -> tuple[dict[Item, Finding], dict[int, set[str]]]:
        """Take what is kept; and give, of each open claim, the chunks that are open for it."""
        kept = self.cache.get_many(list(missing.values()))
        chunks = frozenset(self.question.texts)
        known: dict[Item, Finding] = {}
        rest: dict[int, set[str]] = {}
        for item, key in missing.items():
            if isinstance(item, int):
                decided, open_chunks = support(kept.get(key, ()), chunks)
                if decided is None:
                    rest[item] = open_chunks
                else:
                    known[item] = decided
            elif key in kept:
                known[item] = kept[key][-1]
        return known, rest

    async def _ask(
        self, mine: Mapping[Item, str], rest: Mapping[int, set[str]]
    ) -> dict[Item, Finding]:
        shards = plan(
            self.question.texts,
            {item for item in mine if isinstance(item, str)},
            {item: rest[item] for item in mine if isinstance(item, int)},
            self.max_chunks,
        )
        answers = await all_of(self._ask_and_keep(shard) for shard in shards)
        found: dict[Item, Finding] = {}
        for answer in answers:
            for chunk, reading in answer.chunks.items():
                found[chunk] = _finding(reading, ())
        everything = sorted(self.question.texts)
        for claim in [item for item in mine if isinstance(item, int)]:
            parts = [
                (reading, shown)
                for answer in answers
                for number, reading, shown in answer.claims
                if number == claim
            ]
            found[claim] = _together(parts, everything)
        self._keep(
            (self.claim_keys.of(self.question.claims[n]), found[n]) for n in rest if n in found
        )
        return found

    async def _ask_and_keep(self, shard: Shard) -> Answer:
        """Keep what one call brought at once: what was paid for survives an interruption."""
        answer = await self.asker.ask(self.question, shard)
        if self.chunk_keys is not None:
            self._keep(
                (self.chunk_keys.of(self.question.texts[chunk]), _finding(reading, ()))
                for chunk, reading in answer.chunks.items()
            )
        self._keep(
            (self.claim_keys.of(self.question.claims[claim]), _finding(reading, shown))
            for claim, reading, shown in answer.claims
        )
        return answer

    def _keep(self, findings: Iterable[tuple[str, Finding]]) -> None:
        readable = [(key, finding) for key, finding in findings if finding["value"] is not None]
        if readable:
            self.cache.put_many(readable)


def _finding(reading: Reading, shown: Sequence[str]) -> Finding:
    """Write a reading down: with the chunks that support needs, or that did not give it."""
    named = [shown[number - 1] for number in reading.chunks] if reading.value else list(shown)
    return {"value": reading.value, "reason": reading.reason, "chunks": sorted(named)}


def _together(parts: Sequence[tuple[Reading, Sequence[str]]], everything: list[str]) -> Finding:
    """Join what the calls say of one claim: any support is support, else any unread is unread."""
    order = {True: 0, None: 1, False: 2}
    reading, shown = min(parts, key=lambda part: order[part[0].value])
    return _finding(reading, shown if reading.value else everything)
