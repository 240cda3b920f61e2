"""Call a model: as many calls at a time as it takes, each counted, each failure a JudgeError."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, TypeVar

from ctxeval.errors import CtxEvalError, JudgeError, describe, short
from ctxeval.keys import as_cause, without_secrets
from ctxeval.llm.loop import PerLoop, PerObject
from ctxeval.llm.protocol import LLM, Completion, FirstToken, FirstTokenLLM, Message, Schema
from ctxeval.verdicts import Usage

ROUNDING = 0.01
"""By so much a log-probability may be above 0."""

T = TypeVar("T")
A = TypeVar("A", Completion, FirstToken)


class Caller:
    """Calls a model and counts what that costs.

    Args:
        llm: The model.

    Attributes:
        llm: The model.
        usage: What its calls have cost so far.
    """

    def __init__(self, llm: LLM) -> None:
        """See the class."""
        self.llm = llm
        self.usage = Usage()

    async def complete(
        self, messages: Sequence[Message], schema: Schema, max_tokens: int
    ) -> Completion:
        """Have the model answer; see `LLM.complete`.

        Raises:
            JudgeError: There is no reply, for good.
        """
        completion = await self._call(
            lambda: self.llm.complete(messages, schema, max_tokens=max_tokens)
        )
        if not isinstance(completion, Completion) or not isinstance(completion.text, str):
            raise self._no(completion, "complete", "a ctxeval.Completion with a text")
        return self._counted(completion, "complete")

    async def first_token(self, messages: Sequence[Message]) -> FirstToken:
        """Have the model begin to answer; see `FirstTokenLLM.first_token`.

        Where it tells what no log-probability can be, it has told none, and the refusal says so.

        Raises:
            JudgeError: There is no reply, for good.
        """
        llm = self.llm
        assert isinstance(llm, FirstTokenLLM)  # the judge has seen to it
        first = await self._call(lambda: llm.first_token(messages))
        if not isinstance(first, FirstToken) or not isinstance(first.logprobs, Mapping):
            raise self._no(first, "first_token", "a ctxeval.FirstToken with a mapping of words")
        first = self._counted(first, "first_token")
        for word, told in first.logprobs.items():
            if not isinstance(word, str) or not _is_logprob(told):
                said = (
                    f"{short(told)} for {short(word)} is no log-probability: the model must tell "
                    "natural logarithms, which are at most 0"
                )
                return replace(first, logprobs={}, refusal=first.refusal or said)
        return first

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            async with slots(self.llm):
                return await call()
        except JudgeError as error:
            self.usage += Usage(requests=error.attempts, unreported=error.attempts)
            error.args = (without_secrets(str(error)),)
            raise error from error.__cause__ and as_cause(error.__cause__)
        except CtxEvalError:
            raise
        except Exception as error:  # a model of the user's own may raise anything
            self.usage += Usage(requests=1, unreported=1)
            said = without_secrets(f"{type(self.llm).__name__} failed: {describe(error)}")
            raise JudgeError(said) from as_cause(error)

    def _counted(self, answer: A, method: str) -> A:
        if not isinstance(answer.usage, Usage):
            raise self._no(answer, method, "its usage as a ctxeval.Usage")
        self.usage += answer.usage
        return answer

    def _no(self, answer: object, method: str, wanted: str) -> JudgeError:
        return JudgeError(
            f"{type(self.llm).__name__}: {method}() gave {short(answer)}: it must give {wanted}"
        )


def _is_logprob(told: object) -> bool:
    """Can that be a logarithm of a probability? Sums of rounded ones may just pass 0."""
    return isinstance(told, Real) and not isinstance(told, bool) and float(told) <= ROUNDING


async def all_of(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Await all, and only then raise the first error: what was answered is not lost."""
    awaited = list(coroutines)
    if len(awaited) == 1:  # which needs no task of its own
        return [await awaited[0]]
    results = await asyncio.gather(*awaited, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results  # type: ignore[return-value]  # no exception is among them


CONCURRENCY: ContextVar[int | None] = ContextVar("ctxeval_concurrency", default=None)
"""How many calls are under way at most, where somebody says so for a whole evaluation."""


def _no_slots(llm: LLM) -> dict[int, PerLoop[asyncio.Semaphore]]:
    return {}


_slots: PerObject[dict[int, PerLoop[asyncio.Semaphore]]] = PerObject(_no_slots)


def slots(llm: LLM) -> asyncio.Semaphore:
    """Give the semaphore that limits the calls of a model. To be called on the loop."""
    limit = CONCURRENCY.get()
    if limit is None:
        limit = getattr(llm, "concurrency", 16)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise JudgeError(f"concurrency: {short(limit)} of {short(llm)} is no integer >= 1")
    by_limit = _slots.of(llm)
    return by_limit.setdefault(limit, PerLoop(partial(asyncio.Semaphore, limit))).get()
