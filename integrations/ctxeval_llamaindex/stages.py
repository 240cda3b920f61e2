"""The spans that matter, and the stages of retrieval among them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ctxeval_llamaindex.failures import Failure
from ctxeval_llamaindex.reading import text_of
from ctxeval_llamaindex.snapshots import Copy, Fields, copies, ids_of, snapshot
from ctxeval_llamaindex.spans import PROMPT, RERANK, RETRIEVE, SCOPES
from ctxeval_llamaindex.tracing import span_of_stage

if TYPE_CHECKING:
    from ctxeval_llamaindex.queries import Query


_NONE: frozenset[str] = frozenset()


class Stage:
    """A retriever's, postprocessor's or synthesizer's run.

    Attributes:
        kind: Which of them.
        owner: The object itself.
        asked: What it was asked.
        frame: Its span.
        parent: The retrieval or postprocessing that it ran inside of.
        scope: The query, chat or run right around it.
        given: The ids of the nodes that it was given.
        documents: Are documents looked for, and not tools or messages?
        started: When it began, on the performance clock.
        seconds: How long it took; None while it is open.
        fields: A snapshot of what it gave; of a synthesizer, of what it was given.
        error: What went wrong; "" where nothing did.
        traced: Its own span in the application's trace, where it has one.
    """

    __slots__ = (
        "asked",
        "documents",
        "error",
        "fields",
        "frame",
        "given",
        "kind",
        "owner",
        "parent",
        "scope",
        "seconds",
        "started",
        "traced",
    )

    def __init__(self, frame: Frame, owner: Any, documents: bool) -> None:
        """Begin."""
        self.kind = frame.kind
        self.owner = owner
        self.asked: Any = None
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
        self.given = _NONE
        self.documents = documents
        self.seconds: float | None = None
        self.fields: Fields = ()
        self.error = ""
        self.traced = span_of_stage() if _may_be_traced(frame) else None
        self.started = time.perf_counter()

    @property
    def name(self) -> str:
        """What to call it."""
        if self.kind == PROMPT:
            return "synthesizer"
        if self.owner is None:
            return "retriever" if self.kind == RETRIEVE else "reranker"
        return type(self.owner).__name__

    @property
    def query(self) -> str:
        """What it was asked, as a text."""
        return text_of(self.asked) or ""

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
        open: Has it not ended?
        leaks: Does the context of its caller keep it while it goes on elsewhere?
        instance: Whose span it is, as long as it is open.
        stage: The stage that it is, if any.
        failed: Why it failed.
    """

    __slots__ = (
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
        self,
        id_: str,
        kind: str,
        query: Query | None,
        outer: Frame | None,
        instance: Any = None,
    ) -> None:
        """Begin."""
        self.id_ = id_
        self.kind = kind
        self.query = query
        self.outer = outer
        self.open = True
        self.leaks = False
        self.instance = instance
        self.stage: Stage | None = None
        self.failed: Failure | None = None


def _may_be_traced(frame: Frame) -> bool:
    """Could it have a span? A stage that is the whole query has none where the query has none."""
    query = frame.query
    if query is None or not query.is_traced:
        return False
    return query.traced is not None or frame.outer is not None


def still_open(frame: Frame | None) -> Frame | None:
    """Go outwards to the first frame that is not over."""
    while frame is not None and not frame.open:
        frame = frame.outer
    return frame


def around_of(here: Frame | None) -> Frame | None:
    """Find the frame that code is really inside of, where the context says `here`."""
    frame = still_open(here)
    while frame is not None and frame.leaks:  # only its steps are inside of it
        frame = still_open(frame.outer)
    return frame


def begin_stage(frame: Frame, arguments: Mapping[str, Any], documents: bool) -> Stage:
    """Note what a stage was asked, and what it was given."""
    stage = Stage(frame, frame.instance, documents)
    if frame.kind == RETRIEVE:
        stage.asked = next(iter(arguments.values()), None)
        return stage
    nodes = arguments.get("nodes") or ()
    stage.asked = arguments.get("query") or arguments.get("query_bundle")
    stage.given = ids_of(nodes)
    if frame.kind == PROMPT:
        stage.fields = snapshot(nodes, whole=frame.query is not None and frame.query.whole)
    return stage


def end_stage(stage: Stage, result: Any, whole: bool) -> None:
    """Note what a stage gave; if that can't be read, the stage says so too."""
    stage.seconds = time.perf_counter() - stage.started
    if stage.traced is None and _may_be_traced(stage.frame):
        stage.traced = span_of_stage()  # our handler may be before the tracing's own
    if stage.frame.failed is not None:
        stage.error = stage.frame.failed.text
    elif stage.kind != PROMPT:
        if isinstance(result, (list, tuple)):
            stage.error = "what it returned could not be read"
            stage.fields = snapshot(result, whole=whole)
            stage.error = ""
        else:
            stage.error = f"it returned {type(result).__name__}: let it return a list of nodes"
