"""A model's scores of captured records, which come later than the others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ctxeval.capture.budget import Budget
from ctxeval.capture.grading import Plan
from ctxeval.errors import describe
from ctxeval.record.query import QueryRecord

if TYPE_CHECKING:
    from ctxeval.scoring import Results

logger = logging.getLogger("ctxeval")


class Judging:
    """Has a model judge records, as many at once as may wait and as the budget allows.

    Args:
        budget: What it may cost.
        max_pending: How many records wait for a model at most.
        judged: Is called with each record that has got its scores.
    """

    def __init__(
        self, budget: Budget, max_pending: int, judged: Callable[[QueryRecord], None]
    ) -> None:
        """See the class."""
        self._budget = budget
        self._max_pending = max_pending
        self._judged = judged
        self.start_over()

    def start_over(self) -> None:
        """Forget what is under way: in a forked child it is the parent's."""
        self._changed = threading.Condition()
        self._under_way = 0

    def begin(self, record: QueryRecord, planned: Plan) -> str:
        """Have a record's metrics by a model judged.

        Returns:
            Why not, and then they are skipped; "" where it has begun.
        """
        requests = len({(metric.judge.shared_by, metric.purpose) for metric in planned.later})
        full = self._under_way >= self._max_pending
        refused = "too many were waiting for a model" if full else self._budget.admit(requests)
        if refused:
            for metric in planned.later:
                record.scores[metric.name] = metric.result(None, "skipped", refused)
            return refused
        record.pending = frozenset(metric.name for metric in planned.later)
        with self._changed:
            self._under_way += 1
        self._ask(record, planned, requests)
        return ""

    def _ask(self, record: QueryRecord, planned: Plan, reserved: int) -> None:
        from ctxeval.scoring import begin_all

        def finish(future: Future[Results]) -> None:
            results: Results = {}
            try:
                results = future.result()
            except Exception as error:
                logger.exception("ctxeval could not judge a captured query")
                said = describe(error)
                results = {m.name: m.result(None, "failed", said) for m in planned.later}
            finally:
                usages = {id(r.usage): r.usage for r in results.values() if r.usage is not None}
                self._budget.settle(reserved, list(usages.values()))
                record.scores = {**record.scores, **results}
                record.pending = frozenset()
                self._judged(record)
                with self._changed:
                    self._under_way -= 1
                    self._changed.notify_all()

        begin_all([planned.sample], planned.later)[0].add_done_callback(finish)

    def wait(self, timeout: float | None) -> bool:
        """Wait until nothing is under way.

        Returns:
            False where the time was not enough.
        """
        with self._changed:
            return self._changed.wait_for(lambda: not self._under_way, timeout)
