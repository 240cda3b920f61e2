"""Takes records from any framework and scores them behind the application's back."""

from __future__ import annotations

import atexit
import hashlib
import inspect
import itertools
import logging
import os
import time
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
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
from ctxeval.capture.worker import Worker
from ctxeval.errors import InvalidArgumentError, near, short
from ctxeval.extras import load
from ctxeval.forking import lock_for
from ctxeval.naming import Metrics, MetricSet
from ctxeval.record.expected import KEYS, expected_in, unknown_in
from ctxeval.record.query import QueryRecord, question_ids
from ctxeval.record.references import References
from ctxeval.record.tracing import TraceSpan, current_span
from ctxeval.sample import Sample

if TYPE_CHECKING:
    from ctxeval.evaluation.evaluation import Evaluation
    from ctxeval.llm.protocol import LLM
    from ctxeval.store import Store
    from ctxeval.store.privacy import Privacy

logger = logging.getLogger("ctxeval")

EXIT_SECONDS = 2.0
"""How long the interpreter's exit waits for scores that are still to come."""

_order = itertools.count()


class Recorder:
    """Takes records from any framework, scores them, and keeps them.

    Handing a record over costs the application next to nothing: one worker thread
    does the rest. What it can't keep up with is dropped and counted.

    Args:
        metrics: Metrics or their names; "auto": whatever a record has the fields for.
        references: What is expected: a `References`, a list of samples, or a path.
        llm: The model, for metrics given by name and for "auto".
        store: Where records and a model's verdicts are kept, for longer than this process: a
            `Store`, a file or a URL. Processes that share one share the tokens of a day.
        sinks: Where scores go besides: exporters of `ctxeval.export`, or functions of a query's
            scores. What can't be sent is tried again, and kept in the store where there is one.
        id_key: Where a chunk's id stands, if not where its framework puts it: a key of its
            metadata, or a function of the framework's document.
        question_key: Where the question stands in an application's input, if it is not
            found by itself: a key, an attribute, or a function of the input.
        answer_key: Where the answer stands in its output, likewise.
        capture_prompts: Also note which chunks stand in the last prompt that holds any, as
            the stage "prompt"?
        redact: A function that is given each text of a query (question, answer, chunks, strings
            in metadata, never ids) and of what is expected for it, and returns what may be known
            of it: records, judges, the store and sinks get nothing else. References are found
            by the question as it was asked. None: that of the store, if it has one. A query
            at which it raises is left out.
        sample_rate: The share of queries that are kept, in [0, 1]; which ones is decided
            by a hash of the query's id, so that all metrics of a query agree.
        max_pending: How many records wait to be scored at most, and how many for a model.
        max_records: How many records are kept; the oldest go. None: all.
        max_requests_per_minute: How many requests to models captured traffic may cause.
        max_tokens_per_day: How many tokens, sent and received, it may cause.

    Raises:
        InvalidArgumentError: A metric is unknown, or a number is out of range.
    """

    def __init__(
        self,
        metrics: Metrics = "auto",
        references: Any = None,
        llm: LLM | None = None,
        store: Store | str | PathLike[str] | None = None,
        *,
        sinks: Iterable[Sink] = (),
        id_key: str | Callable[[Any], Any] | None = None,
        question_key: str | Callable[[Any], Any] | None = None,
        answer_key: str | Callable[[Any], Any] | None = None,
        capture_prompts: bool = False,
        redact: Callable[[str], str] | None = None,
        sample_rate: float = 1.0,
        max_pending: int = 1000,
        max_records: int | None = 10_000,
        max_requests_per_minute: int | None = None,
        max_tokens_per_day: int | None = None,
    ) -> None:
        """See the class."""
        for name, value in (("max_pending", max_pending), ("max_records", max_records)):
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if not whole and not (name == "max_records" and value is None):
                raise InvalidArgumentError(
                    f"{name}: {short(value)} is no number of records: give an integer >= 1"
                )
        if isinstance(sample_rate, bool) or not isinstance(sample_rate, (int, float)):
            raise InvalidArgumentError(f"sample_rate: {short(sample_rate)} is no number: give 0.1")
        if not 0 <= sample_rate <= 1:
            raise InvalidArgumentError(f"sample_rate: {sample_rate!r} is not from 0 to 1")
        keys = {"id_key": id_key, "question_key": question_key, "answer_key": answer_key}
        for name, key in keys.items():
            if key is not None and not callable(key) and (not isinstance(key, str) or not key):
                raise InvalidArgumentError(f"{name}: {short(key)} is no key: a name, or a function")
        if not isinstance(capture_prompts, bool):
            raise InvalidArgumentError(f"capture_prompts: {short(capture_prompts)} is no bool")
        self.id_key = id_key
        self.question_key = question_key
        self.answer_key = answer_key
        self.capture_prompts = capture_prompts
        self._metrics = MetricSet(metrics, llm)
        if redact is not None and not callable(redact):
            raise InvalidArgumentError(f"redact: {short(redact)} is no function of a text")
        kept = None if store is None else _opened(store)
        if kept is not None:
            kept, redacts = kept.redacting()
            redact = redact or redacts
        self._privacy = None if redact is None else _redacting(redact)
        if kept is not None:
            self._metrics = self._metrics.with_judges(lambda judge: judge.with_cache(kept))
        self._references = References.of(references)
        self._sample_rate = sample_rate
        self._max_records = max_records
        self._worker = Worker(max_pending, self._save)
        self._notices = Notices()
        budget = Budget(max_requests_per_minute, max_tokens_per_day, kept)
        self._judging = Judging(budget, max_pending, self._judged)
        self._keeping = None if kept is None else Keeping(kept, self._not_stored)
        self._sending = Sending(sinks, max_pending, kept, self._notices.drop)
        self._records: OrderedDict[str, tuple[int, QueryRecord]] = OrderedDict()
        self._unsent: dict[int, QueryRecord] = {}
        self._lock = lock_for(self)
        self._advice = Advice(id_key, question_key, answer_key)
        self._without_retrieval = 0
        self._closed = False
        _recorders.add(self)

    def __repr__(self) -> str:
        counts = [f"records={len(self._records)}"]
        if self._without_retrieval:
            counts.append(f"without_retrieval={self._without_retrieval}")
        if self.dropped:
            counts.append(f"dropped={dict(self.dropped)}")
        return f"<Recorder {' '.join(counts)}>"

    @property
    def dropped(self) -> Counter[str]:
        """How many records were left out, or left without a model's scores, by reason."""
        return self._notices.dropped

    @property
    def deliveries(self) -> dict[str, Delivery]:
        """How each sink fares, by its name: what it took, what waits, what could not be sent."""
        return self._sending.deliveries

    @property
    def without_retrieval(self) -> int:
        """How many queries ended without any retrieval: they leave no record."""
        return self._without_retrieval

    def count_without_retrieval(self) -> None:
        """Note, for an adapter, that a query ended without any retrieval."""
        with self._lock:
            self._without_retrieval += 1

    @classmethod
    def of(cls, recorder: Recorder | None, options: Mapping[str, Any]) -> Recorder:
        """Give the recorder that an adapter was given, or make one of its options.

        Raises:
            InvalidArgumentError: It is no recorder, or there are both, or an option is unknown.
        """
        if recorder is None:
            known = list(inspect.signature(cls).parameters)
            for name in options:
                if name not in known:
                    raise InvalidArgumentError(f"{name}: no such option: {near(name, known)}")
            return cls(**options)
        if not isinstance(recorder, Recorder):
            raise InvalidArgumentError(
                f"recorder: {short(recorder)} is no Recorder: give references= and other options "
                "by name"
            )
        if options:
            raise InvalidArgumentError(
                f"recorder= and {', '.join(options)} were given: give the options to the Recorder"
            )
        return recorder

    @staticmethod
    def next_order() -> int:
        """Give a query that begins its place in the order of asking, whatever its framework."""
        return next(_order)

    def submit(
        self,
        order: int,
        trace_id: object,
        make: Callable[[], QueryRecord | Sequence[QueryRecord]],
    ) -> None:
        """Take a query over from an adapter. Never waits.

        Args:
            order: The query's place in the order of asking: what `next_order` gave at its
                beginning.
            trace_id: What names the query; it decides whether it is sampled.
            make: Makes the record, on the worker's thread, or the records, where it turns out
                to be several queries. A record with an id that has been there takes the
                earlier one's place.
        """
        traced = current_span()
        if self._closed:
            self._notices.drop("the recorder is closed")
        elif not self._worker.put(self._take, order, trace_id, make, traced):
            self._notices.drop("too many were waiting")

    def _sampled(self, trace_id: object) -> bool:
        if self._sample_rate == 1:
            return True
        digest = hashlib.sha256(str(trace_id).encode()).digest()
        return int.from_bytes(digest[:7], "big") / 2**56 < self._sample_rate

    def _take(
        self,
        order: int,
        trace_id: object,
        make: Callable[[], QueryRecord | Sequence[QueryRecord]],
        traced: TraceSpan | None,
    ) -> None:
        if not self._sampled(trace_id):
            self.dropped["not sampled"] += 1
            return
        try:
            made = make()
        except Exception as error:
            # What was raised may quote what must be redacted.
            shown = error if self._privacy is None else None
            logger.error("ctxeval could not read a captured query", exc_info=shown)
            self._notices.drop("it could not be read")
            return
        for record in [made] if isinstance(made, QueryRecord) else made:
            record.traced = record.traced or traced
            self._take_record(order, record)

    def _take_record(self, order: int, record: QueryRecord) -> None:
        self._refer(record)
        try:
            record = record if self._privacy is None else self._privacy.record(record)
        except Exception as error:
            self._notices.drop(f"redact failed with {type(error).__name__}")
            return
        with self._lock:
            _, earlier = self._records.get(record.id, (order, None))
            self._records[record.id] = (order, record)
            while self._max_records is not None and len(self._records) > self._max_records:
                self._records.popitem(last=False)
                self.dropped["more than max_records"] += 1
        self._sending.locate(record)
        self._score(record, earlier)
        self._tell(record)
        self._keep(record)
        self._send(record)

    def _refer(self, record: QueryRecord) -> None:
        """Find what is expected: what came along as metadata, or what the references say."""
        found = expected_in(record.metadata) or self._references.lookup(
            record.question, record.condensed, id=record.metadata.get("ctxeval_id")
        )
        record.reference, record.unreferenced = found.sample, found.reason

    def _score(self, record: QueryRecord, earlier: QueryRecord | None = None) -> None:
        with self._lock:
            self._unsent[id(record)] = record
        planned = plan(record, self._metrics)
        score_at_once(record, planned, self._metrics)
        if planned.later and (refused := self._judging.begin(record, planned, earlier)):
            self._notices.drop(refused)

    def _judged(self, record: QueryRecord) -> None:
        self._keep(record)
        self._send(record)

    def _send(self, record: QueryRecord) -> None:
        """Have a record sent, once, when it has all its scores."""
        with self._lock:
            ready = not record.pending and self._unsent.pop(id(record), None) is not None
        if ready:
            self._sending.put(record)

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

    def _keep(self, record: QueryRecord) -> None:
        if self._keeping is not None:
            self._keeping.put(record)

    def _save(self) -> None:
        if self._keeping is not None:
            self._keeping.save()
        self._sending.save()

    def _not_stored(self, records: int, error: Exception) -> None:
        self.dropped["the store failed"] += records
        self._notices.once("store", f"records could not be stored: {error}")

    @property
    def records(self) -> list[QueryRecord]:
        """The records so far, in order of asking, with their scores by id and by text.

        Those by a model may still be `pending`: `flush` waits for them.
        """
        return self.peek(None)[0]

    def peek(self, timeout: float | None = 0.0) -> tuple[list[QueryRecord], bool]:
        """Give the records so far, without waiting longer for scores by id and by text.

        Args:
            timeout: How many seconds to wait at most; None: until they are all there.

        Returns:
            The records, in order of asking, and whether all that was captured is among them,
            with those scores.
        """
        complete = self._worker.join(timeout)
        with self._lock:
            ordered = sorted(self._records.values(), key=lambda entry: entry[0])
        return [record for _, record in ordered], complete

    @property
    def advice(self) -> list[str]:
        """What should be done about ids and keys, one sentence each; empty where all is well."""
        self._worker.join()
        return list(self._advice.told().values())

    def seek(self, option: str, found: bool, there: Iterable[str]) -> None:
        """Note, for an adapter, whether what a user's key names was there; on the worker's thread.

        Args:
            option: "question_key", which is sought in inputs, or "answer_key", in outputs; or
                another option of the adapter's, with what it names, which is sought among runs.
            found: Was it there?
            there: The keys that were.
        """
        self._advice.seek(option, found, there)

    def failed(self, option: str, error: Exception) -> None:
        """Note, for an adapter, that a function of the user's raised: it costs no record.

        Args:
            option: What it was given as: "id_key", "question_key" or "answer_key".
            error: What it raised.
        """
        said = repr(error) if self._privacy is None else type(error).__name__
        self._notices.once(f"failed {option}", f"{option} failed with {said}")

    @property
    def id_sources(self) -> dict[str, int]:
        """How many chunks got their id from where, over all stages."""
        self._worker.join()
        return dict(self._advice.sources)

    def rescore(
        self, record: QueryRecord, reference: Sample | Mapping[str, Any] | None = None
    ) -> QueryRecord:
        """Score a record again, against another expectation.

        Args:
            record: The record.
            reference: What is expected; None: what its references say now.

        Returns:
            The record, with its scores by id and by text; those by a model follow.
        """
        before = record.reference
        if reference is None:
            self._refer(record)
        else:
            record.reference, record.unreferenced = Sample.of(reference), ""
        if self._privacy is not None:
            if record.reference is not None:
                record.reference = self._privacy.sample(record.reference)
            elif before is not None:  # it was found by the question before that was redacted
                record.reference, record.unreferenced = before, ""
        self._score(record)
        self._keep(record)
        self._send(record)
        return record

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything that was captured so far is scored, by models too, and sent.

        What a sink does not take is tried again for some seconds, and then given up.

        Args:
            timeout: How many seconds to wait at most.

        Returns:
            False where the time was not enough.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        scored = self._wait_for_scores(timeout)
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        return self._sending.wait(left) and scored

    def _wait_for_scores(self, timeout: float | None = None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._worker.join(timeout):
            return False
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        judged = self._judging.wait(left)
        self._save()
        return judged

    def close(self, timeout: float | None = None) -> bool:
        """Flush, and take no more records.

        Returns:
            False where the time was not enough.
        """
        self._closed = True
        return self.flush(timeout)

    def evaluation(self) -> Evaluation:
        """Sum the records up like any other samples; those that are pending are waited for.

        Its rows are named by question, so that it can be compared with another day's.
        """
        from ctxeval.evaluation.evaluation import Evaluation
        from ctxeval.evaluation.rows import Row

        self._wait_for_scores()
        records = self.records
        return Evaluation(
            Row(name, one.sample(), one.scores, tuple(one.stages()))
            for name, one in zip(question_ids(records), records, strict=True)
        )

    def to_pandas(self) -> Any:
        """Give the records as a pandas DataFrame, one row each, a column per metric.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        pd = load("pandas", "to_pandas()", "pandas")
        return pd.DataFrame([_row(record) for record in self.records])

    @property
    def setup(self) -> str:
        """Say what it scores by."""
        n = sum(1 for _ in self._references)
        if not n and self._metrics.names == ["auto"] and not self._metrics.calls_model:
            return "Nothing can be scored: give references, or a model."
        references = f"{n} {'reference' if n == 1 else 'references'}"
        judged = "; a model judges" if self._metrics.calls_model else ""
        return f"Metrics: {', '.join(self._metrics.names)}; {references}{judged}."

    @property
    def notes(self) -> list[str]:
        """What was left out, and what was noticed of ids, keys and metadata: a line each."""
        left_out = [f"{n} so far left out: {reason}" for reason, n in self.dropped.items()]
        told = dict(self._notices.told)
        told.pop("unscored", None)  # each record says that itself
        return [*left_out, *told.values()]

    def quiet(self) -> None:
        """Log nothing of what is noticed: whoever shows the records says it there."""
        self._notices.logged = False

    def _ipython_display_(self) -> None:
        """Show the records in a notebook, and follow scores by a model that are to come."""
        from ctxeval.capture.notebook_display import show_followed

        if not show_followed(self):
            raise NotImplementedError  # then IPython takes the forms below

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Write the records as a notebook and a terminal show them."""
        from ctxeval.capture.notebook_display import bundle_of

        return bundle_of(self)

    def _repr_html_(self) -> str | None:
        """Write the records as HTML; None where jinja2 is not installed."""
        return self._repr_mimebundle_().get("text/html")


_recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()


@atexit.register
def _finish() -> None:
    deadline = time.monotonic() + EXIT_SECONDS
    for recorder in list(_recorders):
        recorder.flush(max(0.0, deadline - time.monotonic()))
        recorder._sending.give_up("the process ended", list(recorder._unsent.values()))


def _after_fork() -> None:
    # What was under way is the parent's, and so is whoever held a lock.
    for recorder in list(_recorders):
        recorder._unsent = {}
        recorder._judging.start_over()
        if recorder._keeping is not None:
            recorder._keeping.start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _redacting(redact: Callable[[str], str]) -> Privacy:
    from ctxeval.store.privacy import Privacy

    return Privacy(True, redact)


def _opened(store: Store | str | PathLike[str]) -> Store:
    from ctxeval.store import Store

    return Store.of(store)


def _row(record: QueryRecord) -> dict[str, Any]:
    chunks = record.chunks()
    return {
        "id": record.id,
        "question": record.question,
        "answer": record.answer,
        "status": record.status,
        "retrieved_context_ids": [chunk.id for chunk in chunks],
        "retrieved_contexts": [chunk.text for chunk in chunks],
        **{name: result.value for name, result in record.scores.items()},
        **{f"{name}_status": result.status for name, result in record.scores.items()},
    }
