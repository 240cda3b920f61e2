"""Any LangChain chat model as the model that judges."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import Context
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.messages import AIMessage, BaseMessage

from ctxeval import (
    LLM,
    AuthenticationError,
    Completion,
    ContextOverflowError,
    InvalidArgumentError,
    JudgeError,
    Usage,
)
from ctxeval_langchain.reading import answer_of

T = TypeVar("T")

_CAPS = ("max_tokens", "max_output_tokens", "max_new_tokens", "num_predict")
"""How the fields of chat models name the cap on the output."""

_ROOM_TO_REASON = 4
"""What the cap is multiplied by once a model has shown that it reasons within it."""

_SECRET = re.compile("key|token|secret|passw|credential|auth|header|cookie", re.IGNORECASE)
_OPERATIONAL = re.compile("retr|timeout|stream", re.IGNORECASE)
_OVERFLOW = re.compile(
    r"context[ _]?(length|window|size)|maximum context|too many (input )?tokens|"
    r"(prompt|input) (is )?too (long|large)",
    re.IGNORECASE,
)
_FINISH = {
    **dict.fromkeys(
        ("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"), "length"
    ),
    **dict.fromkeys(
        ("content_filter", "content_filtered", "guardrail_intervened", "safety"), "content_filter"
    ),
    "refusal": "refusal",
}


def as_llm(chat_model: BaseChatModel, *, concurrency: int = 16) -> LLM:
    """Let a LangChain chat model judge.

    Structured output is used where the model has it; what it refuses is left out from then
    on. Trying again is up to the model (`max_retries`). No callbacks are told of its calls,
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
        self._identity = {"class": _name(type(model)), "parameters": _parameters(model)}
        self._cap = next((name for name in _CAPS if name in type(model).model_fields), None)
        self._reasons = False
        self._has_async = type(model)._agenerate is not BaseChatModel._agenerate
        self._way = _Way(_offers_structure(model), self._cap is not None)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Class and parameters; no key, and nothing that may hold one."""
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
        way = self._way
        while True:
            try:
                message = await self._send(messages, schema, max_tokens, way)
            except Exception as error:
                if _overflows(error):
                    raise ContextOverflowError(self._say(error)) from error
                if finish := _STOPPED.get(type(error).__name__):
                    return Completion("", Usage(requests=1, unreported=1), finish)
                poorer = self._poorer(way, error)
                if poorer is None:
                    refused_key = _status(error) in (401, 403)
                    kind = AuthenticationError if refused_key else JudgeError
                    raise kind(self._say(error)) from error
                way = poorer
            else:
                self._way = way  # it was accepted, so that what it lacks was indeed the reason
                completion = _completion(message)
                self._reasons = self._reasons or completion.usage.reasoning_tokens > 0
                return completion

    async def _send(
        self,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any],
        max_tokens: int | None,
        way: _Way,
    ) -> BaseMessage:
        asked: Any = self._model
        if way.capped and max_tokens is not None:
            # Structured output can't be bound to more parameters, so the cap is set on a copy.
            room = _ROOM_TO_REASON if self._reasons else 1
            asked = asked.model_copy(update={self._cap: max_tokens * room})
        if way.structured:
            asked = _structured(asked, schema)
        said = [dict(message) for message in messages]
        # Asynchronous clients belong to the loop of their first call, which is the
        # application's; and some are cached, so that even a copy of the model would share
        # them. The synchronous client works in any thread.
        if way.in_thread:
            return _message(await _in_thread(lambda: _untraced(asked.invoke, said)))
        return _message(
            await asyncio.get_running_loop().create_task(
                _auntraced(asked.ainvoke, said), context=Context()
            )
        )

    def _poorer(self, way: _Way, error: Exception) -> _Way | None:
        """Say what to try after an error; None: nothing."""
        if isinstance(error, NotImplementedError) and way.in_thread and self._has_async:
            return way._replace(in_thread=False)
        status = _status(error)
        local = status is None and isinstance(error, (NotImplementedError, TypeError, ValueError))
        if not local and status not in (400, 422):
            return None
        if way.capped and re.search(r"max_\w*tokens|num_predict", str(error)):
            return way._replace(capped=False)
        return way._replace(structured=False) if way.structured else None

    def _say(self, error: Exception) -> str:
        said = " ".join(re.sub(r"\bsk-[\w-]{6,}", "[key]", str(error)).split())[:300]
        return f"{type(self._model).__name__} failed: {type(error).__name__}: {said}"


def _structured(model: BaseChatModel, schema: Mapping[str, Any]) -> Any:
    titled = {"title": "verdicts", **schema}
    return model.with_structured_output(titled, method="json_schema", include_raw=True)


def _offers_structure(model: BaseChatModel) -> bool:
    try:
        _structured(model, {"type": "object", "properties": {}})
    except Exception:  # NotImplementedError, ValueError, TypeError, ImportError, …
        return False
    return True


async def _in_thread(call: Callable[[], T]) -> T:
    """Call in a thread of its own.

    A pool's threads would be waited for when the interpreter exits, and would run in the
    context of whoever asked. ctxeval has no more than `concurrency` calls under way.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            result = call()
        except StopIteration as error:  # no future may hold one
            future.set_exception(JudgeError(f"the model has no more answers: {error!r}"))
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=work, name="ctxeval-langchain", daemon=True).start()
    return await asyncio.wrap_future(future)


def _untraced(invoke: Callable[..., Any], said: Any) -> Any:
    """Call where nothing of the application's context is known: no handlers, no parent run."""
    from langsmith.run_helpers import tracing_context  # langchain-core imports it for any call

    with tracing_context(enabled=False):
        return invoke(said, {"callbacks": []})


async def _auntraced(ainvoke: Callable[..., Any], said: Any) -> Any:
    from langsmith.run_helpers import tracing_context

    with tracing_context(enabled=False):
        return await ainvoke(said, {"callbacks": []})
