"""Read what an endpoint answered, whatever it answered: SDK objects are not validated."""

from __future__ import annotations

from typing import Any

from ctxeval.errors import short
from ctxeval.llm.protocol import Completion, FirstToken
from ctxeval.verdicts import Usage


def read_completion(response: Any) -> Completion:
    """Take text, reason to stop and usage out of a chat completion.

    Args:
        response: What `chat.completions.create` returned: an SDK object, a dict, or a
            string where the endpoint answered with something else than JSON.

    Returns:
        A completion. Where the response holds no answer, its text is "" or the raw
        body, which the judge then finds unreadable.
    """
    if isinstance(response, str):
        return Completion(text=response, usage=Usage(requests=1, unreported=1))
    choices = get(response, "choices")
    choice = choices[0] if isinstance(choices, (list, tuple)) and choices else None
    message = get(choice, "message")
    text = _text(get(message, "content"))
    finish = get(choice, "finish_reason")
    refusal = get(message, "refusal")
    if refusal and not text:
        finish, text = "refusal", str(refusal)
    if choice is None and (error := get(response, "error")):
        text = str(error)
    return Completion(
        text=text,
        usage=_usage(get(response, "usage")),
        finish_reason=finish if isinstance(finish, str) else "stop",
        model=str(get(response, "model") or ""),
    )


def read_first_token(response: Any) -> FirstToken:
    """Take the probabilities of the first token that is more than white space.

    Args:
        response: As of `read_completion`.

    Returns:
        The likeliest tokens, none where the response tells no probabilities, or only that of
        the token that was chosen.
    """
    choices = get(response, "choices")
    choice = choices[0] if isinstance(choices, (list, tuple)) and choices else None
    content = get(get(choice, "logprobs"), "content")
    logprobs: dict[str, float] = {}
    for place in content if isinstance(content, (list, tuple)) else ():
        if str(get(place, "token") or "").strip():
            likeliest = get(place, "top_logprobs")
            for one in likeliest if isinstance(likeliest, (list, tuple)) else ():
                logprobs |= _told(one)
            if logprobs:  # the chosen one alone would be all that there is, however unlikely
                logprobs = _told(place) | logprobs
            break
    read = read_completion(response)
    return FirstToken(logprobs, read.usage, read.model, "" if logprobs else _refusal(read, choice))


def _told(one: Any) -> dict[str, float]:
    token, logprob = get(one, "token"), get(one, "logprob")
    known = isinstance(token, str) and isinstance(logprob, (int, float))
    return {token: float(logprob)} if known else {}


def _refusal(read: Completion, choice: Any) -> str:
    """Say why a response without probabilities holds no answer either; "" where it holds one."""
    if read.finish_reason in ("content_filter", "refusal"):
        return f"the model would not answer ({read.finish_reason}): {read.text}".rstrip(": ")
    if choice is None:
        return f"the reply holds no answer: {short(read.text)}"
    empty = "the reply is empty (a model that thinks first can't be asked for one word)"
    return "" if read.text.strip() else empty


def get(holder: Any, name: str) -> Any:
    """Take an item of a dict, or an attribute; None where there is none."""
    if isinstance(holder, dict):
        return holder.get(name)
    return getattr(holder, name, None)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):  # blocks, as some compatible endpoints send them
        return "".join(_text(get(block, "text")) for block in content)
    return ""


def _usage(usage: Any) -> Usage:
    def count(holder: Any, name: str) -> int:
        value = get(holder, name)
        return value if isinstance(value, int) else 0

    if not isinstance(get(usage, "prompt_tokens"), int):
        return Usage(requests=1, unreported=1)
    return Usage(
        requests=1,
        prompt_tokens=count(usage, "prompt_tokens"),
        completion_tokens=count(usage, "completion_tokens"),
        cached_tokens=count(get(usage, "prompt_tokens_details"), "cached_tokens"),
        reasoning_tokens=count(get(usage, "completion_tokens_details"), "reasoning_tokens"),
    )
