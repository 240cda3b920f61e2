"""What a model may cost, of all processes together that share a store."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from ctxeval import (
    LLM,
    Completion,
    FirstToken,
    FirstTokenLLM,
    InvalidArgumentError,
    JudgeError,
    Store,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a model may cost, and where that is counted.

    Attributes:
        store: Where it is counted, and where verdicts are kept.
        requests_per_minute: How many requests a model may get; None: any.
        tokens_per_day: How many tokens may be spent on one day (UTC); None: any.
    """

    store: Store | None = None
    requests_per_minute: int | None = None
    tokens_per_day: int | None = None

    @classmethod
    def checked(
        cls, store: Store | None, requests_per_minute: int | None, tokens_per_day: int | None
    ) -> Self:
        """Check what a user gives.

        Raises:
            InvalidArgumentError: A number is out of range, or there is nowhere to count.
        """
        for name, limit in (
            ("max_requests_per_minute", requests_per_minute),
            ("max_tokens_per_day", tokens_per_day),
        ):
            if limit is None:
                continue
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                raise InvalidArgumentError(f"{name}: {limit!r} is no limit: give an integer >= 1")
            if store is None:
                raise InvalidArgumentError(
                    f"{name}: the actors count in a store: give store='ctxeval.db' too"
                )
        return cls(store, requests_per_minute, tokens_per_day)

    def of(self, llm: LLM) -> LLM:
        """Give a model that keeps to them."""
        if self.store is None or self.requests_per_minute is self.tokens_per_day is None:
            return llm
        return (
            LimitedFirstToken(llm, self) if isinstance(llm, FirstTokenLLM) else Limited(llm, self)
        )


class Limited:
    """A model that waits for its turn, and stops where the day's tokens are spent."""

    def __init__(self, llm: LLM, limits: Limits) -> None:
        """Keep both."""
        self._llm = llm
        self._limits = limits
        identity = json.dumps(dict(llm.identity), sort_keys=True, default=str)
        self._name = hashlib.sha256(identity.encode()).hexdigest()[:12]

    @property
    def identity(self) -> Mapping[str, Any]:
        """The model's own: what it may cost changes no verdict."""
        return self._llm.identity

    async def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any],
        *,
        max_tokens: int | None = None,
    ) -> Completion:
        """Ask when it is time to.

        Raises:
            JudgeError: The day's tokens are spent; or as of the model.
        """
        await self._may()
        completion = await self._llm.complete(messages, schema, max_tokens=max_tokens)
        await self._spent(completion.usage)
        return completion

    async def _may(self) -> None:
        """Wait for the next turn, if the day has tokens left."""
        limits, store = self._limits, self._limits.store
        assert store is not None
        if limits.tokens_per_day is not None:
            spent = await asyncio.to_thread(store.tokens_of, _today())
            if spent >= limits.tokens_per_day:
                spent_up = JudgeError(
                    f"the budget of {limits.tokens_per_day} tokens a day is spent: {spent}. Go on "
                    "tomorrow, or raise max_tokens_per_day"
                )
                spent_up.attempts = 0
                raise spent_up
        if limits.requests_per_minute is not None:
            wait = await asyncio.to_thread(
                store.take_turn, self._name, 60 / limits.requests_per_minute
            )
            await asyncio.sleep(wait)

    async def _spent(self, usage: Usage) -> None:
        store = self._limits.store
        assert store is not None
        if tokens := usage.prompt_tokens + usage.completion_tokens:
            await asyncio.to_thread(store.add_tokens, _today(), tokens)


class LimitedFirstToken(Limited):
    """The same for a model that tells probabilities too."""

    async def first_token(self, messages: Sequence[Mapping[str, str]]) -> FirstToken:
        """Ask when it is time to; see `Limited.complete`."""
        await self._may()
        llm = self._llm
        assert isinstance(llm, FirstTokenLLM)
        first = await llm.first_token(messages)
        await self._spent(first.usage)
        return first


def _today() -> Any:
    return datetime.now(UTC).date()
