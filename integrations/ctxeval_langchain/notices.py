"""What is told once, however often it is true."""

from __future__ import annotations

import logging
from functools import lru_cache

logger = logging.getLogger("ctxeval")


@lru_cache(maxsize=32)
def tell_once(line: str) -> None:
    """Log a line, unless it was logged before."""
    logger.warning("ctxeval: %s", line)
