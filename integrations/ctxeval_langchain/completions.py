"""Read what a chat model answered, and why it did not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from langchain_core.messages import AIMessage, BaseMessage

from ctxeval import (
    AuthenticationError,
    Completion,
    ContextOverflowError,
    JudgeError,
    QuotaError,
    Usage,
)
from ctxeval_langchain.reading import answer_of

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
    "ModelRefusalError": "refusal",
}
"""Errors that OpenAI's client and LangChain raise in place of a structured reply."""

_FILTERED = ("content_filter", "content_policy_violation")
"""The codes of an error by which a filter stops the prompt, as Azure's does."""

_OVERFLOW = re.compile(
    r"context[ _]?(length|window|size|limit)|maximum context|too many (input )?tokens|"
    r"(prompt|input) (is )?too (long|large)",
    re.IGNORECASE,
)


def completion_of(message: BaseMessage) -> Completion:
    """Take text, reason to stop, usage and model out of a chat model's message."""
    text = answer_of(message) or ""
    calls = getattr(message, "tool_calls", None)
    if calls and not text.strip():  # its package makes structured output of a forced tool call
        text = json.dumps(calls[0]["args"])
    told = message.response_metadata
    said = [
        told.get(name) for name in ("finish_reason", "stop_reason", "stopReason", "done_reason")
    ]
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


def stopped(error: Exception) -> Completion | None:
    """Give the completion that an error stands for, where the reply was only cut or filtered."""
    filtered = getattr(error, "code", None) in _FILTERED
    finish = "content_filter" if filtered else _STOPPED.get(type(error).__name__)
    return None if finish is None else Completion(str(error), Usage(1, unreported=1), finish)


def fault(error: Exception) -> type[JudgeError]:
    """Say what an error means: a key that is refused, no credit, a prompt too long, or else."""
    if _overflows(error):
        return ContextOverflowError
    if _status(error) in (401, 403):
        return AuthenticationError
    return QuotaError if getattr(error, "code", None) == "insufficient_quota" else JudgeError


def refuses(error: Exception) -> bool:
    """May the same be accepted if it is asked for in another way?"""
    if _overflows(error):
        return False
    status = _status(error)
    if status is None:  # the package itself would not send it
        return isinstance(error, (NotImplementedError, TypeError, ValueError))
    return status in (400, 422)


def _overflows(error: Exception) -> bool:
    # Newer releases of langchain-core have such a class, from which its packages derive their own.
    if any(kind.__name__ == "ContextOverflowError" for kind in type(error).__mro__):
        return True
    return _status(error) in (None, 400, 413, 422, 500) and bool(_OVERFLOW.search(str(error)))


def _status(error: Exception) -> int | None:
    """Find the HTTP status, wherever a provider's package puts it."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore's
        status = (response.get("ResponseMetadata") or {}).get("HTTPStatusCode")
        return status if isinstance(status, int) else None
    found = (getattr(error, "status_code", None), getattr(error, "code", None))
    return next((status for status in found if isinstance(status, int)), None)
