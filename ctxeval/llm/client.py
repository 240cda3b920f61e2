"""A client for every OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import inspect
import random
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

from ctxeval.errors import AuthenticationError, ContextOverflowError, JudgeError, QuotaError
from ctxeval.keys import as_cause, said_by_others
from ctxeval.llm.dialect import dialect_of
from ctxeval.llm.faults import Fault, without_keys
from ctxeval.llm.loop import PerLoop, in_thread
from ctxeval.llm.protocol import Completion, FirstToken, Message, Schema
from ctxeval.llm.responses import read_completion, read_first_token
from ctxeval.verdicts import Usage

FIRST_WAIT = 0.5
"""Seconds before the first retry; each next one waits twice as long."""

LONGEST_BACKOFF = 8.0
"""Seconds that a wait grows to, where the endpoint does not ask for more."""


class OpenAICompatible:
    """A model behind an endpoint that speaks OpenAI's chat completions.

    Made by `llm_factory`, which documents the arguments.
    """

    def __init__(
        self,
        model: str,
        make_client: Callable[[], Any],
        *,
        endpoint: str,
        parameters: Mapping[str, Any],
        concurrency: int,
        max_retries: int,
        max_wait: float,
        timeout: float | None = None,
        secret: str | None = None,
        owns_client: bool = True,
    ) -> None:
        """Keep the settings; the client is made on the loop at the first call."""
        self.model = model
        self.endpoint = endpoint
        self.concurrency = concurrency
        self._parameters = dict(parameters)
        self._max_retries = max_retries
        self._max_wait = max_wait
        self._timeout = timeout
        self._secret = secret
        self._owns_client = owns_client
        self._client = PerLoop(make_client)
        self._dialect = dialect_of(endpoint, model)

    def __getstate__(self) -> dict[str, Any]:
        """Send all but what was learnt of the endpoint: each process learns that itself."""
        return {name: value for name, value in vars(self).items() if name != "_dialect"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what was sent."""
        vars(self).update(state)
        self._dialect = dialect_of(self.endpoint, self.model)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Endpoint, model and parameters; no key, and nothing that may hold one."""
        parameters = _without_secrets(self._parameters)
        return {"endpoint": self.endpoint, "model": self.model, "parameters": parameters}

    def __repr__(self) -> str:
        """Show model and endpoint; no key."""
        return f"<LLM {self.model} at {self.endpoint}>"

    async def complete(
        self, messages: Sequence[Message], schema: Schema, *, max_tokens: int | None = None
    ) -> Completion:
        """Ask for one chat completion; see `LLM.complete`.

        Refused parameters are left out and learnt; 429, 5xx, timeouts and connection
        errors are tried again with growing, jittered waits.
        """
        try:
            response = await self._ask(lambda: self._probe_or_send(messages, schema, max_tokens))
        except _Filtered as filtered:
            usage = Usage(requests=1, unreported=1)
            return Completion(str(filtered), usage, "content_filter", self.model)
        return read_completion(response)

    async def first_token(self, messages: Sequence[Message]) -> FirstToken:
        """Ask how the answer would begin; see `FirstTokenLLM.first_token`."""
        hint = 'judge with mode="joint" or "pointwise" instead'
        try:
            response = await self._ask(
                lambda: self._send(messages, self._dialect.apply_first(self._parameters))
            )
        except _Filtered as filtered:
            usage = Usage(requests=1, unreported=1)
            return FirstToken({}, usage, self.model, f"the model would not answer: {filtered}")
        except JudgeError as error:
            if "logprobs" in str(error):
                error.args = (f"{error}. It tells no log-probabilities: {hint}",)
            raise
        first = read_first_token(response)
        if not first.logprobs and not first.refusal:
            raise JudgeError(f"{self.model} at {self.endpoint} tells no log-probabilities: {hint}")
        return first

    async def _ask(self, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send until there is a response: differently, or later, as the endpoint wants it."""
        dialect = self._dialect
        retries = 0
        while True:
            try:
                return await send()
            except _Refused as refused:
                fault = refused.fault
                dialect.silent = fault.unreachable
                if fault.filtered:
                    raise _Filtered(self._safe(fault.message)) from None
                if fault.overflow:
                    raise ContextOverflowError(self._say(fault)) from self._cause(refused)
                if dialect.version != refused.version or dialect.learn(fault, refused.sent):
                    continue
                wait = self._wait(fault, retries)
                if wait is None:
                    dialect.take_back()
                    error = self._error(fault, retries)
                    error.attempts = retries + 1
                    raise error from self._cause(refused)
                retries += 1
                await asyncio.sleep(wait)

    async def _probe_or_send(
        self, messages: Sequence[Message], schema: Schema, max_tokens: int | None
    ) -> Any:
        """Send at once where the dialect is known; else one call finds out, the rest wait."""
        if self._dialect.unknown:
            async with self._dialect.probe.get():
                if self._dialect.unknown:
                    return await self._settle(messages, schema, max_tokens)
        return await self._settle(messages, schema, max_tokens)

    async def _settle(
        self, messages: Sequence[Message], schema: Schema, max_tokens: int | None
    ) -> Any:
        response = await self._send(
            messages, self._dialect.apply(self._parameters, schema, max_tokens)
        )
        self._dialect.settled = True
        return response

    async def _send(self, messages: Sequence[Message], sent: dict[str, Any]) -> Any:
        version = self._dialect.version
        create = self._client.get().chat.completions.create
        call = {"model": self.model, "messages": messages, **sent}
        if "response_format" in sent and _takes_extra_body(getattr(create, "__func__", create)):
            # The SDK goes through all that it is given, step by step through a schema, but not
            # through this: an eighth of a call's CPU time.
            form = call.pop("response_format")
            call["extra_body"] = {"response_format": form, **(sent.get("extra_body") or {})}
        try:
            if inspect.iscoroutinefunction(inspect.unwrap(create)):
                # Total: the client's own timeout begins anew with every byte.
                async with asyncio.timeout(self._timeout):
                    response = await create(**call)
            else:
                response = await in_thread(partial(create, **call))
                if inspect.isawaitable(response):
                    response = await response
        except Exception as error:
            raise _Refused(Fault(error), sent, version, error) from None
        return response

    def _wait(self, fault: Fault, retries: int) -> float | None:
        """Say how long to wait before trying again; None: don't."""
        if not fault.passing or retries >= self._max_retries:
            return None
        if fault.retry_after is not None:
            return fault.retry_after if fault.retry_after <= self._max_wait else None
        longest = min(FIRST_WAIT * 2**retries, LONGEST_BACKOFF, self._max_wait)
        return random.uniform(longest / 2, longest)

    def _error(self, fault: Fault, retries: int) -> JudgeError:
        said = self._say(fault)
        if fault.status in (401, 403):
            return AuthenticationError(f"{said}. Check the key and what it may use")
        if fault.no_credit:
            return QuotaError(f"{said}. Add credit to the account; trying again won't help")
        if fault.passing and fault.retry_after is not None and fault.retry_after > self._max_wait:
            return JudgeError(
                f"{said}. It asks to wait {fault.retry_after:g} s, longer than max_wait="
                f"{self._max_wait:g}: raise that in llm_factory, or come back later"
            )
        if fault.unreachable:
            return JudgeError(
                f"{said}, also after {retries} retries. Is it running, and is base_url right?"
            )
        if fault.passing:
            return JudgeError(f"{said}, also after {retries} retries. Try again later")
        return JudgeError(f"{said}. Check model and base_url")

    def _say(self, fault: Fault) -> str:
        what = f"answered {fault.status}" if fault.status else "gave no answer"
        message = said_by_others(self._safe(fault.message))
        return f"{self.model} at {self.endpoint} {what}: {message.rstrip('.')}"

    def _cause(self, refused: _Refused) -> BaseException | None:
        return as_cause(refused.cause, self._secret or "")

    def _safe(self, message: str) -> str:
        if self._secret:
            message = message.replace(self._secret, "[key]")
        return without_keys(message)

    async def aclose(self) -> None:
        """Close the connections that ctxeval opened; the next call opens new ones."""
        if not self._owns_client:
            return
        client, self._client = self._client, PerLoop(self._client.make)
        close = getattr(client.made(), "close", None)
        if close is not None:
            closing = close()
            if inspect.isawaitable(closing):
                await closing


class _Filtered(Exception):
    """A filter of the endpoint stopped the prompt."""


@cache
def _takes_extra_body(create: Callable[..., Any]) -> bool:
    """Is it of a client that sends an `extra_body` along as it is, as OpenAI's and its kin do?"""
    try:
        return "extra_body" in inspect.signature(create).parameters
    except (TypeError, ValueError):  # it is none of Python's own
        return False


class _Refused(Exception):
    """A call that brought no completion, with what was sent in which state of knowledge."""

    def __init__(self, fault: Fault, sent: dict[str, Any], version: int, cause: Exception) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.sent = sent
        self.version = version
        self.cause = cause


_SECRET = re.compile(r"key|token(?!s)|secret|password|auth|headers", re.IGNORECASE)


def _without_secrets(parameters: Any) -> Any:
    """Leave out whatever is named like a secret, at any depth."""
    if not isinstance(parameters, Mapping):
        return parameters
    return {
        name: _without_secrets(value)
        for name, value in parameters.items()
        if not _SECRET.search(str(name))
    }


def origin(url: str) -> str:
    """Reduce an address to what identifies the endpoint: no user, no query, no key."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}" if host else url.split("?")[0]
