"""What becomes of a captured record: it is referred, scored, told of, kept and sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ctxeval.capture.advice import Advice
from ctxeval.capture.budget import Budget
from ctxeval.capture.grading import plan, score_at_once
from ctxeval.capture.judging import Judging
from ctxeval.capture.keeping import Keeping
from ctxeval.capture.notices import Notices
from ctxeval.capture.outlet import Delivery
from ctxeval.capture.sending import Sending
from ctxeval.capture.sinks import Sink
from ctxeval.errors import near, short
from ctxeval.forking import lock_for
from ctxeval.naming import MetricSet
from ctxeval.record.expected import KEYS, expected_in, unknown_in
from ctxeval.record.query import QueryRecord
from ctxeval.record.references import References
from ctxeval.sample import Sample

if TYPE_CHECKING:
    from ctxeval.store import Store
    from ctxeval.store.privacy import Privacy


class Processing:
    """Scores records, and hands them on once they are scored.

    Args:
        metrics: The metrics.
        references: What is expected.
        redact: What texts are turned into before anything else.
        store: Where records and verdicts are kept.
        budget: What models may cost.
        max_pending: How many records wait for a model, or for a sink, at most.
        sinks: Where scores go besides.
        notices: Where what is left out is counted and told.
        advice: What looks at the records' ids.
    """

    def __init__(
        self,
        metrics: MetricSet,
        references: References,
        redact: Callable[[str], str] | None,
        store: Store | None,
        budget: Budget,
        max_pending: int,
        sinks: Iterable[Sink],
        notices: Notices,
        advice: Advice,
    ) -> None:
        """See the class."""
        self.metrics = metrics
        self.references = references
        self.privacy = None if redact is None else _redacting(redact)
        self._notices = notices
        self._advice = advice
        self._judging = Judging(budget, max_pending, self._hand_on)
        self._keeping = None if store is None else Keeping(store, self._not_stored)
        self._sending = Sending(sinks, max_pending, store, notices.drop)
        self._unsent: dict[int, QueryRecord] = {}
        self._lock = lock_for(self)

    @property
    def deliveries(self) -> dict[str, Delivery]:
        """How each sink fares, by its name."""
        return self._sending.deliveries

    def prepare(self, record: QueryRecord) -> QueryRecord | None:
        """Find what is expected, then redact.

        Returns:
            The record as it may be shown; None where that cannot be made, which is counted.
        """
        self._refer(record)
        try:
            return record if self.privacy is None else self.privacy.record(record)
        except Exception as error:
            self._notices.drop(f"redact failed with {type(error).__name__}")
            return None

    def process(self, record: QueryRecord, earlier: QueryRecord | None = None) -> None:
        """Score a prepared record, tell of it, keep and send it.

        Args:
            record: The record.
            earlier: The one whose place it takes, whose judgements it takes over.
        """
        self._sending.locate(record)
        self._score(record, earlier)
        self._tell(record)
        self._hand_on(record)

    def rescore(
        self, record: QueryRecord, reference: Sample | Mapping[str, Any] | None = None
    ) -> None:
        """Score a record again; see `Recorder.rescore`."""
        before = record.reference
        if reference is None:
            self._refer(record)
        else:
            record.reference, record.unreferenced = Sample.of(reference), ""
        if self.privacy is not None:
            if record.reference is not None:
                record.reference = self.privacy.sample(record.reference)
            elif before is not None:  # it was found by the question before that was redacted
                record.reference, record.unreferenced = before, ""
        self._score(record)
        self._hand_on(record)

    def _refer(self, record: QueryRecord) -> None:
        """Find what is expected: what came along as metadata, or what the references say."""
        found = expected_in(record.metadata) or self.references.lookup(
            record.question, record.condensed, id=record.metadata.get("ctxeval_id")
        )
        record.reference, record.unreferenced = found.sample, found.reason

    def _score(self, record: QueryRecord, earlier: QueryRecord | None = None) -> None:
        with self._lock:
            self._unsent[id(record)] = record
        planned = plan(record, self.metrics)
        score_at_once(record, planned, self.metrics)
        if planned.later and (refused := self._judging.begin(record, planned, earlier)):
            self._notices.drop(refused)

    def _tell(self, record: QueryRecord) -> None:
        """Log once what the user should know."""
        if not record.scores and not record.pending:
            why = record.unreferenced or "the metrics that were chosen do not fit"
            line = f"nothing can be scored of {short(record.question)}: {why}"
            self._notices.once("unscored", line)
        self._advice.see(record)
        for about, line in self._advice.told().items():
            self._notices.once(f"advice {about}", line)
        for key in unknown_in(record.metadata):
            line = f"the metadata key {key!r} says nothing: {near(key, KEYS)}"
            self._notices.once("metadata", line)

    def _hand_on(self, record: QueryRecord) -> None:
        """Keep a record as it is now; send it, once, when it has all its scores."""
        if self._keeping is not None:
            self._keeping.put(record)
        with self._lock:
            ready = not record.pending and self._unsent.pop(id(record), None) is not None
        if ready:
            self._sending.put(record)

    def _not_stored(self, records: int, error: Exception) -> None:
        self._notices.dropped["the store failed"] += records
        self._notices.once("store", f"records could not be stored: {error}")

    def save(self) -> None:
        """Put into the store whatever is not there yet."""
        if self._keeping is not None:
            self._keeping.save()
        self._sending.save()

    def wait_for_models(self, timeout: float | None) -> bool:
        """Wait until no model judges any more, and save; False where the time was not enough."""
        judged = self._judging.wait(timeout)
        self.save()
        return judged

    def wait_for_sinks(self, timeout: float | None) -> bool:
        """Wait until all is sent or given up; False where the time was not enough."""
        return self._sending.wait(timeout)

    def give_up(self, reason: str) -> None:
        """Count as lost what is not sent yet, and keep it in the store where there is one."""
        self._sending.give_up(reason, list(self._unsent.values()))

    def start_over(self) -> None:
        """Forget what is under way: in a forked child it is the parent's."""
        self._unsent = {}
        self._judging.start_over()
        if self._keeping is not None:
            self._keeping.start_over()


def _redacting(redact: Callable[[str], str]) -> Privacy:
    from ctxeval.store.privacy import Privacy

    return Privacy(True, redact)
