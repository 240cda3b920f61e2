"""Optional packages: loaded where they are needed, and missed with the line that installs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ctxeval.errors import MissingExtraError


def load(module: str, feature: str, extra: str) -> Any:
    """Import an optional package's module.

    Args:
        module: The module, `"scipy.stats"` say.
        feature: What needs it, for the message.
        extra: The extra of ctxeval that brings it.

    Raises:
        MissingExtraError: The package is not installed.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingExtraError(feature, package, extra) from error
