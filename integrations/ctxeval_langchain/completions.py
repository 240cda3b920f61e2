"""Read what a chat model answered."""

from __future__ import annotations

import json

from langchain_core.messages import AIMessage, BaseMessage

from ctxeval import Completion, Usage
from ctxeval_langchain.reading import answer_of


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
    finish = next((str(reason) for reason in said if reason), "stop")
    if (refusal := message.additional_kwargs.get("refusal")) and not text.strip():
        text, finish = str(refusal), "refusal"
    return Completion(text, _usage(message), finish, str(told.get("model_name") or ""))


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
