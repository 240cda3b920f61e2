"""Any LlamaIndex model as the model that judges."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextvars import Context
from typing import Any, NamedTuple

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.llms import ChatMessage, ChatResponse

from ctxeval import LLM, Completion, Fault, InvalidArgumentError, Ways, in_thread
from ctxeval_llamaindex.identity import identity_of
from ctxeval_llamaindex.replies import read_reply
from ctxeval_llamaindex.suppression import suppress


def as_llm(llm: BaseLLM, *, concurrency: int = 16) -> LLM:
    """Let a LlamaIndex model judge.

    It is asked by `chat`, in a thread: an asynchronous client belongs to the loop of its
    first call, which may be the application's, and models keep one for good; the
    synchronous one works in any thread. Only a model without `chat` is asked by `achat`.
    OpenAI's class and those made from it are asked for JSON by its schema; what a model
    refuses is left out from then on. Trying again is up to the model (`max_retries`), and
    where it has a cap on the output of its own, as OpenAI's class, that one counts.

    Its calls make events, as all do, with `ctxeval_llamaindex.suppression.suppressed` set:
    no capture of ctxeval's records them.

    Args:
        llm: Any model, as it is now: later changes don't show in `identity`.
        concurrency: How many calls are under way at most.

    Returns:
        What metrics, `ctxeval.score` and `ContextEvaluator` take as `llm`.

    Raises:
        InvalidArgumentError: It is no model, or `concurrency` is no number of calls.
    """
    if not isinstance(llm, BaseLLM):
        raise InvalidArgumentError(
            f"llm: a {type(llm).__name__} is no LLM of LlamaIndex: give one, Settings.llm, say"
        )
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise InvalidArgumentError(f"concurrency: {concurrency!r} is no number of calls: 16, say")
    return _LlamaIndexLLM(llm, concurrency)


def judging(llm: LLM | BaseLLM | None) -> LLM | None:
    """Take a model for judging as it is, or make one of a model of LlamaIndex's.

    Raises:
        InvalidArgumentError: It is no model.
    """
    if isinstance(llm, BaseLLM):
        return as_llm(llm)
    if llm is not None and not callable(getattr(llm, "complete", None)):
        raise InvalidArgumentError(
            f"llm: a {type(llm).__name__} is no model: give one of LlamaIndex's or ctxeval's"
        )
    return llm


class _Way(NamedTuple):
    """How a model is asked; what it refused is False, or has been passed over."""

    structured: bool
    caps: tuple[str, ...]
    by_chat: bool = True


class _LlamaIndexLLM:
    """An `LLM` made of a model of LlamaIndex's; see `as_llm`."""

    def __init__(self, model: BaseLLM, concurrency: int) -> None:
        self.concurrency = concurrency
        self._model = model
        self._identity = identity_of(model)
        like_openai = any(kind.__name__ == "OpenAI" for kind in type(model).__mro__)
        caps = ("max_tokens", "max_completion_tokens") if like_openai else ("max_tokens",)
        self._ways = Ways(_Way(like_openai, caps), _poorer)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Class, model and parameters; nothing that may be or hold a key."""
        return self._identity

    def __repr__(self) -> str:
        return f"<LLM {self._identity['class']}>"

    async def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any],
        *,
        max_tokens: int | None = None,
    ) -> Completion:
        """Ask the model; see `LLM.complete`."""
        said = [ChatMessage(role=m["role"], content=m["content"]) for m in messages]
        try:
            return await self._ways.ask(
                lambda way: self._send(said, schema, max_tokens, way), read_reply
            )
        except Exception as error:
            fault = Fault(error)
            if fault.completion is not None:
                return fault.completion
            raise fault.as_error(type(self._model).__name__) from fault.cause

    async def _send(
        self,
        said: list[ChatMessage],
        schema: Mapping[str, Any],
        max_tokens: int | None,
        way: _Way,
    ) -> ChatResponse:
        options: dict[str, Any] = {}
        if way.caps and max_tokens is not None:
            # Models that want the newer name spend part of the cap on reasoning.
            newer = way.caps[0] == "max_completion_tokens"
            options[way.caps[0]] = self._ways.capped(max_tokens, reasons=newer)
        if way.structured:
            named = {"name": "verdicts", "strict": True, "schema": schema}
            options["response_format"] = {"type": "json_schema", "json_schema": named}
        # An empty context: the application's tags, spans and handlers are not in it.
        if way.by_chat:
            return await in_thread(lambda: self._chat(said, options), Context())
        call = self._achat(said, options)
        return await asyncio.get_running_loop().create_task(call, context=Context())

    def _chat(self, said: list[ChatMessage], options: dict[str, Any]) -> ChatResponse:
        with suppress():
            return self._model.chat(said, **options)

    async def _achat(self, said: list[ChatMessage], options: dict[str, Any]) -> ChatResponse:
        with suppress():
            return await self._model.achat(said, **options)


def _poorer(way: _Way, error: Exception) -> _Way | None:
    """Say what to try after an error; None: nothing."""
    if isinstance(error, NotImplementedError) and way.by_chat:
        return way._replace(by_chat=False)
    if not Fault(error).of_the_way:
        return None
    if way.caps and re.search(r"max_\w*tokens", str(error)):
        return way._replace(caps=way.caps[1:])
    return way._replace(structured=False) if way.structured else None
