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
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
    "safety": "content_filter",
}
"""Reasons to stop, as providers name them, in ctxeval's words; others are left as they are."""

_STOPPED = {
    "LengthFinishReasonError": "length",
    "ContentFilterFinishReasonError": "content_filter",
}
"""OpenAI's client raises these in place of a structured reply that is not whole."""


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
        named = f"{kind.__module__.split('.')[0]}.{kind.__qualname__}"
        self._identity = {"class": named, "parameters": _parameters(model)}
        self._cap = next((name for name in _CAPS if name in kind.model_fields), "")
        self._has_async = kind._agenerate is not BaseChatModel._agenerate
        self._reasons = False
        self._way = _Way(_offers_structure(model), bool(self._cap))

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
                    kind = AuthenticationError if _status(error) in (401, 403) else JudgeError
                    raise kind(self._say(error)) from error
                way = poorer
            else:
                self._way = way  # only now is it known that what was left out was to blame
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
            # A binding has no structured output, so the cap is set on a copy of the model.
            room = _ROOM_TO_REASON if self._reasons else 1
            asked = asked.model_copy(update={self._cap: max_tokens * room})
        if way.structured:
            asked = _structured(asked, schema)
        said = [dict(message) for message in messages]
        # An asynchronous client belongs to the loop of its first call, which may be the
        # application's, and LangChain's packages share such clients between models. The
        # synchronous one works in any thread.
        if way.in_thread:
            return _message(await _in_thread(lambda: _untraced(asked.invoke, said)))
        call = _auntraced(asked.ainvoke, said)
        return _message(await asyncio.get_running_loop().create_task(call, context=Context()))

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
    except Exception:  # NotImplementedError by default, but packages raise what they like
        return False
    return True


async def _in_thread(call: Callable[[], T]) -> T:
    """Call in a thread of its own; ctxeval has no more than `concurrency` calls under way.

    A pool's threads would hold up the interpreter's exit.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            future.set_result(call())
        except StopIteration:  # which no future of asyncio's may hold
            future.set_exception(LookupError("the model has no more answers"))
        except BaseException as error:
            future.set_exception(error)

    # An empty context: whatever handlers and runs the application's knows are not in it.
    threading.Thread(target=Context().run, args=(work,), daemon=True).start()
    return await asyncio.wrap_future(future)


def _untraced(invoke: Callable[..., Any], said: Any) -> Any:
    from langsmith.run_helpers import tracing_context  # slow to import, and LangChain's own need

    with tracing_context(enabled=False):
        return invoke(said, {"callbacks": []})


async def _auntraced(ainvoke: Callable[..., Any], said: Any) -> Any:
    from langsmith.run_helpers import tracing_context

    with tracing_context(enabled=False):
        return await ainvoke(said, {"callbacks": []})


def _message(reply: Any) -> BaseMessage:
    message = reply.get("raw") if isinstance(reply, Mapping) else reply
    if not isinstance(message, BaseMessage):
        raise TypeError(f"it gave a {type(reply).__name__} without the raw message")
    return message


def _completion(message: BaseMessage) -> Completion:
    text = answer_of(message) or ""
    calls = getattr(message, "tool_calls", None)
    if calls and not text.strip():  # its package makes structured output of a forced tool call
        text = json.dumps(calls[0]["args"])
    told = message.response_metadata
    said = [told.get(name) for name in ("finish_reason", "stop_reason", "stopReason", "done_reason")]
    said.append((told.get("incomplete_details") or {}).get("reason"))
    finish = next((str(reason).lower() for reason in said if reason), "stop")
    if (refusal := message.additional_kwargs.get("refusal")) and not text.strip():
        text, finish = str(refusal), "refusal"
    return Completion(
        text, _usage(message), _FINISH.get(finish, finish), str(told.get("model_name") or "")
    )


def _usage(message: BaseMessage) -> Usage:
    counted = message.usage_metadata if isinstance(message, AIMessage) else None
    if counted is None:
        return Usage(requests=1, unreported=1)
    return Usage(
        requests=1,
        prompt_tokens=counted["input_tokens"],
        completion_tokens=counted["output_tokens"],
        cached_tokens=counted.get("input_token_details", {}).get("cache_read") or 0,
        reasoning_tokens=counted.get("output_token_details", {}).get("reasoning") or 0,
    )


def _status(error: Exception) -> int | None:
    """Find the HTTP status, wherever a provider's package puts it."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore's
        return (response.get("ResponseMetadata") or {}).get("HTTPStatusCode")
    found = (getattr(error, "status_code", None), getattr(error, "code", None))
    return next((status for status in found if isinstance(status, int)), None)


def _overflows(error: Exception) -> bool:
    if any(kind.__name__ == "ContextOverflowError" for kind in type(error).__mro__):
        return True
    return _status(error) in (None, 400, 413, 422, 500) and bool(_OVERFLOW.search(str(error)))


def _parameters(model: BaseLanguageModel[Any]) -> dict[str, Any]:
    """Give the fields that decide what a model answers, in plain values."""
    shared = BaseChatModel.model_fields
    fields = {name: vars(model).get(name) for name in type(model).model_fields}
    return _plain(
        {
            name: value
            for name, value in fields.items()
            if name not in shared and not _OPERATIONAL.search(name)
        }
    )


def _plain(value: Any) -> Any:
    """Reduce to what is the same in every process, without what may be secret."""
    if isinstance(value, str) and value.startswith(("http://", "https://")):
        parts = urlsplit(value)  # which may hold a password, or a key in its query
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, BaseLanguageModel):  # some chat models wrap another model
        return _parameters(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if not isinstance(value, Mapping):
        return None
    kept = {
        str(name): _plain(item)
        for name, item in value.items()
        if isinstance(item, (int, float)) or not _SECRET.search(str(name))
    }
    return {name: item for name, item in kept.items() if item not in (None, {}, [])}
