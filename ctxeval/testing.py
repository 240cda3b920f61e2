"""A model that answers by script, for tests and for trying things out without a key."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import log
from typing import Any
from uuid import uuid4

from ctxeval.errors import InvalidArgumentError, short
from ctxeval.llm.protocol import Completion, FirstToken, Message, Schema
from ctxeval.verdicts import Usage

_PROCESS = uuid4().hex[:8]

Relevant = Collection[str] | Callable[[str, str], bool | float]
Supported = Mapping[str, Collection[str]] | Callable[[str, Sequence[str]], Collection[int]]
Claims = Mapping[str, Sequence[str]] | Callable[[str], Sequence[str]]
Reply = str | Completion | Exception


class ScriptedLLM:
    """A model that answers ctxeval's prompts by rules of yours, and remembers what it was asked.

    Args:
        relevant: The chunks that are useful, or a function of (question, chunk) that
            says so; it may give a probability, which `mode="logprob"` gets to see.
        supported: Per claim the chunks that support it, any one of them alone; or a
            function of (claim, chunks) that gives the indices of those that it needs.
        claims: Per reference its claims, or a function that gives them. Without one a
            reference is split at its full stops.
        replies: What to answer first, in this order, whatever is asked: text, a
            `Completion`, or an exception to raise. Then the rules apply.
        concurrency: How many calls are under way at most.

    Attributes:
        documents: What was asked, call by call, as read from the prompts.
        calls: The messages, call by call.

    Examples:
        >>> from ctxeval import ContextPrecision
        >>> llm = ScriptedLLM(relevant={"Paris is the capital of France."})
        >>> result = ContextPrecision(llm).score(
        ...     user_input="What is the capital of France?",
        ...     reference="Paris.",
        ...     retrieved_contexts=["Lyon is a city.", "Paris is the capital of France."],
        ... )
        >>> result.value
        0.5
    """

    _numbers = itertools.count(1)

    def __init__(
        self,
        relevant: Relevant = (),
        supported: Supported | None = None,
        claims: Claims | None = None,
        *,
        replies: Iterable[Reply] = (),
        concurrency: int = 16,
    ) -> None:
        """See the class."""
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
            raise InvalidArgumentError(f"concurrency: {short(concurrency)} is no integer >= 1")
        self._relevant = {relevant} if isinstance(relevant, str) else relevant
        self._supported = supported or {}
        self._claims = claims or {}
        self._replies = iter(replies)
        self._number = next(self._numbers)
        self.concurrency = concurrency
        self.calls: list[Sequence[Message]] = []
        self.documents: list[dict[str, Any]] = []

    @property
    def identity(self) -> Mapping[str, Any]:
        """Each scripted model is one of its own: none gets another's kept verdicts."""
        return {"endpoint": f"scripted in {_PROCESS}", "model": f"scripted-{self._number}"}

    async def complete(
        self, messages: Sequence[Message], schema: Schema, *, max_tokens: int | None = None
    ) -> Completion:
        """Answer by the next reply, or by the rules."""
        from ctxeval.judges.prompts import read_document

        self.calls.append(messages)
        self.documents.append(read_document(messages))
        reply = next(self._replies, None)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Completion):
            return reply
        text = self.answer(messages) if reply is None else reply
        prompt = sum(len(message["content"]) for message in messages) // 4
        return Completion(text, Usage(1, prompt, len(text) // 4), model="scripted")

    async def first_token(self, messages: Sequence[Message]) -> FirstToken:
        """Answer a question whose answer is one word: by the next reply, or by the rules."""
        from ctxeval.judges.yes_no import read_texts

        self.calls.append(messages)
        self.documents.append(read_texts(messages))
        reply = next(self._replies, None)
        if isinstance(reply, Exception):
            raise reply
        word = reply.text if isinstance(reply, Completion) else reply
        told = self.probabilities(messages) if word is None else {word: 1.0}
        prompt = sum(len(message["content"]) for message in messages) // 4
        logprobs = {word: log(p) for word, p in told.items() if p > 0}
        return FirstToken(logprobs, Usage(1, prompt, 1), model="scripted")

    def probabilities(self, messages: Sequence[Message]) -> dict[str, float]:
        """Answer a question whose answer is one word by the rules: how likely is which?"""
        from ctxeval.judges.yes_no import read_texts

        document = read_texts(messages)
        if "claim" in document:
            yes = float(bool(self._needed(document["claim"], document["chunks"])))
        else:
            yes = self._probability(document["question"], document["text"])
        return {"yes": yes, "no": 1 - yes}

    def answer(self, messages: Sequence[Message]) -> str:
        """Answer one of ctxeval's prompts by the rules, as JSON."""
        from ctxeval.judges.prompts import read_document

        document = read_document(messages)
        if "text" in document:
            return json.dumps({"claims": list(self._split(document["text"]))})
        texts = [chunk["text"] for chunk in document["chunks"]]
        reply: dict[str, Any] = {}
        if "claims" in document:
            reply["claims"] = [
                self._claim_verdict(claim["id"], self._needed(claim["claim"], texts))
                for claim in document["claims"]
            ]
        if "judge_chunks" in document:
            reply["chunks"] = [
                {
                    "id": number,
                    "reason": "by script",
                    "verdict": self._chunk_verdict(document["question"], texts[number - 1]),
                }
                for number in document["judge_chunks"]
            ]
        return json.dumps(reply)

    def _split(self, reference: str) -> Sequence[str]:
        if callable(self._claims):
            return self._claims(reference)
        if reference in self._claims:
            return self._claims[reference]
        return [f"{part.strip()}." for part in reference.split(".") if part.strip()]

    def _needed(self, claim: str, texts: Sequence[str]) -> Collection[int]:
        if callable(self._supported):
            return self._supported(claim, texts)
        supporting = self._supported.get(claim, ())
        return [index for index, text in enumerate(texts) if text in supporting][:1]

    @staticmethod
    def _claim_verdict(number: int, needed: Collection[int]) -> dict[str, Any]:
        return {
            "id": number,
            "reason": "by script",
            "supporting_chunks": [index + 1 for index in needed],
            "verdict": "yes" if needed else "no",
        }

    def _chunk_verdict(self, question: str, text: str) -> str:
        return "yes" if self._probability(question, text) >= 0.5 else "no"

    def _probability(self, question: str, text: str) -> float:
        relevant = self._relevant
        told = relevant(question, text) if callable(relevant) else text in relevant
        return told if isinstance(told, float) else float(bool(told))
