"""Takes records from any framework and scores them behind the application's back."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ctxeval.capture.worker import Worker
from ctxeval.errors import InvalidArgumentError, short
from ctxeval.metrics import RankMetric
from ctxeval.naming import Metrics, MetricSet
from ctxeval.record.query import QueryRecord, Retrieval
from ctxeval.record.references import References
from ctxeval.result import MetricResult
from ctxeval.sample import Sample

if TYPE_CHECKING:
    from ctxeval.llm.protocol import LLM
    from ctxeval.metric import Metric

logger = logging.getLogger("ctxeval")

WARN_EVERY = 60.0
"""Seconds between two warnings about records that were dropped."""


class Recorder:
    """Takes records from any framework, scores them, and keeps them.

    Handing a record over costs the application next to nothing: one worker thread
    does the rest. What it can't keep up with is dropped and counted.

    Args:
        metrics: Metrics or their names; "auto": whatever a record has the fields for.
        references: What is expected: a `References`, a list of samples, or a path.
        llm: The model, for metrics given by name and for "auto".
        max_pending: How many records wait to be scored at most.

    Attributes:
        dropped: How many records were dropped, by reason.
    """

    def __init__(
        self,
        metrics: Metrics = "auto",
        references: Any = None,
        llm: LLM | None = None,
        *,
        max_pending: int = 1000,
    ) -> None:
        """See the class."""
        if isinstance(max_pending, bool) or not isinstance(max_pending, int) or max_pending < 1:
            raise InvalidArgumentError(
                f"max_pending: {short(max_pending)} is no number of records: give an integer >= 1"
            )
        self._metrics = MetricSet(metrics, llm)
        self._references = References.of(references)
        self._max_pending = max_pending
        self._worker = Worker(max_pending)
        self._records: list[tuple[int, QueryRecord]] = []
        self._changed = threading.Condition()
        self._judging = 0
        self._closed = False
        self._warned = 0.0
        self.dropped: Counter[str] = Counter()

    def submit(self, order: int, make: Callable[[], QueryRecord]) -> None:
        """Take a query over from an adapter. Never waits and never raises.

        Args:
            order: The query's place in the order of asking.
            make: Makes the record, on the worker's thread.
        """
        if self._closed:
            self._drop("the recorder is closed")
        elif not self._worker.put(lambda: self._take(order, make)):
            self._drop("too many were waiting")

    def _drop(self, reason: str) -> None:
        self.dropped[reason] += 1
        now = time.monotonic()
        if now - self._warned >= WARN_EVERY or not self._warned:
            self._warned = now
            logger.warning("ctxeval dropped %d records: %s", self.dropped[reason], reason)

    def _take(self, order: int, make: Callable[[], QueryRecord]) -> None:
        try:
            record = make()
        except Exception:
            logger.exception("ctxeval could not read a captured query")
            self._drop("it could not be read")
            return
        with self._changed:
            self._records.append((order, record))
        self._refer(record)
        self._score(record)

    def _refer(self, record: QueryRecord) -> None:
        found = self._references.lookup(record.question, id=record.metadata.get("ctxeval_id"))
        record.reference, record.unreferenced = found.sample, found.reason

    def _score(self, record: QueryRecord) -> None:
        from ctxeval.scoring import score_all

        sample = record.sample()
        metrics = self._metrics.of(sample)
        skipped = self._skipped(record, sample, metrics)
        asked = [metric for metric in metrics if metric.name not in skipped]
        at_once = [metric for metric in asked if not metric.judge.calls_model]
        later = [metric for metric in asked if metric.judge.calls_model]
        results = score_all([sample], at_once)[0] if at_once else {}
        for stage in record.retrievals:
            alone = len(record.retrievals) == 1 and not stage.error
            stage.scores = results if alone else self._score_stage(record, stage)
        record.scores = {**results, **skipped}
        if later and self._judging >= self._max_pending:
            self._drop("too many were waiting for a model")
            for metric in later:
                record.scores[metric.name] = metric.result(
                    None, "skipped", "too many were waiting for a model"
                )
        elif later:
            record.pending = frozenset(metric.name for metric in later)
            self._judge_later(record, sample, later)

    def _score_stage(self, record: QueryRecord, stage: Retrieval) -> dict[str, MetricResult]:
        from ctxeval.scoring import score_all

        sample = record.sample(stage)
        metrics = [m for m in self._metrics.of(sample) if not m.judge.calls_model]
        return score_all([sample], metrics)[0] if metrics else {}

    def _skipped(
        self, record: QueryRecord, sample: Sample, metrics: Sequence[Metric]
    ) -> dict[str, MetricResult]:
        """Say which metrics make no sense of this record, and why."""
        skipped: dict[str, MetricResult] = {}
        if sample.retrieved_context_ids is None and sample.reference_context_ids is not None:
            for metric in self._metrics.by_id():
                skipped[metric.name] = metric.result(
                    None, "skipped", "no ids were captured: set them when you index"
                )
        for metric in metrics:
            if record.retrieval_error:
                reason = f"the retrieval failed: {record.retrieval_error}"
                skipped[metric.name] = metric.result(None, "failed", reason)
            elif record.pooled and isinstance(metric, RankMetric):
                reason = "several retrievals were pooled, so there is no one order"
                skipped[metric.name] = metric.result(None, "skipped", reason)
            elif record.unreferenced and (missing := metric.missing(sample)):
                reason = f"{missing}: {record.unreferenced}"
                skipped[metric.name] = metric.result(None, "skipped", reason)
        return skipped

    def _judge_later(self, record: QueryRecord, sample: Sample, metrics: Sequence[Metric]) -> None:
        from ctxeval.llm.loop import submit
        from ctxeval.scoring import ascore_all

        with self._changed:
            self._judging += 1

        async def judge() -> None:
            try:
                results = (await ascore_all([sample], metrics))[0]
                record.scores = {**record.scores, **results}
            except Exception as error:
                logger.exception("ctxeval could not judge a captured query")
                said = f"{type(error).__name__}: {error}"
                failed = {m.name: m.result(None, "failed", said) for m in metrics}
                record.scores = {**record.scores, **failed}
            finally:
                record.pending = frozenset()
                with self._changed:
                    self._judging -= 1
                    self._changed.notify_all()

        submit(judge())

    @property
    def records(self) -> list[QueryRecord]:
        """The records so far, in order of asking, with their scores by id and by text.

        Those by a model may still be `pending`: `flush` waits for them.
        """
        self._worker.join()
        with self._changed:
            return [record for _, record in sorted(self._records, key=lambda entry: entry[0])]

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything that was captured so far is scored, by models too.

        Args:
            timeout: How many seconds to wait at most.

        Returns:
            False where the time was not enough.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._worker.join(timeout):
            return False
        with self._changed:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            return self._changed.wait_for(lambda: not self._judging, left)

    def close(self, timeout: float | None = None) -> bool:
        """Flush, and take no more records.

        Returns:
            False where the time was not enough.
        """
        self._closed = True
        return self.flush(timeout)
