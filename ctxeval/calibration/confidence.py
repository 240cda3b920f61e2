"""How often an interval should hold what it is about."""

from __future__ import annotations

from numbers import Real

from ctxeval.errors import InvalidArgumentError, short


def check_confidence(confidence: object) -> None:
    """Check that it is between 0 and 1.

    Raises:
        InvalidArgumentError: It is not.
    """
    if isinstance(confidence, Real) and 0 < float(confidence) < 1:
        return
    raise InvalidArgumentError(
        f"confidence: {short(confidence)} is no number between 0 and 1: give 0.95"
    )
