"""Why a product did not take scores, in words that hold no key."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

from ctxeval.errors import ExportError, describe

_LONGEST = 500

_SECRETS: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(r"(?<=://)[^/\s@]+@"), "…@"),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{6,}", re.I), r"\1 …"),
    (
        re.compile(
            r"""\b([\w-]*(?:api[-_]?key|token|secret|password|authorization)["']?\s*[:=]\s*["']?)"""
            r"""(?!bearer|basic)[^\s"',;&}\])]+""",
            re.I,
        ),
        r"\1…",
    ),
    (re.compile(r"\b(?:sk|pk|lsv2|ls__|ghp|hf)[-_][\w-]{6,}"), "…"),
]


def without_secrets(text: str) -> str:
    """Take out what looks like a key or a password.

    Examples:
        >>> without_secrets("401 for https://me:geheim@host/v1?api_key=abc (Bearer abcdefgh)")
        '401 for https://…@host/v1?api_key=… (Bearer …)'
    """
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def refusal(name: str, error: Exception) -> ExportError:
    """Make the error that says that, and why, an exporter could not send.

    Args:
        name: The exporter's name.
        error: What its client raised. What its server answered is quoted, where there is that.
    """
    said = describe(error).partition("\nFor more information")[0]
    answer = getattr(error, "response", None)
    with suppress(Exception):  # as a stream that was not read raises
        said += f": {answer.text}" if answer is not None and answer.text not in said else ""
    said = without_secrets(said)
    return ExportError(f"{name}: {said if len(said) <= _LONGEST else said[: _LONGEST - 1] + '…'}")
