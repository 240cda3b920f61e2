"""What a judging would cost: the real thing, but for the model's answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from ctxeval.fields import MAX_CLAIMS
from ctxeval.judges.cells import CellCache, Finding, MemoryCache
from ctxeval.judges.llm import LLMJudge
from ctxeval.judges.prompts import read_document
from ctxeval.llm.protocol import LLM, Completion, FirstToken, Message, Schema
from ctxeval.verdicts import Usage

LETTERS_PER_TOKEN = 4
"""Of English; other languages have fewer."""

TOKENS_PER_VERDICT = 45
"""A reason of up to 25 words, with id and verdict."""


class Rehearsal:
    """Stands in for models and their caches, and counts what would have been asked.

    What is kept counts as answered; what would be asked is answered by "no", in a cache of
    its own. A reference counts as a claim per sentence.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.usage = Usage()
        self._models: dict[int, _Silent] = {}
        self._caches: dict[int, _Overlay] = {}

    def of(self, judge: LLMJudge) -> LLMJudge:
        """Make the judge that rehearses for this one."""
        made = copy(judge)
        made.llm = self._models.setdefault(id(judge.llm), _Silent(judge.llm, self))
        made.cache = self._caches.setdefault(id(judge.cache), _Overlay(judge.cache))
        return made


class _Silent:
    def __init__(self, llm: LLM, rehearsal: Rehearsal) -> None:
        self._llm = llm
        self._rehearsal = rehearsal

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._llm.identity

    async def complete(
        self, messages: Sequence[Message], schema: Schema, *, max_tokens: int | None = None
    ) -> Completion:
        text, tokens = _answer(read_document(messages))
        sent = sum(len(message["content"]) for message in messages) // LETTERS_PER_TOKEN
        usage = Usage(requests=1, prompt_tokens=sent, completion_tokens=tokens)
        self._rehearsal.usage += usage
        return Completion(text, usage)

    async def first_token(self, messages: Sequence[Message]) -> FirstToken:
        sent = sum(len(message["content"]) for message in messages) // LETTERS_PER_TOKEN
        usage = Usage(requests=1, prompt_tokens=sent, completion_tokens=1)
        self._rehearsal.usage += usage
        return FirstToken({"no": 0.0}, usage)


def _answer(document: Mapping[str, Any]) -> tuple[str, int]:
    """Answer by "no", and say how many tokens a real answer would have."""
    if "text" in document:
        claims = [
            part for part in re.split(r"(?<=[.!?。！？])\s*", document["text"]) if part.strip()
        ]
        return json.dumps({"claims": claims[:MAX_CLAIMS]}), len(
            document["text"]
        ) // LETTERS_PER_TOKEN
    numbers = {
        "claims": [claim["id"] for claim in document.get("claims", ())],
        "chunks": document.get("judge_chunks", []),
    }
    reply = {
        name: [{"id": n, "reason": "", "verdict": "no"} for n in of] for name, of in numbers.items()
    }
    return json.dumps(reply), TOKENS_PER_VERDICT * sum(map(len, numbers.values()))


class _Overlay:
    """Reads what is kept, and keeps what is rehearsed to itself."""

    def __init__(self, kept: CellCache) -> None:
        self._kept = kept
        self._own = MemoryCache(max_cells=10_000_000)

    def get_many(self, keys: Sequence[str]) -> dict[str, list[Finding]]:
        found = {key: list(findings) for key, findings in self._kept.get_many(keys).items()}
        for key, findings in self._own.get_many(keys).items():
            found.setdefault(key, []).extend(findings)
        return found

    def put_many(self, findings: Iterable[tuple[str, Finding]]) -> None:
        self._own.put_many(findings)
