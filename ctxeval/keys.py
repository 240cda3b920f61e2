"""Keys and passwords stay out of what is said: out of messages, and out of errors behind errors."""

from __future__ import annotations

import re
from collections.abc import Callable

_SECRETS: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(r"(?<=://)[^/\s@]+@"), "…@"),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{6,}", re.I), r"\1 …"),
    (
        re.compile(
            r"""\b([\w-]*(?:api[-_]?key|token|secret|password|authorization)["']?\s*[:=]\s*["']?)"""
            r"""(?!bearer|basic|\[key\])[^\s"',;&}\])]+""",
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


MOST = 500
"""Letters of what somebody else's code or server says that are passed on."""


def said_by_others(text: str) -> str:
    r"""Take what a server or a user's code says as one line: no secrets, no control characters.

    Examples:
        >>> said_by_others("refused\n\x1b[31mfor password=abc")
        'refused �[31mfor password=…'
    """
    line = " ".join(without_secrets(text).split())
    line = "".join(char if char.isprintable() else "�" for char in line)
    return line if len(line) <= MOST else f"{line[: MOST - 1]}…"


def as_cause(error: BaseException, *known: str) -> BaseException | None:
    """Give an error to raise another one from, as far as no key is in it: a traceback shows it.

    Args:
        error: The error; those behind it are cut off from where one holds a key.
        *known: Keys that are known, whatever they look like.

    Returns:
        The error; None where it holds a key itself.
    """
    if _holds_secret(error, known):
        return None
    shown = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if shown is not None and shown is not error and as_cause(shown, *known) is None:
        error.__cause__ = None  # which hides the context as well
    return error


def _holds_secret(error: BaseException, known: tuple[str, ...]) -> bool:
    try:
        said = f"{error}\n{error.args!r}\n{getattr(error, 'body', '')!r}"
    except Exception:  # what can't be written can't be looked through either
        return True
    return without_secrets(said) != said or any(key and key in said for key in known)
