"""What a user is told of captured traffic: each thing once, and never a line per query."""

from __future__ import annotations

import logging
import time
from collections import Counter

logger = logging.getLogger("ctxeval")

WARN_EVERY = 60.0
"""Seconds between two warnings about records that were dropped."""


class Notices:
    """Counts what was left out, and logs it as seldom as will do.

    Attributes:
        dropped: How many records were left out, or left without a model's scores, by reason.
        told: What was noticed once, by its kind.
        logged: Is it logged? A notebook shows it below the cell instead.
    """

    def __init__(self) -> None:
        """Start with nothing left out and nothing told."""
        self.dropped: Counter[str] = Counter()
        self.logged = True
        self.told: dict[str, str] = {}
        self._warned: float | None = None

    def drop(self, reason: str) -> None:
        """Count a record that is left out, and warn of it, once a minute at most."""
        self.dropped[reason] += 1
        now = time.monotonic()
        if self.logged and (self._warned is None or now - self._warned >= WARN_EVERY):
            self._warned = now
            logger.warning(
                "ctxeval leaves records out: %s (%d so far)", reason, self.dropped[reason]
            )

    def once(self, kind: str, line: str) -> None:
        """Warn of something, unless something of this kind was told before."""
        if kind in self.told:
            return
        self.told[kind] = line
        if self.logged:
            logger.warning("ctxeval: %s", line)
