"""Read what an endpoint answered, whatever it answered: SDK objects are not validated."""

from __future__ import annotations

import json
import re
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
    choices = _get(response, "choices")
    choice = choices[0] if isinstance(choices, (list, tuple)) and choices else None
    message = _get(choice, "message")
    text = _text(_get(message, "content"))
    finish = _get(choice, "finish_reason")
    refusal = _get(message, "refusal")
    if refusal and not text:
        finish, text = "refusal", str(refusal)
    if choice is None and (error := _get(response, "error")):
        text = str(error)
    return Completion(
        text=text,
        usage=_usage(_get(response, "usage")),
        finish_reason=finish if isinstance(finish, str) else "stop",
        model=str(_get(response, "model") or ""),
    )


def read_first_token(response: Any) -> FirstToken:
    """Take the probabilities of the first token that is more than white space.

    Args:
        response: As of `read_completion`.

    Returns:
        The likeliest tokens, none where the response tells no probabilities.
    """
    choices = _get(response, "choices")
    choice = choices[0] if isinstance(choices, (list, tuple)) and choices else None
    content = _get(_get(choice, "logprobs"), "content")
    logprobs: dict[str, float] = {}
    for place in content if isinstance(content, (list, tuple)) else ():
        if str(_get(place, "token") or "").strip():
            likeliest = _get(place, "top_logprobs") or ()
            for one in [*likeliest, place]:
                token, logprob = _get(one, "token"), _get(one, "logprob")
                if isinstance(token, str) and isinstance(logprob, (int, float)):
                    logprobs.setdefault(token, float(logprob))
            break
    read = read_completion(response)
    return FirstToken(logprobs, read.usage, read.model, "" if logprobs else _refusal(read, choice))


def _refusal(read: Completion, choice: Any) -> str:
    """Say why a response without probabilities holds no answer either; "" where it holds one."""
    if read.finish_reason in ("content_filter", "refusal"):
        return f"the model would not answer ({read.finish_reason}): {read.text}".rstrip(": ")
    if choice is None:
        return f"the reply holds no answer: {short(read.text)}"
    empty = "the reply is empty (a model that thinks first can't be asked for one word)"
    return "" if read.text.strip() else empty


def _get(holder: Any, name: str) -> Any:
    if isinstance(holder, dict):
        return holder.get(name)
    return getattr(holder, name, None)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):  # blocks, as some compatible endpoints send them
        return "".join(_text(_get(block, "text")) for block in content)
    return ""


def _usage(usage: Any) -> Usage:
    def count(holder: Any, name: str) -> int:
        value = _get(holder, name)
        return value if isinstance(value, int) else 0

    if not isinstance(_get(usage, "prompt_tokens"), int):
        return Usage(requests=1, unreported=1)
    return Usage(
        requests=1,
        prompt_tokens=count(usage, "prompt_tokens"),
        completion_tokens=count(usage, "completion_tokens"),
        cached_tokens=count(_get(usage, "prompt_tokens_details"), "cached_tokens"),
        reasoning_tokens=count(_get(usage, "completion_tokens_details"), "reasoning_tokens"),
    )


_OVERFLOW = re.compile(
    r"context[ _]?(length|window|size)|maximum context|too many (input )?tokens|"
    r"prompt (is )?too long|input (is )?too (long|large)|exceeds? .{0,40}(context|n_ctx)",
    re.IGNORECASE,
)


class Fault:
    """A failed call, read by what it carries, not by its class: those differ by client.

    Attributes:
        status: The HTTP status, None where there was no response.
        code: The error code of the body.
        param: The parameter that the endpoint complains of.
        message: What it says.
        retry_after: How many seconds the endpoint asks to wait.
        unreachable: Was there no response, or but a part: a connection error, a timeout,
            or a body that is broken JSON?
    """

    def __init__(self, error: Exception) -> None:
        """Read the exception of any client."""
        status = getattr(error, "status_code", None)
        self.status: int | None = status if isinstance(status, int) else None
        body = getattr(error, "body", None)
        inner = body.get("error", body) if isinstance(body, dict) else body
        self.code = str(getattr(error, "code", None) or _get(inner, "code") or "")
        self.kind = str(_get(inner, "type") or "")
        self.param = str(getattr(error, "param", None) or _get(inner, "param") or "")
        said = _get(inner, "message") or inner or getattr(error, "message", None) or error
        self.message = str(said)
        self.retry_after = _retry_after(getattr(getattr(error, "response", None), "headers", None))
        names = {cls.__name__ for cls in type(error).__mro__}
        self.unreachable = self.status is None and (
            bool(names & {"APIConnectionError", "APITimeoutError"})
            or isinstance(error, (ConnectionError, TimeoutError, json.JSONDecodeError))
        )

    @property
    def overflow(self) -> bool:
        """Does the prompt not fit the model's context?"""
        if self.status not in (400, 413, 422, 500):
            return False
        return self.code == "context_length_exceeded" or bool(_OVERFLOW.search(self.message))

    @property
    def filtered(self) -> bool:
        """Did a filter stop the prompt, as Azure's does?"""
        return self.status == 400 and self.code in ("content_filter", "content_policy_violation")

    @property
    def no_credit(self) -> bool:
        """Is the account out of credit, so that waiting would not help?"""
        return "insufficient_quota" in (self.code, self.kind)

    @property
    def passing(self) -> bool:
        """May the same call succeed later?"""
        if self.unreachable:
            return True
        if self.status is None or self.no_credit:
            return False
        return self.status in (408, 409, 425, 429) or self.status >= 500


def _retry_after(headers: Any) -> float | None:
    """Read how long to wait, in seconds; dates are left aside."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (TypeError, KeyError, ValueError):
            continue
        if seconds >= 0:
            return seconds
    return None
