"""What an endpoint accepts, learnt from its own refusals.

OpenAI-compatible endpoints differ: some know no JSON schema, some models refuse a
temperature, some name the output cap differently. Each refusal costs one call per
process, since what was learnt of an endpoint and a model is kept.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from ctxeval.llm.faults import Fault
from ctxeval.llm.loop import PerLoop
from ctxeval.llm.protocol import Schema

_FORMAT_WORDS = ("response_format", "json_schema", "json_object", "schema", "structured", "grammar")
MOST, FEWER = 20, 5
"""How many of the likeliest tokens are asked for: as many as OpenAI tells, or what all tell."""

FIRST_TOKENS = 2
_CAPS = ("max_tokens", "max_completion_tokens", "")


class Dialect:
    """What one endpoint accepts of one model.

    Attributes:
        version: Counts what was learnt, so that a call which was under way meanwhile
            is simply sent again.
        settled: Has the endpoint accepted a call?
        top: How many of the likeliest tokens it tells.
        silent: Did the last call get no answer? Then nobody waits for another to find out:
            with long timeouts, one call after the other would take hours.
        probe: Held by the one call that finds out, while others wait.
    """

    def __init__(self) -> None:
        """Assume the best."""
        self.format = 0
        self.cap = 0
        self.top = MOST
        self.dropped: set[str] = set()
        self.version = 0
        self.settled = False
        self.silent = False
        self.probe = PerLoop(asyncio.Lock)
        self._before_guess: tuple[int, set[str]] | None = None

    @property
    def unknown(self) -> bool:
        """Is it still to be found out, by one call alone, what is accepted?"""
        return not (self.settled or self.silent)

    def apply(
        self, parameters: dict[str, Any], schema: Schema, max_tokens: int | None
    ) -> dict[str, Any]:
        """Write a request's parameters as the endpoint wants them."""
        written = self._written(parameters, max_tokens)
        named: dict[str, Any] = {"name": "verdicts", "schema": schema}
        if self.format == 0:
            named["strict"] = True
        if self.format <= 1:
            written["response_format"] = {"type": "json_schema", "json_schema": named}
        elif self.format == 2:
            written["response_format"] = {"type": "json_object"}
        return written

    def apply_first(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Write the parameters of a request for the probabilities of the first token."""
        written = {"logprobs": True, "top_logprobs": self.top}
        # Some models begin with white space.
        return {**self._written(parameters, FIRST_TOKENS), **written}

    def _written(self, parameters: dict[str, Any], max_tokens: int | None) -> dict[str, Any]:
        written = {name: v for name, v in parameters.items() if name not in self.dropped}
        users_own = any(cap and cap in written for cap in _CAPS)
        if max_tokens is not None and _CAPS[self.cap] and not users_own:
            # Models that want the newer name spend part of the cap on reasoning.
            written[_CAPS[self.cap]] = max_tokens * 4 if self.cap else max_tokens
        return written

    def learn(self, fault: Fault, sent: dict[str, Any]) -> bool:
        """Learn from a refusal what to leave out.

        Args:
            fault: What the endpoint answered.
            sent: The parameters that it refused.

        Returns:
            Was something learnt, so that the call is worth sending again?
        """
        if fault.status not in (400, 422) or fault.overflow:
            return False
        learnt = self._learn(fault, sent)
        self.version += learnt
        return learnt

    def _learn(self, fault: Fault, sent: dict[str, Any]) -> bool:
        said = f"{fault.param} {fault.message}".casefold()
        if any(word in said for word in _FORMAT_WORDS):
            return self._next_format(sent)
        cap = _CAPS[self.cap]
        if cap and cap in sent and ("max_tokens" in said or "max_completion_tokens" in said):
            self.cap += 1
            return True
        if "top_logprobs" in said and sent.get("top_logprobs", 0) > FEWER:
            self.top = FEWER
            return True
        if "logprobs" in said and "logprobs" in sent:
            return False  # it is what the request is for
        # A parameter counts as named only as a whole word: "seed" is in no "seeded".
        words = set(re.findall(r"\w+", said))
        named = [name for name in sent if name in words or name.rstrip("s") in words]
        droppable = [name for name in named if name not in ("model", "messages", "response_format")]
        if droppable:
            self.dropped.update(droppable)
            return True
        # It does not say what is wrong; the format is what differs most between endpoints,
        # unless this one has accepted it before.
        if self.settled:
            return False
        if self._before_guess is None:
            self._before_guess = (self.format, set(self.dropped))
        return self._next_format(sent) or self._without_temperature(sent)

    def take_back(self) -> None:
        """Forget what was only guessed, since no guess was accepted either."""
        if self._before_guess is not None and not self.settled:
            self.format, self.dropped = self._before_guess
            self._before_guess = None
            self.version += 1

    def _without_temperature(self, sent: dict[str, Any]) -> bool:
        """Try what differs next most, with the formats all over again."""
        if "temperature" not in sent:
            return False
        self.dropped.add("temperature")
        self.format = 0
        return True

    def _next_format(self, sent: dict[str, Any]) -> bool:
        if "response_format" not in sent:
            return False
        self.format += 1
        return True


_known: dict[tuple[str, str], Dialect] = {}


def dialect_of(endpoint: str, model: str) -> Dialect:
    """Get what this process has learnt of an endpoint and a model."""
    return _known.setdefault((endpoint, model), Dialect())
