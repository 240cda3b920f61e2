"""`%load_ext ctxeval`: after each cell that retrieves, show what it found and how good that was."""

from __future__ import annotations

import logging
from typing import Any

from ctxeval.capture.notebook.display import Output, bundle_of_record
from ctxeval.capture.notebook.following import follower
from ctxeval.capture.notebook.magic import Magic
from ctxeval.capture.recorder import Recorder
from ctxeval.capture.trace import capture_everywhere
from ctxeval.errors import describe
from ctxeval.record.query import QueryRecord

logger = logging.getLogger("ctxeval")

PATIENCE = 2.0
"""How many seconds the end of a cell waits for scores by id and text at most."""


class Tracing:
    """What a shell captures, and shows after each cell.

    Args:
        shell: The IPython that runs the cells.
    """

    def __init__(self, shell: Any) -> None:
        """See the class."""
        self._shell = shell
        self.recorder: Recorder | None = None
        self.is_on = False
        self._seen: dict[str, QueryRecord] = {}
        self._notes: set[str] = set()
        self._last: Output | None = None
        self._outer: tuple[object, object] | None = None

    def on(self, recorder: Recorder) -> None:
        """Capture from now on, whatever runs in whichever thread, by this recorder."""
        self._close()
        self.recorder, self.is_on = recorder, True
        self._seen, self._notes = {}, set()
        recorder.quiet()  # a line from a thread lands below any cell
        capture_everywhere(recorder)

    def off(self) -> None:
        """Capture nothing more."""
        self.is_on = False
        capture_everywhere(None)

    def before_cell(self, info: Any) -> None:
        """Note which cell begins: cells may run others, and these show nothing of their own."""
        request = self._request()
        if self._outer is None or self._outer[1] != request:
            self._outer = info, request
        self._close()

    def _close(self) -> None:
        if self._last is not None:
            self._last.close()
            self._last = None

    def after_cell(self, result: Any) -> None:
        """Show what the cell retrieved."""
        info = getattr(result, "info", None)  # an interrupted cell has no result
        if self._outer is not None and info is not None and info is not self._outer[0]:
            return
        self._outer = None
        if self.recorder is None:
            return
        try:
            self._close()  # an empty cell ends without having begun
            self._show()
        except (Exception, KeyboardInterrupt) as error:  # IPython would print a traceback
            logger.warning("ctxeval: what was retrieved could not be shown: %s", describe(error))
            logger.debug("ctxeval: this is where", exc_info=True)

    def _request(self) -> object:
        """Give the id of the frontend's request: a cell that another one runs has the same."""
        parent = getattr(self._shell, "parent_header", None) or {}  # there is none in a terminal
        return parent.get("header", {}).get("msg_id")

    def _show(self) -> None:
        records, others = self._new(PATIENCE)
        if not records and not others:
            return
        assert self.recorder is not None
        notes = [note for note in self.recorder.notes if note not in self._notes]
        self._notes.update(notes)
        output = Output(records, notes, more=(lambda: self._new(0)) if others else None)
        output.show()
        self._last = output if others else None

    def _new(self, seconds: float) -> tuple[list[QueryRecord], bool]:
        """Give the records that were not shown yet, and whether others are about to come."""
        assert self.recorder is not None
        records, complete = self.recorder.peek(seconds)
        new = [record for record in records if self._seen.get(record.id) is not record]
        self._seen = {record.id: record for record in records}
        return new, not complete


_loaded: dict[int, Tracing] = {}


def load_ipython_extension(ipython: Any) -> None:
    """Give IPython the magic `%ctxeval`, and forms of records: `%load_ext ctxeval` calls this."""
    tracing = Tracing(ipython)
    ipython.events.register("pre_run_cell", tracing.before_cell)
    ipython.events.register("post_run_cell", tracing.after_cell)
    ipython.register_magic_function(Magic(ipython, tracing), "line", "ctxeval")
    ipython.display_formatter.mimebundle_formatter.for_type(QueryRecord, bundle_of_record)
    follower.attach(ipython)  # after our own, so that it finds what these have just shown
    _loaded[id(ipython)] = tracing


def unload_ipython_extension(ipython: Any) -> None:
    """Take the magic out again, and capture nothing more: `%unload_ext ctxeval` calls this."""
    tracing = _loaded.pop(id(ipython), None)
    if tracing is not None:
        tracing.off()
        ipython.events.unregister("pre_run_cell", tracing.before_cell)
        ipython.events.unregister("post_run_cell", tracing.after_cell)
        ipython.magics_manager.magics["line"].pop("ctxeval", None)
        ipython.display_formatter.mimebundle_formatter.pop(QueryRecord, None)
