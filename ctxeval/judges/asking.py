"""Ask a model, again where that helps, until every verdict is read or given up."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ctxeval.errors import ContextOverflowError, JudgeError, short
from ctxeval.fields import MAX_CLAIMS
from ctxeval.judges.calling import Caller, all_of
from ctxeval.judges.mentions import with_hashes
from ctxeval.judges.prompts import Prompts
from ctxeval.judges.replies import Reading, read_claims, read_verdicts
from ctxeval.judges.shards import Shard
from ctxeval.llm.protocol import LLM

_BASE_CAP = 1024
_CAP_PER_VERDICT = 128
_CAP_PER_LETTER = 2
"""The cap on an answer: generous, so that only a model that has lost its way meets it."""


@dataclass(slots=True)
class Question:
    """What one judging asks, whatever the shard.

    Attributes:
        purpose: "reference", "response" or "question".
        question: The user's question.
        target: The text of the reference or response; "" for the question alone.
        texts: The chunks by hash.
        claims: The claims of the reference.
        seed: Decides in which order the chunks are shown.
    """

    purpose: str
    question: str
    target: str
    texts: dict[str, str]
    claims: Sequence[str]
    seed: str


@dataclass(slots=True)
class Answer:
    """What came of a shard.

    Attributes:
        chunks: The readings by hash.
        claims: The readings by claim; their `chunks` index `shown`.
        shown: Which chunks each claim's reading was about.
    """

    chunks: dict[str, Reading] = field(default_factory=dict)
    claims: list[tuple[int, Reading, tuple[str, ...]]] = field(default_factory=list)


class Asker(Caller):
    """Puts questions to a model and counts what they cost.

    Args:
        llm: The model.
        prompts: The prompts.
    """

    def __init__(self, llm: LLM, prompts: Prompts) -> None:
        """See the class."""
        super().__init__(llm)
        self.prompts = prompts

    async def ask(self, question: Question, shard: Shard) -> Answer:
        """Ask for the verdicts of a shard.

        A reply that is cut is asked again with twice the cap, then in two halves; a
        prompt that is too long or refused is halved; verdicts that are missing or
        unreadable are asked again once, only those. What is unread then stays so.

        Raises:
            JudgeError: The endpoint gives no reply, for good.
        """
        order = sorted(shard.shown)
        random.Random(question.seed).shuffle(order)
        return await self._ask(question, shard, order, again=True, cap=None)

    async def _ask(
        self, question: Question, shard: Shard, order: list[str], *, again: bool, cap: int | None
    ) -> Answer:
        order = [chunk for chunk in order if chunk in shard.shown]
        number = {chunk: n for n, chunk in enumerate(order, start=1)}
        asked = sorted(number[chunk] for chunk in shard.chunks)
        messages, schema = self.prompts.judge(
            question.purpose,
            question.question,
            question.target,
            [question.texts[chunk] for chunk in order],
            asked,
            [question.claims[claim] for claim in shard.claims],
        )
        first_cap = _BASE_CAP + _CAP_PER_VERDICT * shard.asked
        try:
            completion = await self.complete(messages, schema, cap or first_cap)
        except ContextOverflowError as error:
            if len(order) == 1:
                return _unread(shard, f"the chunk does not fit the model's context: {error}")
            return await self._ask_halves(question, shard.halve_shown(), order, again=again)
        if completion.finish_reason == "length":
            if cap is None:
                return await self._ask(question, shard, order, again=again, cap=2 * first_cap)
            if shard.asked == 1:
                return _unread(shard, f"the reply was cut at {cap} tokens, twice")
            return await self._ask_halves(question, shard.halve_asked(), order, again=again)
        if completion.finish_reason in ("content_filter", "refusal"):
            if len(order) == 1:
                said = f": {short(completion.text)}" if completion.text else ""
                why = f"the model would not answer ({completion.finish_reason}){said}"
                return _unread(shard, why)
            return await self._ask_halves(question, shard.halve_shown(), order, again=again)
        answer = _answer(shard, order, completion.text, asked)
        missing = _missing(shard, answer)
        if not missing.asked or not again:
            return answer
        try:
            second = await self._ask(question, missing, order, again=False, cap=cap)
        except JudgeError as error:  # what was read is not lost to what could not be asked again
            second = _unread(
                missing, f"the reply could not be read, and to ask again failed: {error}"
            )
        return _joined([_without(answer, missing), second])

    async def _ask_halves(
        self, question: Question, halves: Iterable[Shard], order: list[str], *, again: bool
    ) -> Answer:
        return _joined(
            await all_of(
                self._ask(question, half, order, again=again, cap=None)
                for half in halves
                if half.asked
            )
        )

    async def split(self, reference: str) -> tuple[list[str], str]:
        """Ask for the claims of a reference.

        Returns:
            The claims, and "", or why there are none or not all.

        Raises:
            JudgeError: The endpoint gives no reply, for good.
        """
        messages, schema = self.prompts.split(reference)
        # Claims say what the text says: small models that repeat themselves soon come to the end.
        cap = _BASE_CAP + min(_CAP_PER_LETTER * len(reference), _CAP_PER_VERDICT * MAX_CLAIMS)
        claims: list[str] = []
        why = ""
        for _ in range(2):
            try:
                completion = await self.complete(messages, schema, cap)
            except ContextOverflowError as error:
                return [], f"the reference does not fit the model's context: {error}"
            claims = read_claims(completion.text)
            if completion.finish_reason == "length":
                claims, why = [], f"the reply was cut at {cap} tokens"
                cap *= 2
            elif len(claims) > MAX_CLAIMS:
                why = f"the model found {len(claims)} claims, more than {MAX_CLAIMS}"
            elif claims:
                return claims, ""
            else:
                why = f"the reply holds no claims: {short(completion.text)}"
        if len(claims) > MAX_CLAIMS:
            return claims[:MAX_CLAIMS], f"{why}: the first {MAX_CLAIMS} were judged"
        return [], f"the reference could not be split into claims: {why}"


def _answer(shard: Shard, order: list[str], text: str, asked: Sequence[int]) -> Answer:
    chunks, claims = read_verdicts(text, chunks=asked, claims=len(shard.claims), shown=len(order))
    shown = tuple(order)

    def named(reading: Reading) -> Reading:
        return replace(reading, reason=with_hashes(reading.reason, shown))

    return Answer(
        {order[number - 1]: named(reading) for number, reading in chunks.items()},
        [(shard.claims[number - 1], named(reading), shown) for number, reading in claims.items()],
    )


def _unread(shard: Shard, why: str) -> Answer:
    reading = Reading(None, why)
    return Answer(
        dict.fromkeys(shard.chunks, reading),
        [(claim, reading, shard.shown) for claim in shard.claims],
    )


def _missing(shard: Shard, answer: Answer) -> Shard:
    return Shard(
        shard.shown,
        tuple(chunk for chunk in shard.chunks if answer.chunks[chunk].value is None),
        tuple(claim for claim, reading, _ in answer.claims if reading.value is None),
    )


def _without(answer: Answer, shard: Shard) -> Answer:
    return Answer(
        {chunk: r for chunk, r in answer.chunks.items() if chunk not in shard.chunks},
        [entry for entry in answer.claims if entry[0] not in shard.claims],
    )


def _joined(answers: Iterable[Answer]) -> Answer:
    joined = Answer()
    for answer in answers:
        joined.chunks.update(answer.chunks)
        joined.claims.extend(answer.claims)
    return joined
