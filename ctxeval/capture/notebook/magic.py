"""The magic `%ctxeval`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from ctxeval.capture.notebook.display import Output, show
from ctxeval.capture.notebook.options import USAGE, parsed, recorder_of
from ctxeval.capture.recorder import Recorder
from ctxeval.capture.trace import install_adapters
from ctxeval.errors import CtxEvalError, InvalidArgumentError, MissingExtraError
from ctxeval.record.query import QueryRecord

FAILED = 5
"""So many queries that could not be judged are shown before the worst ones."""

if TYPE_CHECKING:
    from ctxeval.capture.notebook.extension import Tracing
    from ctxeval.report.content import Score


def queries(n: int) -> str:
    """Count queries."""
    return f"{n} {'query' if n == 1 else 'queries'}"


class Magic:
    """The magic `%ctxeval` of a shell.

    Args:
        shell: The IPython that has it.
        tracing: What it switches.
    """

    def __init__(self, shell: Any, tracing: Tracing) -> None:
        """See the class."""
        self._shell = shell
        self._tracing = tracing
        self.__doc__ = USAGE  # what `%ctxeval?` shows

    def __call__(self, line: str) -> Recorder | None:
        """Do what the line says; what is wrong with it is one line, without a traceback."""
        from IPython.core.error import UsageError

        try:
            read = parsed(line)
            if read.command == "on":
                return self._on(recorder_of(read, self._shell.user_ns))
            if read.command == "report":
                self._report(read.file)
            elif read.command == "off":
                self._off()
            else:
                print(USAGE)
        except CtxEvalError as error:
            raise UsageError(" ".join(str(error).split())) from None
        return None

    def _on(self, recorder: Recorder) -> Recorder:
        if not install_adapters():
            raise CtxEvalError(
                "nothing can be captured, since neither LangChain nor LlamaIndex is installed: "
                "pip install 'ctxeval[langchain]' or 'ctxeval[llamaindex]'"
            )
        before = self._tracing.recorder
        if self._tracing.is_on and before is not None and (n := len(before.records)):
            print(f"ctxeval was on: %ctxeval report no longer shows its {queries(n)}")
        self._tracing.on(recorder)
        return recorder

    def _off(self) -> None:
        recorder = self._tracing.recorder
        if recorder is None or not self._tracing.is_on:
            print("ctxeval is not on")
            return
        self._tracing.off()
        n = len(recorder.records)
        print(f"ctxeval is off: %ctxeval report shows its {queries(n)}")

    def _report(self, file: str | None) -> None:
        recorder = self._tracing.recorder
        if recorder is None:
            raise InvalidArgumentError(
                "%ctxeval report: nothing was captured: %ctxeval on is first"
            )
        try:
            recorder.flush()
        except KeyboardInterrupt:
            print("interrupted: what is still being judged follows")
            show(recorder)
            return
        if file is not None:
            print(f"the report is in {recorder.evaluation().report(file)}")
            return
        from ctxeval.evaluation.reporting import scores_of

        scores: tuple[Score, ...] = ()
        notes = recorder.notes
        failed = _failed(recorder.records)
        shown = {record.id for record in failed}
        others = (record for record in recorder.records if record.id not in shown)
        records = [*failed, *sorted(others, key=_mean)]
        if len(records) > 1:
            first = (
                "What could not be judged first, then the worst" if failed else "The worst first"
            )
            notes = [*notes, f"{first}, by the mean of their scores."]
            try:
                scores = scores_of(recorder.evaluation())
            except MissingExtraError as error:
                notes = [*notes, str(error)]
        Output(records, notes, scores).show()


def _failed(records: Iterable[QueryRecord]) -> list[QueryRecord]:
    """Give the first few that could not be judged."""
    failed = (
        record
        for record in records
        if any(score.status == "failed" for score in record.scores.values())
    )
    return list(islice(failed, FAILED))


def _mean(record: QueryRecord) -> float:
    values = [one.value for one in record.scores.values() if one.value is not None]
    return sum(values) / len(values) if values else 2.0  # what has none comes last
