"""The event handler: it only takes snapshots, a recorder does the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Self

from ctxeval import InvalidArgumentError, QueryRecord, Recorder
from ctxeval_llamaindex.hooks import Attachable, attached, ensure, tracker
from ctxeval_llamaindex.instrumentation import BaseEvent
from ctxeval_llamaindex.takers import MAX_OPEN, OPEN_SECONDS, Taker


class CtxEvalEventHandler(Attachable):
    """Captures what engines, chats, agents and retrievers retrieve, and scores it behind them.

    From `CtxEvalEventHandler(…).install()` on, every query of the process is captured;
    `get_dispatcher().add_event_handler(handler)` does the same.

    Args:
        recorder: Where the records go; None: one of its own, made of the other arguments.
        include: Which retrievals count: a function of the retriever. None: all but those that
            look for tools in an `ObjectIndex` or for messages in a memory.
        query_name: The class of engines or workflows whose every run is a query, wherever it
            stands in a larger run.
        max_open: How many queries may be under way; the oldest are given up.
        open_seconds: How long a query may take before it is given up.
        **options: Those of `Recorder`: `metrics`, `references`, `llm`, `id_key`, …
            An `id_key` is "node_id", which is the default, "source_id" for the document that a
            node was cut from, a key of the metadata, or a function of the node.

    Raises:
        InvalidArgumentError: An argument is none.
    """

    _taker: Taker

    def __init__(
        self,
        recorder: Recorder | None = None,
        *,
        include: Callable[[Any], bool] | None = None,
        query_name: str | None = None,
        max_open: int = MAX_OPEN,
        open_seconds: float = OPEN_SECONDS,
        **options: Any,
    ) -> None:
        """See the class."""
        super().__init__()
        if include is not None and not callable(include):
            raise InvalidArgumentError(f"include: {include!r} is no function of a retriever")
        if query_name is not None and not isinstance(query_name, str):
            raise InvalidArgumentError(f"query_name: {query_name!r} is no name of a class")
        if isinstance(max_open, bool) or not isinstance(max_open, int) or max_open < 1:
            raise InvalidArgumentError(f"max_open: {max_open!r} is no number of queries: give 1000")
        timed = isinstance(open_seconds, (int, float)) and not isinstance(open_seconds, bool)
        if not timed or not open_seconds > 0:
            raise InvalidArgumentError(f"open_seconds: {open_seconds!r} is no time: give 900")
        self._taker = Taker(
            Recorder.of(recorder, options), include, query_name, max_open, open_seconds
        )
        ensure()

    @classmethod
    def class_name(cls) -> str:
        """Name the class, as LlamaIndex wants it."""
        return "CtxEvalEventHandler"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Do nothing: one pair of hooks sees events and spans for all handlers."""

    def install(self) -> Self:
        """Capture every query of the process that begins from now on. Idempotent."""
        ensure()
        attached.add(self._taker)
        return self

    def uninstall(self) -> None:
        """Capture no more queries; those under way are seen to their end."""
        attached.remove(self._taker)

    @property
    def taker(self) -> Taker:
        """Who takes the queries."""
        return self._taker

    @property
    def recorder(self) -> Recorder:
        """Where the records go."""
        return self._taker.recorder

    @property
    def errors(self) -> Counter[str]:
        """How many hooks failed, by the error's name."""
        return self._taker.errors

    @property
    def records(self) -> list[QueryRecord]:
        """The captured queries, in order of asking; see `Recorder.records`."""
        return self.recorder.records

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything captured so far is scored; see `Recorder.flush`."""
        return self.recorder.flush(timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Uninstall, give up what is still open, and close the recorder; see `Recorder.close`."""
        self.uninstall()
        tracker.give_up_all(self._taker)
        return self.recorder.close(timeout)

    def __copy__(self) -> CtxEvalEventHandler:
        return self

    def __deepcopy__(self, memo: object = None) -> CtxEvalEventHandler:
        return self
