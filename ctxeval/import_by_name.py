"""Import what a user names on the command line, from where the command was given too."""

from __future__ import annotations

import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

from ctxeval.errors import InvalidArgumentError, describe
from ctxeval.keys import said_by_others


def imported(given: str, argument: str, example: str) -> Any:
    """Import an object.

    Args:
        given: MODULE:NAME.
        argument: What the user calls it.
        example: A name as it may look.

    Raises:
        InvalidArgumentError: It can't be had.
    """
    module, _, name = given.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return attrgetter(name)(import_module(module))
    except Exception as error:  # whatever the user's own module raises
        why = said_by_others(describe(error))
        raise InvalidArgumentError(
            f"{argument}: {given!r} can't be had: {why}: give MODULE:NAME, as {example}"
        ) from error
