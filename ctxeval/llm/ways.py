"""How a framework's model is asked: the best way that it takes, learnt from what it refuses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from ctxeval.llm.protocol import Completion

W = TypeVar("W")
R = TypeVar("R")

_ROOM_TO_REASON = 4


class Ways(Generic[W]):
    """The ways in which a model can be asked. For adapters of frameworks.

    Args:
        best: The way to try first: whatever the adapter makes of it.
        poorer: Gives the way to try after an error in another one; None where the error has
            nothing to do with the way.

    Examples:
        >>> from ctxeval.llm.loop import run
        >>> async def send(way):
        ...     if way == "as JSON":
        ...         raise ValueError("no JSON")
        ...     return f"asked {way}"
        >>> ways = Ways("as JSON", lambda way, error: "plainly" if way == "as JSON" else None)
        >>> run(ways.ask(send, Completion)).text
        'asked plainly'
        >>> ways.best
        'plainly'
    """

    def __init__(self, best: W, poorer: Callable[[W, Exception], W | None]) -> None:
        """See the class."""
        self.best = best
        self._poorer = poorer
        self._reasons = False

    async def ask(
        self, send: Callable[[W], Awaitable[R]], read: Callable[[R], Completion]
    ) -> Completion:
        """Ask in the best way; where that is refused, in poorer ones.

        Args:
            send: Asks in a way, and gives the reply.
            read: Reads the reply.

        Raises:
            Exception: What `send` raised when no poorer way was left.
        """
        way = self.best
        while True:
            try:
                reply = await send(way)
            except Exception as error:
                poorer = self._poorer(way, error)
                if poorer is None:
                    raise
                way = poorer
            else:
                self.best = way  # only now is it known that what was left out was to blame
                completion = read(reply)
                self._reasons = self._reasons or completion.usage.reasoning_tokens > 0
                return completion

    def capped(self, max_tokens: int, *, reasons: bool = False) -> int:
        """Give the cap on the output, with room for a model that reasons within it.

        Args:
            max_tokens: The cap on the answer.
            reasons: Is it known to reason, though no reply has shown that yet?
        """
        return max_tokens * (_ROOM_TO_REASON if reasons or self._reasons else 1)
