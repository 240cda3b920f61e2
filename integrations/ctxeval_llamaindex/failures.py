"""Why something failed, noted so that nothing of it is kept alive."""

from __future__ import annotations

from typing import NamedTuple

from ctxeval import QueryStatus

_CONTROL_FLOW = ("WaitingForEvent", "WorkflowDone")
_CANCELLED = ("CancelledError", "GeneratorExit", "KeyboardInterrupt", "WorkflowCancelledByUser")


class Failure(NamedTuple):
    """Why a span failed, without the error itself, which keeps the application's frames alive.

    Attributes:
        kind: The name of the error's class.
        text: The error in words.
        identity: The same number for the same error, wherever it went through.
    """

    kind: str
    text: str
    identity: int

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Note an error."""
        kind = type(error).__name__
        try:
            text = f"{kind}: {error}"
        except Exception:  # it can't even say what it is
            text = kind
        return cls(kind, text, id(error))

    @property
    def is_control_flow(self) -> bool:
        """Is it only a workflow's way to go on?"""
        return self.kind in _CONTROL_FLOW

    @property
    def status(self) -> QueryStatus:
        """What becomes of the query that it ended."""
        return "cancelled" if self.kind in _CANCELLED else "error"
