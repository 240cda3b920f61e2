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
    from ctxeval.metric import Metric
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
        self._heirs: dict[int, tuple[QueryRecord, frozenset[str]]] = {}
        self._budget.start_over()

    def begin(self, record: QueryRecord, planned: Plan, earlier: QueryRecord | None = None) -> str:
        """Have a record's metrics by a model judged.

        Args:
            record: The record.
            planned: What is to be done with it.
            earlier: The record whose place it takes: what that one was or is being judged
                by, with nothing changed, is not asked and not paid again.

        Returns:
            Why not, and then they are skipped; "" where it has begun.
        """
        if earlier is not None:
            planned = planned._replace(later=self._left_by(earlier, record, planned))
        if not planned.later:
            return ""
        requests = len({(metric.judge.shared_by, metric.purpose) for metric in planned.later})
        full = self._under_way >= self._max_pending
        refused = "too many were waiting for a model" if full else self._budget.admit(requests)
        if refused:
            for metric in planned.later:
                record.scores[metric.name] = metric.result(None, "skipped", refused)
            return refused
        with self._changed:
            record.pending |= {metric.name for metric in planned.later}
            self._under_way += 1
        self._ask(record, planned, requests)
        return ""

    def _left_by(self, earlier: QueryRecord, record: QueryRecord, planned: Plan) -> list[Metric]:
        """Take over what an earlier record has or awaits, and give the metrics that are left."""
        before, now = dict(earlier.sample()), dict(planned.sample)
        changed = {name for name in now if now[name] != before[name]}
        left: list[Metric] = []
        awaited: set[str] = set()
        with self._changed:
            for metric in planned.later:
                known = earlier.scores.get(metric.name)
                if changed - {"response"} or ("response" in changed and _reads_response(metric)):
                    left.append(metric)
                elif metric.name in earlier.pending:
                    awaited.add(metric.name)
                elif known is not None and known.status in ("scored", "undefined"):
                    record.scores[metric.name] = known
                else:
                    left.append(metric)
            if awaited:
                record.pending |= awaited
                self._heirs[id(earlier)] = record, frozenset(awaited)
        return left

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
            try:
                usages = {id(r.usage): r.usage for r in results.values() if r.usage is not None}
                self._budget.settle(reserved, list(usages.values()))
                self._conclude(record, results)
            finally:
                with self._changed:
                    self._under_way -= 1
                    self._changed.notify_all()

        begin_all([planned.sample], planned.later)[0].add_done_callback(finish)

    def _conclude(self, record: QueryRecord, results: Results) -> None:
        """Give a record its results, and those who took its place."""
        with self._changed:
            record.scores = {**record.scores, **results}
            record.pending -= results.keys()
            heir = self._heirs.pop(id(record), None)
        self._judged(record)
        if heir is not None:
            self._conclude(heir[0], {name: results[name] for name in heir[1] & results.keys()})

    def wait(self, timeout: float | None) -> bool:
        """Wait until nothing is under way.

        Returns:
            False where the time was not enough.
        """
        with self._changed:
            return self._changed.wait_for(lambda: not self._under_way, timeout)


def _reads_response(metric: Metric) -> bool:
    return "response" in metric.needs
