"""Why a product did not take scores, in words that hold no key."""

from __future__ import annotations

from contextlib import suppress

from ctxeval.errors import ExportError, describe
from ctxeval.keys import without_secrets

_LONGEST = 500


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
