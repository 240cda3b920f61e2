"""How much judging captured traffic may cost."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Protocol

from ctxeval.errors import InvalidArgumentError, short
from ctxeval.forking import lock_for
from ctxeval.verdicts import Usage


class TokenLedger(Protocol):
    """Counts tokens for several processes. A store is one."""

    def add_tokens(self, day: date, tokens: int, /) -> object:
        """Count tokens of a day."""
        ...

    def tokens_of(self, day: date, /) -> int:
        """Say how many were counted."""
        ...


class Budget:
    """Lets a judging begin or not; what is under way may overshoot the limits.

    Args:
        max_requests_per_minute: How many requests to models in any 60 seconds; None: any.
        max_tokens_per_day: How many tokens, sent and received, on one day (UTC).
        ledger: Where the day's tokens are counted, if other processes count with us.
        clock: Tells the seconds.
        today: Tells the day.
    """

    def __init__(
        self,
        max_requests_per_minute: int | None,
        max_tokens_per_day: int | None,
        ledger: TokenLedger | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        """See the class."""
        self._max_requests = _limit("max_requests_per_minute", max_requests_per_minute)
        self._max_tokens = _limit("max_tokens_per_day", max_tokens_per_day)
        self._ledger = ledger
        self._clock = clock
        self._today = today
        self._requests: deque[float] = deque()
        self._reserved = 0
        self._day = today()
        self._tokens = 0
        self._owed = 0  # of the tokens, what the ledger could not be told
        self._lock = lock_for(self)

    def start_over(self) -> None:
        """Forget what is reserved: in a forked child it is the parent's."""
        self._reserved = 0

    def admit(self, requests: int) -> str:
        """Ask whether a judging may begin; if so, its requests are reserved.

        Args:
            requests: How many requests it will take at least.

        Returns:
            Why not; "" where it may.
        """
        with self._lock:
            self._pass_time()
            if self._max_tokens is not None and self._spent() >= self._max_tokens:
                return f"the budget of {self._max_tokens} tokens a day is spent"
            under_way = len(self._requests) + self._reserved
            if self._max_requests is not None and under_way + requests > self._max_requests:
                return f"the budget of {self._max_requests} requests a minute is spent"
            self._reserved += requests
            return ""

    def settle(self, reserved: int, usages: list[Usage]) -> None:
        """Note what a judging really took."""
        with self._lock:
            self._pass_time()
            self._reserved -= reserved
            tokens = 0
            for usage in usages:
                self._requests.extend([self._clock()] * usage.requests)
                tokens += usage.prompt_tokens + usage.completion_tokens
            self._tokens += tokens
            self._owed += tokens
            if self._ledger is not None and self._owed:
                with suppress(Exception):  # it is told later, with what comes then
                    self._ledger.add_tokens(self._day, self._owed)
                    self._owed = 0

    def _spent(self) -> int:
        if self._ledger is not None:
            with suppress(Exception):  # what this process knows has to do
                return self._ledger.tokens_of(self._day) + self._owed
        return self._tokens

    def _pass_time(self) -> None:
        now = self._clock()
        while self._requests and now - self._requests[0] >= 60:
            self._requests.popleft()
        if (today := self._today()) != self._day:
            self._day, self._tokens, self._owed = today, 0, 0


def _limit(name: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidArgumentError(f"{name}: {short(value)} is no limit: give an integer >= 0")
    return value
