"""Every error that ctxeval raises.

    CtxEvalError
    ├── InvalidSampleError       a Sample that contradicts itself      (also a ValueError)
    ├── InvalidArgumentError     an option that cannot be              (also a ValueError)
    ├── MissingFieldError        a metric needs a field that is None   (also a ValueError)
    ├── NotScoredError           a number asked of a result without one (also a ValueError)
    ├── MissingExtraError        an optional package is not installed  (also an ImportError)
    ├── StoreError               the store could not be opened, read or written
    ├── ExportError              scores could not be sent where people look at them
    │   └── NotTracedError       the query is in no trace of that product
    └── JudgeError               the language model gave no reply
        ├── AuthenticationError  no key, or a key that is refused
        ├── QuotaError           the account has no credit left
        └── ContextOverflowError the prompt does not fit the model's context

None derives from RuntimeError: LlamaIndex rewrites those.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CtxEvalError(Exception):
    """The root of all errors that ctxeval raises."""


class InvalidSampleError(CtxEvalError, ValueError):
    """A sample is malformed; the message names field, value and remedy."""


class InvalidArgumentError(CtxEvalError, ValueError):
    """An argument cannot be; the message names argument, value and remedy."""


class MissingFieldError(CtxEvalError, ValueError):
    """A metric was asked directly of a sample that lacks a field it needs."""


class NotScoredError(CtxEvalError, ValueError):
    """A number was asked of a result that has none; the message says why it has none."""


class MissingExtraError(CtxEvalError, ImportError):
    """A feature needs an optional package; the message holds the install line."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs {package}, which is not installed: pip install 'ctxeval[{extra}]'",
            name=package,
        )

    def __reduce__(self) -> tuple[object, ...]:
        # ImportError keeps its name outside of args; rebuild from the message alone.
        return (_rebuild_missing_extra, (str(self), self.name))


def _rebuild_missing_extra(message: str, name: str | None) -> MissingExtraError:
    error = MissingExtraError.__new__(MissingExtraError, message)
    ImportError.__init__(error, message, name=name)
    return error


class StoreError(CtxEvalError):
    """The store could not be opened, read or written; the message says where and what to do."""


class ExportError(CtxEvalError):
    """A product did not take scores; the message says which, and why."""


class NotTracedError(ExportError):
    """A query is in no trace of the product, so that its scores have no place there."""


class JudgeError(CtxEvalError):
    """The language model gave no reply, after the stated number of tries.

    Attributes:
        attempts: How often it was asked in vain.
        usage: What was spent on the judging before, where known.
    """

    attempts: int = 1
    usage: object = None


class AuthenticationError(JudgeError):
    """The endpoint refused the key, or no key was given."""


class QuotaError(JudgeError):
    """The account behind the key has no credit left; trying again would not help."""


class ContextOverflowError(JudgeError):
    """The prompt does not fit the model's context window."""


def describe(error: BaseException) -> str:
    """Write an error into a reason: ours as it is, another with its name; never raises."""
    try:
        said = str(error)
    except Exception:
        said = "(it can't be written)"
    return said if isinstance(error, CtxEvalError) else f"{type(error).__name__}: {said}"


def near(word: object, known: Iterable[str]) -> str:
    """Say which of the known words are near, or list them all.

    Args:
        word: What was given.
        known: What would have been right.

    Returns:
        The end of an error message.
    """
    names = sorted(known)
    close = difflib.get_close_matches(str(word).casefold(), names, n=3, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(repr(name) for name in close) + "?"
    return "it is one of " + ", ".join(names) if names else "there is none"


def short(value: object, limit: int = 60) -> str:
    """Write a value into a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


_OPTIONS = {
    "give llm=ctxeval.llm_factory('…')": "add --model NAME",
    "give api_key=, client=, or the base_url= of another endpoint": "add --base-url URL",
}


def with_options(said: str) -> str:
    """Name the options of the commands and the magic where a message names a function's arguments.

    Examples:
        >>> with_options("metrics: no model: give llm=ctxeval.llm_factory('…')")
        'metrics: no model: add --model NAME'
    """
    for argument, option in _OPTIONS.items():
        said = said.replace(argument, option)
    return said
