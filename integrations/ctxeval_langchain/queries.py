"""What is known of a query while it is under way, until its record is made.

Runs go by their ids as integers: a UUID is hashed by Python code at every look-up.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ctxeval import Recorder, TraceSpan


class RetrieverRun:
    """A retriever's run as its events tell it.

    Attributes:
        query: What it was asked.
        name: Its name.
        around: The retrieval that it ran inside of without being told so, if any.
        place: The task or thread that it began in.
        started: When it began, on the performance clock.
        seconds: How long it took; None while it is open.
        copies: What it returned, copied.
        error: What went wrong; "" where nothing did.
        traced: Its own span in the application's trace, where it has one.
    """

    __slots__ = (
        "around",
        "copies",
        "error",
        "name",
        "place",
        "query",
        "seconds",
        "started",
        "traced",
    )

    def __init__(self, query: Any, name: str, around: int | None, place: int) -> None:
        """Begin."""
        self.query = query
        self.name = name
        self.around = around
        self.place = place
        self.started = time.perf_counter()
        self.seconds: float | None = None
        self.copies: Any = ()
        self.error = ""
        self.traced: TraceSpan | None = None


class Failure(NamedTuple):
    """Why a run failed, without the error itself, which keeps the application's frames alive.

    Attributes:
        kind: The error's class.
        text: The error in words.
        fatal: Is it what the whole query failed of in the end?
    """

    kind: type[BaseException]
    text: str
    fatal: bool

    @classmethod
    def of(cls, error: BaseException, at_root: BaseException | None) -> Failure:
        """Note an error."""
        try:
            text = f"{type(error).__name__}: {error}"
        except Exception:  # it can't even say what it is
            text = type(error).__name__
        return cls(type(error), text, error is at_root)

    def is_a(self, *names: str) -> bool:
        """Is it of one of these classes? By name, since their package may not be installed."""
        return any(one.__name__ in names for one in self.kind.__mro__)


CONTROL_FLOW = "GraphBubbleUp"
"""What a graph raises to stop, which is no failure."""


class Part:
    """A chain inside of a query, in case that it turns out to be a query of its own.

    Attributes:
        name: Its name.
        input: Its input.
        metadata: Its metadata.
        started: When it began.
        ended: When it ended; None as long as it has not.
        output: Its output.
    """

    __slots__ = ("ended", "input", "metadata", "name", "output", "started")

    def __init__(self, name: str | None, input: Any, metadata: Mapping[str, Any]) -> None:
        """Begin."""
        self.name = name
        self.input = input
        self.metadata = metadata
        self.started = time.time()
        self.ended: float | None = None
        self.output: Any = None

    def end(self, output: Any, late_input: Any) -> None:
        """Note the end."""
        self.ended = time.time()
        self.output = output
        if late_input is not None:
            self.input = late_input


class Query:
    """A root run and everything below it that matters.

    Attributes:
        root_id: The root's run id.
        order: Its place in the order of asking.
        name: The root's name.
        input: The root's input.
        metadata: The root's metadata.
        chain: Is the root a chain, so that its output may be an answer?
        one_of_many: Is the metadata that of a `.map()`, which says nothing of its questions?
        started: When it began.
        ended: When it ended.
        parents: The parent of each run below the root.
        parts: The chains below the root, by run, if it may turn out to be several queries.
        open: The runs that have not ended.
        holds_queries: Did runs below it turn out to be queries of their own?
        retrievals: The retriever runs, in order of starting.
        errors: The errors of runs that failed, as long as the query is under way.
        failed: The runs that failed, when it was over.
        prompts: What models were shown, by run, in order, where that is captured.
        output: The root's output.
        traced: Its span in the application's trace, or the one that it ran in.
    """

    __slots__ = (
        "chain",
        "ended",
        "errors",
        "failed",
        "holds_queries",
        "input",
        "metadata",
        "name",
        "one_of_many",
        "open",
        "order",
        "output",
        "parents",
        "parts",
        "prompts",
        "retrievals",
        "root_id",
        "started",
        "traced",
    )

    def __init__(
        self,
        root_id: int,
        name: str | None,
        input: Any,
        metadata: Mapping[str, Any],
        chain: bool,
        one_of_many: bool,
    ) -> None:
        """Begin."""
        self.root_id = root_id
        self.order = Recorder.next_order()
        self.name = name
        self.input = input
        self.metadata = metadata
        self.chain = chain
        self.one_of_many = one_of_many
        self.started = self.ended = time.time()
        self.parents: dict[int, int] = {}
        self.parts: dict[int, Part] | None = None
        self.open = {root_id}
        self.holds_queries = False
        self.retrievals: dict[int, RetrieverRun] = {}
        self.errors: dict[int, BaseException] = {}
        self.failed: Mapping[int, Failure] = {}
        self.prompts: dict[int, Any] = {}
        self.output: Any = None
        self.traced: TraceSpan | None = None

    @property
    def spread(self) -> bool:
        """Is the root a `.map()`, so that each run right below it is a query of its own?"""
        return self.name is not None and self.name.startswith("RunnableEach")

    @property
    def unfinished(self) -> bool:
        """Has a part of it not ended?

        Retrievers aside: a cancelled one does not tell its end, and something else may have
        been tried.
        """
        return not self.open <= self.retrievals.keys()

    @property
    def interrupted(self) -> bool:
        """Did a graph stop to ask its user?"""
        return any(failure.is_a("GraphInterrupt") for failure in self.failed.values())

    def close(self) -> None:
        """Note that it is over, and let go of what was needed until then."""
        if self.errors:
            at_root = self.errors.get(self.root_id)
            self.failed = {id: Failure.of(error, at_root) for id, error in self.errors.items()}
        del self.errors

    def rename(self, root_id: int) -> None:
        """Let it be known by the id of an earlier run, once it is over."""
        if (failure := self.failed.get(self.root_id)) is not None:
            self.failed = {**self.failed, root_id: failure}
        self.root_id = root_id

    def given_up(self, *run_ids: int) -> str:
        """Say which of these runs failed, so that something else was tried; "" if none did.

        What made the whole query fail ended it: there was nothing else.
        """
        for one in run_ids:
            failure = self.failed.get(one)
            if failure is not None and not failure.fatal and not failure.is_a(CONTROL_FLOW):
                return f"its attempt was given up: {failure.text}"
        return ""

    def ancestors(self, run_id: int) -> Iterator[int]:
        """Go from a run to the root."""
        parent = self.parents.get(run_id)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)
