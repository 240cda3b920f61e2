"""Read what a LlamaIndex model replied."""

from __future__ import annotations

from typing import Any

from llama_index.core.llms import ChatResponse

from ctxeval import Completion, Usage

_PROMPT = ("prompt_tokens", "input_tokens", "prompt_token_count")
_COMPLETION = ("completion_tokens", "output_tokens", "candidates_token_count")
_DETAILS = {
    "cached_tokens": ("prompt_tokens_details", "input_tokens_details"),
    "reasoning_tokens": ("completion_tokens_details", "output_tokens_details"),
}
_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""What Anthropic counts beside its `input_tokens`."""


def read_reply(response: ChatResponse) -> Completion:
    """Take text, reason to stop, usage and model out of a chat response.

    Args:
        response: The response; its `raw` is whatever the provider's client returned.
    """
    raw = response.raw
    text = response.message.content
    text = text if isinstance(text, str) else ""
    choice = _first(_get(raw, "choices")) or _first(_get(raw, "candidates"))
    said = [_get(choice, "finish_reason")]
    said += [_get(raw, name) for name in ("stop_reason", "done_reason", "finish_reason")]
    finish = next((_named(reason) for reason in said if reason), "stop")
    refusal = _get(_get(choice, "message"), "refusal")
    if refusal and not text.strip():
        text, finish = str(refusal), "refusal"
    usage = _get(raw, "usage") or _get(raw, "usage_metadata") or response.additional_kwargs
    model = _get(raw, "model")
    named = model if isinstance(model, str) else ""
    return Completion(text, _usage(usage), finish, named)


def _get(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def _first(items: Any) -> Any:
    return items[0] if isinstance(items, (list, tuple)) and items else None


def _named(reason: Any) -> str:
    return str(getattr(reason, "value", reason))


def _usage(usage: Any) -> Usage:
    prompt, completion = _count(usage, *_PROMPT), _count(usage, *_COMPLETION)
    if prompt is None:
        return Usage(requests=1, unreported=1)
    details = {
        name: next(filter(None, (_count(_get(usage, part), name) for part in parts)), 0)
        for name, parts in _DETAILS.items()
    }
    beside = [_count(usage, name) or 0 for name in _BESIDE]
    details["cached_tokens"] = details["cached_tokens"] or beside[0]
    return Usage(1, prompt + sum(beside), completion or 0, **details)


def _count(holder: Any, *names: str) -> int | None:
    values = (_get(holder, name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool)), None)
