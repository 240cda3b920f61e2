"""Sending what sinks did not take, once they take it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ctxeval.capture.sinks import Exporter, Sink, exporters_of
from ctxeval.errors import NotTracedError, describe
from ctxeval.keys import said_by_others

if TYPE_CHECKING:
    from ctxeval.store import Store

MAX_FAILURES = 3
"""After so many failures in a row a sink is left alone: it is not back yet."""


class Resent(NamedTuple):
    """How a sink fared.

    Attributes:
        sent: How many records it took.
        left: How many it still has not taken.
        error: What went wrong last; "" where nothing did.
    """

    sent: int
    left: int
    error: str


def resend(store: Store, sinks: Iterable[Sink]) -> dict[str, Resent]:
    """Send what a store keeps because sinks did not take it.

    Args:
        store: The store.
        sinks: The sinks, with the names that they had.

    Returns:
        How each fared, by its name.

    Raises:
        InvalidArgumentError: One is no sink, or two have one name.
        StoreError: The store could not be read or written.
    """
    return {one.name: _resend(store, one) for one in exporters_of(sinks)}


def _resend(store: Store, exporter: Exporter) -> Resent:
    sent = failures = 0
    said = ""
    for record in store.unsent(exporter.name):
        try:
            exporter.export(record)
        except Exception as error:
            said = said_by_others(describe(error))
            if not isinstance(error, NotTracedError):  # or it never will
                failures += 1
                if failures == MAX_FAILURES:
                    break
                continue
        else:
            sent += 1
            failures = 0
        store.sent(exporter.name, record.id)
    return Resent(sent, store.count_unsent().get(exporter.name, 0), said)
