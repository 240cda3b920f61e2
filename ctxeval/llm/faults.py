"""What a failed call means, in whatever words a provider's package says it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ctxeval.errors import AuthenticationError, ContextOverflowError, JudgeError, QuotaError
from ctxeval.keys import as_cause, said_by_others, without_secrets
from ctxeval.llm.protocol import Completion
from ctxeval.llm.responses import get
from ctxeval.verdicts import Usage

_OVERFLOW = re.compile(
    r"context[ _]?(length|window|size|limit)|maximum context|too many (input )?tokens|"
    r"(prompt|input) (is )?too (long|large)|exceeds? .{0,40}(context|n_ctx)",
    re.IGNORECASE,
)

_FILTERED = ("content_filter", "content_policy_violation")
"""The codes of an error by which a filter stops the prompt, as Azure's does."""

_STOPPED = {
    "LengthFinishReasonError": "length",
    "ContentFilterFinishReasonError": "content_filter",
    "ModelRefusalError": "refusal",
}
"""Errors that OpenAI's client and LangChain raise in place of a structured reply."""


class Fault:
    """A failed call, read by what the error carries, not by its class: those differ by client.

    For adapters of frameworks too, whose errors are those of any provider's package, or
    raised from one.

    Args:
        error: The exception of any client.

    Attributes:
        status: The HTTP status, None where there was no response.
        code: The error code of the body.
        kind: The type of error that the body names.
        param: The parameter that the endpoint complains of.
        message: What it says.
        retry_after: How many seconds the endpoint asks to wait.
        unreachable: Was there no response, or but a part: a connection error, a timeout,
            or a body that is broken JSON?

    Examples:
        >>> fault = Fault(ValueError("prompt is too long: 9000 > 8192"))
        >>> fault.status, fault.overflow, fault.passing
        (None, True, False)
    """

    def __init__(self, error: Exception) -> None:
        """See the class."""
        self._error = error
        told = next((one for one in (error, error.__cause__) if _status(one) is not None), error)
        self.status = _status(told)
        body = getattr(told, "body", None)
        inner = body.get("error", body) if isinstance(body, dict) else body
        self.code = str(getattr(told, "code", None) or get(inner, "code") or "")
        self.kind = str(get(inner, "type") or "")
        self.param = str(getattr(told, "param", None) or get(inner, "param") or "")
        said = get(inner, "message") or inner or getattr(told, "message", None) or told
        self.message = str(said)
        self.retry_after = _retry_after(getattr(getattr(told, "response", None), "headers", None))
        self._names = {cls.__name__ for cls in type(error).__mro__}
        self.unreachable = self.status is None and (
            bool(self._names & {"APIConnectionError", "APITimeoutError"})
            or isinstance(error, (ConnectionError, TimeoutError, json.JSONDecodeError))
        )

    @property
    def overflow(self) -> bool:
        """Does the prompt not fit the model's context?"""
        # Newer releases of langchain-core have such a class, from which its packages derive.
        if self.code == "context_length_exceeded" or "ContextOverflowError" in self._names:
            return True
        if self.unreachable or self.status not in (None, 400, 413, 422, 500):
            return False
        return bool(_OVERFLOW.search(self.message))

    @property
    def filtered(self) -> bool:
        """Did a filter stop the prompt, as Azure's does?"""
        return self.code in _FILTERED

    @property
    def denied(self) -> bool:
        """Is the key refused, or may it not use this?"""
        return self.status in (401, 403)

    @property
    def no_credit(self) -> bool:
        """Is the account out of credit, so that waiting would not help?"""
        told = (self.code, self.kind)
        return "insufficient_quota" in told or "insufficient_quota" in self.message

    @property
    def passing(self) -> bool:
        """May the same call succeed later?"""
        if self.unreachable:
            return True
        if self.status is None or self.no_credit:
            return False
        return self.status in (408, 409, 425, 429) or self.status >= 500

    @property
    def of_the_way(self) -> bool:
        """May the same be accepted if it is asked for in another way?"""
        if self.overflow or self.completion is not None:
            return False
        if self.status is None:  # the package itself would not send it
            return isinstance(self._error, (NotImplementedError, TypeError, ValueError))
        return self.status in (400, 422)

    @property
    def completion(self) -> Completion | None:
        """The completion that it stands for, where the reply was only cut or filtered."""
        finish = next((_STOPPED[name] for name in _STOPPED if name in self._names), None)
        if self.filtered:
            finish = "content_filter"
        if finish is None:
            return None
        return Completion(without_keys(self.message), Usage(1, unreported=1), finish)

    @property
    def cause(self) -> BaseException | None:
        """What to raise another error from: the error, as far as no key is in it."""
        return as_cause(self._error)

    def as_error(self, who: str) -> JudgeError:
        """Give the error to raise in its place.

        Args:
            who: Whose call failed.
        """
        told = said_by_others(without_keys(str(self._error)))
        said = f"{who} failed: {type(self._error).__name__}: {told}"
        if self.overflow:
            return ContextOverflowError(said)
        if self.denied:
            return AuthenticationError(said)
        return (QuotaError if self.no_credit else JudgeError)(said)


def without_keys(text: str) -> str:
    """Take out what looks like a key or a password."""
    return without_secrets(re.sub(r"\bsk-[\w-]{6,}", "[key]", text))


def _status(error: BaseException | None) -> int | None:
    """Find the HTTP status, wherever a provider's package puts it."""
    response = getattr(error, "response", None)
    metadata = response.get("ResponseMetadata") if isinstance(response, Mapping) else None
    told = metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None  # botocore's
    found = (getattr(error, "status_code", None), told, getattr(error, "code", None))
    return next((one for one in found if isinstance(one, int) and not isinstance(one, bool)), None)


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
