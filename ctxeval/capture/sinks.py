"""Where scores may go: exporters, and functions of scores."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, runtime_checkable

from ctxeval.errors import ExportError, InvalidArgumentError, short
from ctxeval.export.score import Score, scores_of
from ctxeval.record.query import QueryRecord


@runtime_checkable
class Exporter(Protocol):
    """What sends a query's scores to a product; those of `ctxeval.export` are some."""

    @property
    def name(self) -> str:
        """What to call it where deliveries are counted."""
        ...

    def export(self, record: QueryRecord, /) -> object:
        """Send a query's scores; raise where that fails. Sending twice changes nothing."""
        ...


Sink = Exporter | Callable[[Sequence[Score]], object]
"""Where scores go: an exporter, or any function of a query's scores."""


class _Function:
    """Any function of scores, as an exporter."""

    def __init__(self, function: Callable[[Sequence[Score]], object]) -> None:
        self.name = getattr(function, "__qualname__", type(function).__name__)
        self._function = function

    def export(self, record: QueryRecord) -> None:
        given = self._function(scores_of(record))
        if inspect.iscoroutine(given):
            given.close()
            raise ExportError(f"{self.name} is asynchronous: give a function that sends")
        if inspect.isgenerator(given) or inspect.isasyncgen(given):
            raise ExportError(f"{self.name} is a generator, which nobody runs: give what sends")


def exporters_of(sinks: Iterable[Sink]) -> list[Exporter]:
    """Take sinks as exporters.

    Raises:
        InvalidArgumentError: One is no sink, or two have one name.
    """
    if isinstance(sinks, Exporter) or callable(sinks) or not isinstance(sinks, Iterable):
        raise InvalidArgumentError(f"sinks: {short(sinks)} is no list of sinks: give [sink]")
    made: list[Exporter] = []
    for sink in sinks:
        if isinstance(sink, type) or inspect.iscoroutinefunction(getattr(sink, "export", sink)):
            what = "a class" if isinstance(sink, type) else "asynchronous"
            raise InvalidArgumentError(f"sinks: {short(sink)} is {what}: give what sends by itself")
        if isinstance(sink, Exporter):
            made.append(sink)
        elif callable(sink):
            made.append(_Function(sink))
        else:
            raise InvalidArgumentError(
                f"sinks: a {type(sink).__name__} takes no scores: give a function of them, or an "
                "exporter of ctxeval.export"
            )
    names = [one.name for one in made]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidArgumentError(
            f"sinks: two are called {twice[0]!r}, so that what one did not take can't be told from "
            "the other's: give each a name of its own"
        )
    return made
