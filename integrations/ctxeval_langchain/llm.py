"""Any LangChain chat model as the model that judges."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from ctxeval import LLM, Completion, Fault, InvalidArgumentError, Ways, in_thread
from ctxeval_langchain.completions import completion_of
from ctxeval_langchain.identity import identity_of

_CAPS = ("max_tokens", "max_output_tokens", "max_new_tokens", "num_predict")
"""How the fields of chat models name the cap on the output."""


def as_llm(chat_model: BaseChatModel, *, concurrency: int = 16) -> LLM:
    """Let a LangChain chat model judge.

    Structured output is used where the model has it; what it refuses is left out from then
    on. Trying again is up to the model (`max_retries`). Of its calls no callbacks are told
    but those that the model itself was made with.

    Args:
        chat_model: Any chat model, as it is now: later changes don't show in `identity`.
            Its own cap on the output gives way to that of each call.
        concurrency: How many calls are under way at most.

    Returns:
        What metrics, `ctxeval.score` and `CtxEvalCallbackHandler` take as `llm`.

    Raises:
        InvalidArgumentError: It is no chat model, or `concurrency` is no number of calls.
    """
    if not isinstance(chat_model, BaseChatModel):
        raise InvalidArgumentError(
            f"chat_model: a {type(chat_model).__name__} is no BaseChatModel: give the chat model "
            "itself, with its parameters set when it is made rather than bound"
        )
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise InvalidArgumentError(f"concurrency: {concurrency!r} is no number of calls: 16, say")
    return _ChatModelLLM(chat_model, concurrency)


class _Way(NamedTuple):
    """How a model is asked; what it refused is False."""

    structured: bool
    capped: bool
    in_thread: bool = True


class _ChatModelLLM:
    """An `LLM` made of a chat model; see `as_llm`."""

    def __init__(self, model: BaseChatModel, concurrency: int) -> None:
        self.concurrency = concurrency
        self._model = model
        kind = type(model)
        self._identity = identity_of(model)
        self._cap = next((name for name in _CAPS if name in kind.model_fields), "")
        self._has_async = kind._agenerate is not BaseChatModel._agenerate
        self._ways = Ways(_Way(_offers_structure(model), bool(self._cap)), self._poorer)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Class and parameters; nothing that may be or hold a key."""
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
        try:
            return await self._ways.ask(
                lambda way: self._send(messages, schema, max_tokens, way), completion_of
            )
        except Exception as error:
            fault = Fault(error)
            if fault.completion is not None:
                return fault.completion
            raise fault.as_error(type(self._model).__name__) from fault.cause

    async def _send(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any],
        max_tokens: int | None,
        way: _Way,
    ) -> BaseMessage:
        asked: Any = self._model
        if way.capped and max_tokens is not None:
            # A binding has no structured output, so the cap is set on a copy of the model.
            asked = asked.model_copy(update={self._cap: self._ways.capped(max_tokens)})
        if way.structured:
            asked = _structured(asked, schema)
        said = [dict(message) for message in messages]
        # An asynchronous client belongs to the loop of its first call, which may be the
        # application's, and LangChain's packages share such clients between models. The
        # synchronous one works in any thread.
        if way.in_thread:
            # LangChain finds the handlers and the parent run of a call in its context: in an
            # empty one there are none, and LangSmith's environment is overruled in `_untraced`.
            return _message(await in_thread(lambda: _untraced(asked.invoke, said), Context()))
        call = _auntraced(asked.ainvoke, said)
        return _message(await asyncio.get_running_loop().create_task(call, context=Context()))

    def _poorer(self, way: _Way, error: Exception) -> _Way | None:
        """Say what to try after an error; None: nothing."""
        if isinstance(error, NotImplementedError) and way.in_thread and self._has_async:
            return way._replace(in_thread=False)
        if not Fault(error).of_the_way:
            return None
        names_cap = bool(re.search(r"max_\w*tokens|num_predict", str(error)))
        if way.capped and (names_cap or not way.structured):
            return way._replace(capped=False)
        return way._replace(structured=False) if way.structured else None


def _structured(model: BaseChatModel, schema: Mapping[str, Any]) -> Any:
    titled = {"title": "verdicts", **schema}
    return model.with_structured_output(titled, method="json_schema", include_raw=True)


def _offers_structure(model: BaseChatModel) -> bool:
    try:
        _structured(model, {"type": "object", "properties": {}})
    except Exception:  # NotImplementedError by default, but packages raise what they like
        return False
    return True


def _untraced(invoke: Callable[..., Any], said: Any) -> Any:
    from langsmith.run_helpers import tracing_context  # slow to import, and LangChain's own need

    with tracing_context(enabled=False):
        return invoke(said)


async def _auntraced(ainvoke: Callable[..., Any], said: Any) -> Any:
    from langsmith.run_helpers import tracing_context

    with tracing_context(enabled=False):
        return await ainvoke(said)


def _message(reply: Any) -> BaseMessage:
    message = reply.get("raw") if isinstance(reply, Mapping) else reply
    if not isinstance(message, BaseMessage):
        raise TypeError(f"it gave a {type(reply).__name__} without the raw message")
    return message
