"""What is known of a query while it is under way, until its record is made."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxeval import QueryStatus
from ctxeval_llamaindex.snapshots import Copy, Fields, copies
from ctxeval_llamaindex.spans import PROMPT, RERANK, RETRIEVE, SCOPES

if TYPE_CHECKING:
    from ctxeval_llamaindex.takers import Taker

_order = itertools.count()

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


class Stage:
    """A retriever's, postprocessor's or synthesizer's run.

    Attributes:
        kind: Which of them.
        owner: The object itself.
        query: What it was asked.
        frame: Its span.
        parent: The retrieval or postprocessing that it ran inside of.
        scope: The query, chat or run right around it.
        given: The ids of the nodes that it was given.
        documents: Are documents looked for, and not tools or messages?
        started: When it began, on the performance clock.
        seconds: How long it took; None while it is open.
        fields: A snapshot of what it gave; of a synthesizer, of what it was given.
        error: What went wrong; "" where nothing did.
    """

    __slots__ = (
        "documents",
        "error",
        "fields",
        "frame",
        "given",
        "kind",
        "owner",
        "parent",
        "query",
        "scope",
        "seconds",
        "started",
    )

    def __init__(self, frame: Frame, owner: Any, documents: bool) -> None:
        """Begin."""
        self.kind = frame.kind
        self.owner = owner
        self.query = ""
        self.frame = frame
        self.parent: Stage | None = None
        self.scope: Frame | None = None
        around = frame.outer
        while around is not None:
            if self.scope is None and around.kind in SCOPES:
                self.scope = around
            if around.kind in (RETRIEVE, RERANK):
                self.parent = around.stage
                break
            around = around.outer
        self.given: frozenset[str] = frozenset()
        self.documents = documents
        self.seconds: float | None = None
        self.fields: Fields = ()
        self.error = ""
        self.started = time.perf_counter()

    @property
    def name(self) -> str:
        """What to call it."""
        if self.kind == PROMPT:
            return "synthesizer"
        return "retriever" if self.owner is None else type(self.owner).__name__

    @property
    def copies(self) -> list[Copy]:
        """The nodes that it gave; of a synthesizer, those that it was given."""
        return copies(self.fields)


class Frame:
    """A span that matters. Contexts that live on may keep it, so it lets go of all else.

    Attributes:
        id_: The span's id.
        kind: What it is.
        query: The query that it belongs to, as long as that is under way.
        outer: The frame around it.
        before: What stood in the context before it.
        open: Has it not ended?
        leaks: Does the context of its caller keep it while it goes on elsewhere?
        instance: Whose span it is, as long as it is open.
        stage: The stage that it is, if any.
        failed: Why it failed.
    """

    __slots__ = (
        "before",
        "failed",
        "id_",
        "instance",
        "kind",
        "leaks",
        "open",
        "outer",
        "query",
        "stage",
    )

    def __init__(
        self, id_: str, kind: str, query: Query | None, outer: Frame | None, before: Frame | None
    ) -> None:
        """Begin."""
        self.id_ = id_
        self.kind = kind
        self.query = query
        self.outer = outer
        self.before = before
        self.open = True
        self.leaks = False
        self.instance: Any = None
        self.stage: Stage | None = None
        self.failed: Failure | None = None


class Query:
    """A root span and everything below it that matters.

    Attributes:
        id_: The root's span id.
        kind: What the root is.
        order: Its place in the order of asking.
        pid: The process that asks.
        name: The root's class.
        input: What the root was given.
        question: The question, if it was found there.
        metadata: The tags that are meant for us.
        takers: Who gets the record.
        whole: Does one of them need the nodes themselves?
        frames: All frames, the root first.
        stages: The stages, in order of starting.
        failed: Why the root failed.
        step_failed: Why a step of a workflow failed last.
        started: When it began.
        ended: When it ended.
        outcome: How it ended; None while it is under way.
    """

    __slots__ = (
        "ended",
        "failed",
        "frames",
        "id_",
        "input",
        "kind",
        "metadata",
        "name",
        "order",
        "outcome",
        "pid",
        "question",
        "stages",
        "started",
        "step_failed",
        "takers",
        "whole",
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
        self.order = next(_order)
        self.pid = os.getpid()
        self.name = name
        self.input = input
        self.question: str | None = None
        self.metadata = metadata
        self.takers = takers
        self.whole = True in [taker.sees_nodes for taker in takers]
        self.frames: list[Frame] = []
        self.stages: list[Stage] = []
        self.failed: Failure | None = None
        self.step_failed: Failure | None = None
        self.outcome: Outcome | None = None
        self.started = self.ended = time.time()
