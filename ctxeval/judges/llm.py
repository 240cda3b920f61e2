"""The judge by language model."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal

from ctxeval.calibration.calibration import Calibration
from ctxeval.errors import InvalidArgumentError, near, short
from ctxeval.judges import yes_no
from ctxeval.judges.asking import Asker, Question
from ctxeval.judges.calling import all_of
from ctxeval.judges.cells import DEFAULT_CACHE, CellCache, CellKeys, Cells, Finding, text_hash
from ctxeval.judges.claims import claims_of
from ctxeval.judges.judge import Judge
from ctxeval.judges.mentions import with_ranks
from ctxeval.judges.model import check_llm
from ctxeval.judges.probabilities import ProbabilityRound
from ctxeval.judges.prompts import Prompts
from ctxeval.judges.rounds import Item, Round
from ctxeval.judges.shards import CHUNKS_PER_CALL, groups
from ctxeval.judges.votes import vote
from ctxeval.llm.loop import arun, run
from ctxeval.llm.protocol import LLM, FirstTokenLLM
from ctxeval.sample import Sample
from ctxeval.verdicts import Verdict, Verdicts

Mode = Literal["joint", "pointwise", "logprob"]
MODES: tuple[Mode, ...] = ("joint", "pointwise", "logprob")


class LLMJudge(Judge):
    """Judge by a language model: understands meaning, costs calls, and errs at times.

    A chunk is judged for a purpose: is it useful to arrive at the reference (or at the
    response, or relevant to the question)? A claim of the reference is judged for
    support by the chunks together. What is judged once is kept as cells.

    Args:
        llm: The model, by `llm_factory` or anything with `LLM`'s two members.
        mode: "joint": up to 10 chunks and 10 claims in one call; "pointwise": each
            chunk in a call of its own, for audits; "logprob": for each chunk and each claim
            a call whose answer is one word, of which only the probability counts. It ranks
            best with small models, and needs an endpoint that tells log-probabilities.
        repeats: How often each is asked, an odd number; the majority of the readable
            votes counts, or with "logprob" the mean of the probabilities.
        instructions: What counts, in your own words, in place of parts of
            `ctxeval.judges.prompts.INSTRUCTIONS`.
        threshold: With "logprob": the least probability of a yes that counts as one, in
            [0, 1]. Another one costs no new call.
        cache: Where the cells are kept; None: in this process.

    Raises:
        InvalidArgumentError: An unknown mode, an even number of repeats, no model, or one
            that the mode can't use.
    """

    name = "llm"
    calls_model = True
    retrieved_field = "retrieved_contexts"

    def __init__(
        self,
        llm: LLM,
        mode: Mode = "joint",
        repeats: int = 1,
        instructions: str | Mapping[str, str] | None = None,
        *,
        threshold: float | None = None,
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
        self.threshold = _threshold(mode, threshold)
        if mode == "logprob" and not isinstance(llm, FirstTokenLLM):
            raise InvalidArgumentError(
                f'mode: {short(llm)} tells no log-probabilities: use mode="joint" or "pointwise", '
                "or a model by llm_factory"
            )
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
        limit = f", threshold={self.threshold:g}" if self.mode == "logprob" else ""
        asked = f"{self.mode}{limit}, repeats={self.repeats}, prompts={self._prompts_version}"
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

    def with_threshold(self, threshold: float) -> LLMJudge:
        """Make the same judge with another threshold; what it has judged, it keeps.

        Raises:
            InvalidArgumentError: It tells no probabilities, or that is no threshold.
        """
        judge = copy(self)
        judge.threshold = _threshold(self.mode, threshold)
        return judge

    def with_calibration(self, calibration: Calibration) -> LLMJudge:
        """Make the same judge with the threshold that was fitted to it.

        Raises:
            InvalidArgumentError: The calibration is another judge's: another model, mode,
                prompt, or number of repeats.
        """
        if not isinstance(calibration, Calibration):
            raise InvalidArgumentError(
                f"calibration: {short(calibration)} is no Calibration: give what calibrate() gave, "
                "or Calibration.load(path)"
            )
        judge = self
        if self.mode == "logprob" and calibration.threshold is not None:
            judge = self.with_threshold(calibration.threshold)
        if calibration.judge != judge.signature:
            raise InvalidArgumentError(
                f"calibration: it is of {calibration.judge or 'a judge that was not named'}, not "
                f"of {judge.signature}: calibrate this one"
            )
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
        names = [text_hash(text) for text in retrieved]
        texts = {name: text for name, text in zip(names, retrieved, strict=True) if text.strip()}
        claims: Sequence[str] = ()
        note = ""
        if units:
            claims, note = await claims_of(sample, asker, self.cache, split=bool(texts))
        target = "" if purpose == "question" else (getattr(sample, purpose) or "")
        rounds: list[dict[Item, Finding]] = []
        if texts:
            rounds = await all_of(
                self._round(purpose, sample.user_input, target, texts, claims, chunks, asker, n)
                for n in range(self.repeats)
            )
        most = 1 if self.mode == "pointwise" else CHUNKS_PER_CALL
        apart = len(groups(texts, texts, most)) if units else 1
        if apart > 1 and not note:
            note = (
                f"the claims were judged against {apart} groups of chunks apart: one that needs "
                "chunks of two groups counts as unsupported"
            )
        first_rank = {name: rank for rank, name in reversed([*enumerate(names)])}
        limit = self.threshold if self.mode == "logprob" else None
        unit_verdicts = [
            _ranked(vote(claim, [one[n] for one in rounds], first_rank, limit), first_rank)
            for n, claim in enumerate(claims)
        ]
        if units and not claims:
            unit_verdicts = [Verdict(None, text=sample.reference or "", reason=note)]
        chunk_verdicts = []
        for name, text in zip(names, retrieved, strict=True) if chunks else ():
            found = [one[name] for one in rounds] if name in texts else []
            verdict = _ranked(vote(text, found, threshold=limit), first_rank)
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

    def _round(
        self,
        purpose: str,
        asked: str | None,
        target: str,
        texts: dict[str, str],
        claims: Sequence[str],
        chunks: bool,
        asker: Asker,
        repeat: int,
    ) -> Coroutine[Any, Any, dict[Item, Finding]]:
        seed = text_hash(f"{asked or ''} {repeat}")
        question = Question(purpose, asked or "", target, texts, claims, seed)
        chunk_keys = self._keys(purpose, asked, target, repeat) if chunks else None
        claim_keys = self._keys("support", asked, repeat)
        cells = Cells(self.cache, chunk_keys, claim_keys, asked or "")
        if self.mode == "logprob":
            return ProbabilityRound(question, asker, cells, self.threshold).findings()
        most = CHUNKS_PER_CALL if self.mode == "joint" else 1
        return Round(question, asker, cells, most).findings()

    def _keys(self, *shared: Any) -> CellKeys:
        return CellKeys(dict(self.llm.identity), self._prompts_version, self.mode, *shared)

    @property
    def _prompts_version(self) -> str:
        short_ones = f"/{yes_no.VERSION}" if self.mode == "logprob" else ""
        return f"{self.prompts.version}{short_ones}"


def _ranked(verdict: Verdict, rank_of: Mapping[str, int]) -> Verdict:
    return replace(verdict, reason=with_ranks(verdict.reason, rank_of))


def _threshold(mode: str, threshold: float | None) -> float:
    if threshold is None:
        return 0.5
    if mode != "logprob":
        raise InvalidArgumentError(
            f'threshold: mode={mode!r} gives verdicts, no probabilities: give mode="logprob" too'
        )
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)):
        raise InvalidArgumentError(f"threshold: {short(threshold)} is no number: give 0.5")
    if not 0 <= threshold <= 1:
        raise InvalidArgumentError(f"threshold: {threshold!r} is not from 0 to 1")
    return float(threshold)
