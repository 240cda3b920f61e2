"""The judge by language model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal

from ctxeval.errors import InvalidArgumentError, near, short
from ctxeval.judges.asking import Asker, Question, all_of
from ctxeval.judges.cells import (
    DEFAULT_CACHE,
    CellCache,
    CellKeys,
    Finding,
    Flights,
    text_hash,
)
from ctxeval.judges.judge import Judge
from ctxeval.judges.prompts import Prompts
from ctxeval.judges.rounds import Item, Round
from ctxeval.judges.shards import CHUNKS_PER_CALL, groups
from ctxeval.llm.loop import arun, run
from ctxeval.llm.protocol import LLM
from ctxeval.sample import Sample
from ctxeval.verdicts import Verdict, Verdicts

MODES = ("joint", "pointwise")
_NEXT_SENTENCE = re.compile(r"[.!?…]+[\"'”’»)\]]*\s+\S|[。！？]+[」』”’]?\s*[^\s」』”’]|\n\s*\S")


class LLMJudge(Judge):
    """Judge by a language model: understands meaning, costs calls, and errs at times.

    A chunk is judged for a purpose: is it useful to arrive at the reference (or at the
    response, or relevant to the question)? A claim of the reference is judged for
    support by the chunks together. What is judged once is kept as cells.

    Args:
        llm: The model, by `llm_factory` or anything with `LLM`'s two members.
        mode: "joint": up to 10 chunks and 10 claims in one call; "pointwise": each
            chunk in a call of its own, for small models and for audits.
        repeats: How often each is asked, an odd number; the majority of the readable
            votes counts.
        instructions: What counts, in your own words, in place of parts of
            `ctxeval.judges.prompts.INSTRUCTIONS`.
        cache: Where the cells are kept; None: in this process.

    Raises:
        InvalidArgumentError: An unknown mode, an even number of repeats, no model.
    """

    name = "llm"
    calls_model = True
    retrieved_field = "retrieved_contexts"

    def __init__(
        self,
        llm: LLM,
        mode: Literal["joint", "pointwise"] = "joint",
        repeats: int = 1,
        instructions: str | Mapping[str, str] | None = None,
        *,
        cache: CellCache | None = None,
    ) -> None:
        """See the class."""
        self.llm = check_llm(llm)
        if mode not in MODES:
            raise InvalidArgumentError(f"mode: {short(mode)} is unknown: {near(mode, MODES)}")
        if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
            raise InvalidArgumentError(f"repeats: {short(repeats)} is no number of times: 1, 3, …")
        if repeats % 2 == 0:
            raise InvalidArgumentError(f"repeats: {repeats} is even, so votes could tie: give 3")
        self.mode = mode
        self.repeats = repeats
        self.prompts = Prompts(instructions)
        if cache is not None and not (hasattr(cache, "get_many") and hasattr(cache, "put_many")):
            raise InvalidArgumentError(
                f"cache: {short(cache)} keeps no cells: give ctxeval.Store(path) or a MemoryCache()"
            )
        self.cache = DEFAULT_CACHE if cache is None else cache

    @property
    def signature(self) -> str:  # type: ignore[override]  # read-only: the model decides it
        """What decides its verdicts besides the sample."""
        identity = json.dumps(dict(self.llm.identity), sort_keys=True, default=str)
        asked = f"{self.mode}, repeats={self.repeats}, prompts={self.prompts.version}"
        return f"llm({asked}, {identity})"

    @property
    def shared_by(self) -> tuple[object, ...]:
        """What judges must have in common to share verdicts."""
        return ("llm", self.signature, id(self.llm), id(self.cache))

    def needs(self, purpose: str) -> tuple[str, ...]:
        """Name the question, the chunks, and what they are judged for."""
        target = () if purpose == "question" else (purpose,)
        return "user_input", self.retrieved_field, *target

    def nothing_expected(self, sample: Sample, purpose: str, *, units: bool) -> str:
        """Ask for claims, or for a reference, response or question that is not blank."""
        if units and sample.reference_claims is not None:
            return "" if sample.reference_claims else "nothing is expected: no claims"
        field = "user_input" if purpose == "question" else purpose
        return "" if (getattr(sample, field) or "").strip() else f"{field} is blank"

    def with_cache(self, cache: CellCache) -> LLMJudge:
        """Make the same judge with another place to keep its verdicts."""
        judge = copy(self)
        judge.cache = cache
        return judge

    def judge(
        self,
        sample: Sample,
        purpose: str = "reference",
        *,
        chunks: bool = True,
        units: bool = True,
    ) -> Verdicts:
        """Judge from synchronous code; see `ajudge`."""
        return run(self._ajudge(sample, purpose, chunks=chunks, units=units))

    async def ajudge(
        self,
        sample: Sample,
        purpose: str = "reference",
        *,
        chunks: bool = True,
        units: bool = True,
    ) -> Verdicts:
        """Judge a sample, on ctxeval's own loop.

        Args:
            sample: One with `user_input`, `retrieved_contexts` and what the purpose needs.
            purpose: "reference", "response" or "question".
            chunks: Judge the chunks?
            units: Judge the claims of the reference?

        Raises:
            JudgeError: The endpoint gives no reply, for good.
        """
        return await arun(self._ajudge(sample, purpose, chunks=chunks, units=units))

    async def _ajudge(self, sample: Sample, purpose: str, *, chunks: bool, units: bool) -> Verdicts:
        asker = Asker(self.llm, self.prompts)
        retrieved = sample.retrieved_contexts or ()
        texts = {text_hash(text): text for text in retrieved if text.strip()}
        claims, note = await self._claims(sample, asker, bool(texts)) if units else ((), "")
        target = "" if purpose == "question" else (getattr(sample, purpose) or "")
        most = CHUNKS_PER_CALL if self.mode == "joint" else 1
        asked = sample.user_input or ""
        rounds: list[dict[Item, Finding]] = []
        if texts:
            rounds = await all_of(
                Round(
                    Question(purpose, asked, target, texts, claims, text_hash(f"{asked} {n}")),
                    asker,
                    self.cache,
                    self._keys(purpose, sample.user_input, target, n) if chunks else None,
                    self._keys("support", sample.user_input, n),
                    most,
                ).findings()
                for n in range(self.repeats)
            )
        apart = len(groups(texts, texts, most)) if units else 1
        if apart > 1 and not note:
            note = (
                f"the claims were judged against {apart} groups of chunks apart: one that needs "
                "chunks of two groups counts as unsupported"
            )
        first_rank = {text_hash(text): rank for rank, text in reversed([*enumerate(retrieved)])}
        unit_verdicts = [
            _vote(claim, [one[n] for one in rounds], first_rank) for n, claim in enumerate(claims)
        ]
        if units and not claims:
            unit_verdicts = [Verdict(None, text=sample.reference or "", reason=note)]
        chunk_verdicts = []
        for text in retrieved if chunks else ():
            name = text_hash(text)
            verdict = _vote(text, [one[name] for one in rounds] if name in texts else [])
            links = tuple(
                unit
                for unit, of_unit in enumerate(unit_verdicts)
                if of_unit.value and first_rank[name] in of_unit.matched
            )
            chunk_verdicts.append(replace(verdict, matched=links, grade=int(bool(verdict.value))))
        return Verdicts(
            chunk_verdicts,
            unit_verdicts,
            judge=self.signature,
            usage=asker.usage,
            together=True,
            note=note,
        )

    async def _claims(self, sample: Sample, asker: Asker, split: bool) -> tuple[Sequence[str], str]:
        """Get the claims of the reference, and "" or what to know of them.

        Args:
            sample: The sample.
            asker: Who asks the model.
            split: Is it worth a call to split the reference?
        """
        if sample.reference_claims is not None:
            return sample.reference_claims, ""
        reference = (sample.reference or "").strip()
        if not split or not _NEXT_SENTENCE.search(reference):
            return (reference,), ""
        key = CellKeys(dict(self.llm.identity), self.prompts.version, "claims").of(reference)
        while True:
            if kept := self.cache.get_many([key]).get(key):
                return kept[-1]["claims"], kept[-1]["note"]
            flights = Flights.of(self.cache)
            if future := flights.get(key):
                arrived = await flights.land(future)
            else:
                with flights.take({key: key}) as arriving:
                    arrived = arriving[key] = await asker.split(reference)
                if arrived[0]:
                    self.cache.put_many([(key, {"claims": arrived[0], "note": arrived[1]})])
            if arrived is not None:  # None: whoever asked was interrupted
                claims, note = arrived
                return claims, note

    def _keys(self, *shared: Any) -> CellKeys:
        return CellKeys(dict(self.llm.identity), self.prompts.version, self.mode, *shared)


def _vote(
    text: str, findings: Sequence[Finding], rank_of: Mapping[str, int] | None = None
) -> Verdict:
    """Let the repeats vote: the majority of the readable votes counts, a tie is unread."""
    if not findings:  # nothing with text was there to ask about
        return Verdict(False, text=text, reason="there is no text to judge")
    votes = tuple(finding["value"] for finding in findings)
    yes, no = votes.count(True), votes.count(False)
    value = None if yes == no else yes > no
    deciding = next((f for f in findings if f["value"] is value), findings[0])
    reason = deciding["reason"]
    if value is None and yes:
        reason = f"{yes} of {len(votes)} readable votes said yes, {no} said no"
    matched = sorted(rank_of[name] for name in deciding["chunks"]) if rank_of and value else ()
    return Verdict(
        value,
        text=text,
        reason=reason,
        matched=tuple(matched),
        grade=1 if rank_of is not None else int(bool(value)),
        votes=votes if len(votes) > 1 else (),
    )


def check_llm(llm: object) -> LLM:
    """Say at once if something is given that can't judge.

    Raises:
        InvalidArgumentError: It has no `complete` and `identity`.
    """
    if isinstance(llm, LLM) and not isinstance(llm, type):
        identity = llm.identity
        if not isinstance(identity, Mapping) or not all(isinstance(n, str) for n in identity):
            raise InvalidArgumentError(
                f"llm: its identity is {short(identity)}: make it a property that gives a dict "
                "with str keys: endpoint, model, parameters"
            )
        return llm
    if llm is None:
        hint = "give llm=ctxeval.llm_factory('…')"
    elif isinstance(llm, str):
        hint = f"for a model by name, give ctxeval.llm_factory({llm!r})"
    elif hasattr(llm, "chat"):
        hint = "for a client, give ctxeval.llm_factory('model', client=…)"
    else:
        hint = "give ctxeval.llm_factory('…') or an object with complete() and identity"
    raise InvalidArgumentError(f"llm: {short(llm)} cannot judge: {hint}")
