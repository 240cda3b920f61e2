"""Outputs of cells that follow the scores of their queries."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, overload
from uuid import uuid4

from ctxeval.capture.notebook.following import EVERY, follower
from ctxeval.record.query import QueryRecord
from ctxeval.report.notebook import QUERIES, bundle, print_queries
from ctxeval.report.view import QueryView

if TYPE_CHECKING:
    from ctxeval.capture.recorder import Recorder
    from ctxeval.report.content import Score


def shell() -> Any:
    """Give the IPython that runs; None where there is none."""
    ipython = sys.modules.get("IPython")  # loaded where a notebook runs, never by us
    return None if ipython is None else ipython.get_ipython()


def can_update(running: Any) -> bool:
    """Can this IPython change what it has shown? A terminal can't."""
    return getattr(running, "kernel", None) is not None


def width() -> int:
    """Give the number of columns for text: a terminal's own, or enough for a notebook."""
    return 110 if can_update(shell()) else get_terminal_size().columns


class Views(Sequence[QueryView]):
    """The views of records, each made only if it is looked at."""

    def __init__(self, records: Sequence[QueryRecord]) -> None:
        """See the class."""
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> QueryView: ...
    @overload
    def __getitem__(self, index: slice) -> list[QueryView]: ...
    def __getitem__(self, index: int | slice) -> QueryView | list[QueryView]:
        from ctxeval.report.viewing import view_of_record

        if isinstance(index, slice):
            return [view_of_record(record) for record in self._records[index]]
        return view_of_record(self._records[index])


class Output:
    """One output of a cell.

    Args:
        records: The queries that it shows.
        notes: What it says besides, a line each.
        scores: The metrics over all queries, to be shown first.
        more: Gives the queries that came since, and whether others may come.
    """

    def __init__(
        self,
        records: Iterable[QueryRecord],
        notes: Sequence[str] = (),
        scores: Sequence[Score] = (),
        more: Callable[[], tuple[list[QueryRecord], bool]] | None = None,
    ) -> None:
        """See the class."""
        self._id = uuid4().hex
        self._records = list(records)
        self._notes = notes
        self._scores = scores
        self._more = more
        self._shown: object = None
        self._sent = 0.0
        self._lock = threading.Lock()

    @property
    def unfinished(self) -> bool:
        """Is something new, or still to come?"""
        to_come = any(record.pending for record in self._records[:QUERIES])
        return self.changed or to_come or self._more is not None

    @property
    def changed(self) -> bool:
        """Is there something that was not shown yet?"""
        self._grow()
        return self._state() != self._shown

    @property
    def wait(self) -> float:
        """How many seconds it must not be updated yet."""
        return max(0.0, self._sent + EVERY - time.monotonic())

    def close(self) -> None:
        """Take the queries that came so far, and no others."""
        self._grow()
        with self._lock:
            self._more = None

    def _grow(self) -> None:
        with self._lock:
            if self._more is not None:
                records, others = self._more()
                self._records += records
                if not others:
                    self._more = None

    def _state(self) -> object:
        shown = self._records[:QUERIES]
        return [(len(one.scores), one.pending) for one in shown], len(self._records)

    def show(self) -> None:
        """Show it below the cell that runs, and keep it up to date."""
        if not can_update(shell()):
            self._print()
            return
        self.send(update=False)
        if self.unfinished:
            follower.follow(self, shell())

    def _print(self) -> None:
        pending = any(record.pending for record in self._records)
        later = ["Some scores are still to come: %ctxeval report shows them."] if pending else []
        print_queries(Views(self._records), [*self._notes, *later], self._scores)

    def send(self, *, update: bool = True) -> int:
        """Send it as it is now.

        From a thread it goes out in the name of the cell that runs, or else ran last. Frontends
        find the output by its id, whatever that cell; nbclient listens only to the one that runs.

        Returns:
            How many bytes it took, about.
        """
        from IPython.display import display

        self._shown = self._state()
        data = bundle(Views(self._records), self._notes, self._scores, width())
        show_in: Any = display  # IPython declares no types for it
        show_in(data, raw=True, display_id=self._id, update=update)
        self._sent = time.monotonic()
        return sum(map(len, data.values()))


def show(recorder: Recorder) -> None:
    """Show what a recorder captured below the cell that runs."""
    Output(recorder.records, recorder.notes).show()


def show_followed(recorder: Recorder) -> bool:
    """Show what a recorder captured, if scores are to come and the output can follow them.

    Returns:
        Was it shown?
    """
    follows = can_update(shell()) and any(record.pending for record in recorder.records)
    if follows:
        show(recorder)
    return follows


def bundle_of(recorder: Recorder) -> dict[str, str]:
    """Write what a recorder captured in the forms that a notebook chooses from."""
    records, notes = recorder.records, recorder.notes
    if not records:
        n = recorder.without_retrieval
        without = f" {n} ended without any retrieval." if n else ""
        notes = [f"No query was captured so far.{without} {recorder.setup}", *notes]
    return bundle(Views(records), notes, (), width())


def bundle_of_record(record: QueryRecord) -> dict[str, str]:
    """Write one query in those forms."""
    return bundle(Views([record]), width=width())
