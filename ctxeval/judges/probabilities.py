"""One round of short questions: a cell each, which holds a probability rather than a verdict.

A cell is a chunk for a purpose, or a claim with the chunks that it was shown with. What a
threshold makes of it is not kept, so that another threshold costs no call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ctxeval.errors import ContextOverflowError
from ctxeval.judges.asking import Asker, Question
from ctxeval.judges.calling import all_of
from ctxeval.judges.cells import Cells, Finding
from ctxeval.judges.flights import Flights
from ctxeval.judges.rounds import Item
from ctxeval.judges.shards import groups
from ctxeval.judges.yes_no import ask_chunk, ask_claim, yes_probability

Cell = str | tuple[int, tuple[str, ...]]
"""A chunk by its hash, or a claim by its number with the chunks that it is shown with."""


@dataclass(frozen=True, slots=True)
class ProbabilityRound:
    """One sample asked once, a short question for each chunk and each claim.

    Attributes:
        question: What is asked.
        asker: Who asks.
        cells: Where findings are kept.
        threshold: The least probability that is a yes.
    """

    question: Question
    asker: Asker
    cells: Cells
    threshold: float

    async def findings(self) -> dict[Item, Finding]:
        """Get a finding for each chunk and for each claim: of a claim its likeliest.

        An unread one has the value None, and is not kept.

        Raises:
            JudgeError: The endpoint gives no reply, for good.
        """
        texts = self.question.texts
        keys: dict[Cell, str] = {}
        if self.cells.chunks is not None:
            keys.update({name: self.cells.chunks.of(text) for name, text in texts.items()})
        together = groups(texts, texts)
        for number, claim in enumerate(self.question.claims):
            for group in together:
                keys[number, group] = self.cells.claims.of("\n".join((claim, *group)))
        found: dict[Item, Finding] = {}
        for cell, kept in (await self._found(keys)).items():
            item = cell if isinstance(cell, str) else cell[0]
            finding = self._decided(kept)
            found[item] = finding if item not in found else max(found[item], finding, key=_rank)
        return found

    def _decided(self, finding: Finding) -> Finding:
        probability = finding["probability"]
        value = None if probability is None else probability >= self.threshold
        # Which of the chunks a claim needs is not told.
        return {**finding, "value": value, "chunks": []}

    async def _found(self, keys: Mapping[Cell, str]) -> dict[Cell, Finding]:
        cache = self.cells.cache

        def look_up(missing: Sequence[Cell]) -> dict[Cell, Finding]:
            kept = cache.get_many([keys[cell] for cell in missing])
            return {cell: kept[keys[cell]][-1] for cell in missing if kept.get(keys[cell])}

        async def ask(mine: Sequence[Cell]) -> dict[Cell, Finding]:
            asked = await all_of(self._ask(cell, keys[cell]) for cell in mine)
            return dict(zip(mine, asked, strict=True))

        return await Flights.of(cache).gather(keys, look_up, ask)

    async def _ask(self, cell: Cell, key: str) -> Finding:
        question, prompts = self.question, self.asker.prompts
        if isinstance(cell, str):
            shown: tuple[str, ...] = ()
            messages = ask_chunk(
                prompts, question.purpose, question.question, question.target, question.texts[cell]
            )
        else:
            number, shown = cell
            chunks = [question.texts[name] for name in shown]
            messages = ask_claim(prompts, question.claims[number], chunks)
        probability, other = None, 0.0
        try:
            first = await self.asker.first_token(messages)
        except ContextOverflowError as error:
            reason = f"it does not fit the model's context: {error}"
        else:
            probability, other = yes_probability(first.logprobs)
            likeliest = ", ".join(repr(token) for token in list(first.logprobs)[:3])
            reason = first.refusal
            reason = reason or f"neither yes nor no is among the likeliest words: {likeliest}"
            if probability is not None:
                reason = ""  # it is told with the threshold, which may be another one tomorrow
        finding = {
            "value": None if probability is None else probability >= 0.5,
            "reason": reason,
            "chunks": sorted(shown),
            "exact": True,
            "probability": probability,
            "other": other,
        }
        self.cells.keep([(key, finding)])
        return finding


def _rank(finding: Finding) -> tuple[bool, bool, float]:
    """A yes goes before what is unread, and that before a no; then the likelier first."""
    probability = finding["probability"]
    return bool(finding["value"]), finding["value"] is None, probability or 0.0
