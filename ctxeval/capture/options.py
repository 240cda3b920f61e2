"""The options of a recorder, checked at once rather than at the first query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxeval.errors import InvalidArgumentError, short


def check_options(options: Mapping[str, Any]) -> None:
    """Check the options of a `Recorder` that nothing else checks, by their names.

    Raises:
        InvalidArgumentError: One is of no use; the message names it.
    """
    for name in ("max_pending", "max_records"):
        value = options[name]
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        if not whole and not (name == "max_records" and value is None):
            raise InvalidArgumentError(
                f"{name}: {short(value)} is no number of records: give an integer >= 1"
            )
    rate = options["sample_rate"]
    if isinstance(rate, bool) or not isinstance(rate, (int, float)):
        raise InvalidArgumentError(f"sample_rate: {short(rate)} is no number: give 0.1")
    if not 0 <= rate <= 1:
        raise InvalidArgumentError(f"sample_rate: {rate!r} is not from 0 to 1")
    for name in ("id_key", "question_key", "answer_key"):
        key = options[name]
        if key is not None and not callable(key) and (not isinstance(key, str) or not key):
            raise InvalidArgumentError(f"{name}: {short(key)} is no key: a name, or a function")
    if not isinstance(options["capture_prompts"], bool):
        given = short(options["capture_prompts"])
        raise InvalidArgumentError(f"capture_prompts: {given} is no bool")
    redact = options["redact"]
    if redact is not None and not callable(redact):
        raise InvalidArgumentError(f"redact: {short(redact)} is no function of a text")
