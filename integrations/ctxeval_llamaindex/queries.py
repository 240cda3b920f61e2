"""What is known of a query while it is under way, until its record is made."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxeval import QueryStatus, Recorder, TraceSpan
from ctxeval_llamaindex.failures import Failure
from ctxeval_llamaindex.stages import Frame, Stage
from ctxeval_llamaindex.tracing import is_traced, span_of_query

if TYPE_CHECKING:
    from ctxeval_llamaindex.takers import Taker


class Process:
    """Tells a process from those that were forked from it, at less cost than its id."""

    generation = 0

    @classmethod
    def forked(cls) -> None:
        """Note that this is a child."""
        cls.generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Process.forked)


class Outcome(NamedTuple):
    """How a query ended.

    Attributes:
        status: How.
        answer: What was answered, as far as it is known.
        result: What the root returned, where the user's function has to see it.
    """

    status: QueryStatus
    answer: str | None = None
    result: Any = None


class Query:
    """A root span and everything below it that matters.

    Attributes:
        id_: The root's span id.
        kind: What the root is.
        order: Its place in the order of asking.
        generation: That of the process that asks.
        name: The root's class.
        input: What the root was given.
        metadata: The tags that are meant for us.
        takers: Who gets the record.
        frames: All frames, the root first.
        stages: The stages, in order of starting.
        failed: Why the root failed.
        step_failed: Why a step of a workflow failed last.
        started: When it began.
        ended: When it ended.
        outcome: How it ended; None while it is under way.
        is_traced: Could the application be tracing?
        traced: Its span in the application's trace, or the one that it ran in.
    """

    __slots__ = (
        "ended",
        "failed",
        "frames",
        "generation",
        "id_",
        "input",
        "is_traced",
        "kind",
        "metadata",
        "name",
        "order",
        "outcome",
        "stages",
        "started",
        "step_failed",
        "takers",
        "traced",
    )

    def __init__(
        self,
        id_: str,
        kind: str,
        name: str,
        input: Any,
        metadata: Mapping[str, Any],
        takers: Sequence[Taker],
    ) -> None:
        """Begin."""
        self.id_ = id_
        self.kind = kind
        self.order = Recorder.next_order()
        self.generation = Process.generation
        self.name = name
        self.input = input
        self.metadata = metadata
        self.takers = takers
        self.frames: list[Frame] = []
        self.stages: list[Stage] = []
        self.failed: Failure | None = None
        self.step_failed: Failure | None = None
        self.outcome: Outcome | None = None
        self.is_traced = is_traced()
        self.traced: TraceSpan | None = span_of_query() if self.is_traced else None
        self.started = self.ended = time.time()

    @property
    def is_ours(self) -> bool:
        """Does this process ask, and not the one that it was forked from?"""
        return self.generation == Process.generation

    @property
    def whole(self) -> bool:
        """Does one of the takers need the nodes themselves?"""
        for taker in self.takers:  # noqa: SIM110  # quicker, and the application waits for it
            if taker.sees_nodes:
                return True
        return False
