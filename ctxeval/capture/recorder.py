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
from datetime import UTC, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any

from ctxeval.capture.advice import Advice
from ctxeval.capture.budget import Budget
from ctxeval.capture.notices import Notices
from ctxeval.capture.options import check_options
from ctxeval.capture.outlet import Delivery
from ctxeval.capture.processing import Processing
from ctxeval.capture.sinks import Sink
from ctxeval.capture.worker import Worker
from ctxeval.errors import InvalidArgumentError, near, short
from ctxeval.extras import load
from ctxeval.forking import lock_for
from ctxeval.naming import Metrics, MetricSet
from ctxeval.record.query import QueryRecord, question_ids
from ctxeval.record.references import References
from ctxeval.record.tracing import TraceSpan, current_span
from ctxeval.sample import Sample

if TYPE_CHECKING:
    from ctxeval.evaluation.evaluation import Evaluation
    from ctxeval.llm.protocol import LLM
    from ctxeval.store import Store

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
        check_options(
            {
                "max_pending": max_pending,
                "max_records": max_records,
                "sample_rate": sample_rate,
                "id_key": id_key,
                "question_key": question_key,
                "answer_key": answer_key,
                "capture_prompts": capture_prompts,
                "redact": redact,
            }
        )
        self.id_key = id_key
        self.question_key = question_key
        self.answer_key = answer_key
        self.capture_prompts = capture_prompts
        chosen = MetricSet(metrics, llm)
        kept = None if store is None else _opened(store)
        if kept is not None:
            kept, redacts = kept.redacting()
            redact = redact or redacts
            cache = kept
            chosen = chosen.with_judges(lambda judge: judge.with_cache(cache))
        self._notices = Notices()
        self._advice = Advice(id_key, question_key, answer_key)
        self._processing = Processing(
            chosen,
            References.of(references),
            redact,
            kept,
            Budget(max_requests_per_minute, max_tokens_per_day, kept),
            max_pending,
            sinks,
            self._notices,
            self._advice,
        )
        self._worker = Worker(max_pending, self._processing.save)
        self._sample_rate = sample_rate
        self._max_records = max_records
        self._records: OrderedDict[str, tuple[int, QueryRecord]] = OrderedDict()
        self._lock = lock_for(self)
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
        return self._processing.deliveries

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
        *,
        traced: bool = False,
    ) -> None:
        """Take a query over from an adapter. Never waits.

        Args:
            order: The query's place in the order of asking: what `next_order` gave at its
                beginning.
            trace_id: What names the query; it decides whether it is sampled. None: where it may
                turn out to be several queries, each record's own id decides.
            make: Makes the record, on the worker's thread, or the records, where it turns out
                to be several queries. A record with an id that has been there takes the
                earlier one's place.
            traced: Do the records say themselves in which span they ran, if in any? If not, it
                is the one that the caller runs in.
        """
        span = None if traced else current_span()
        if self._closed:
            self._notices.drop("the recorder is closed")
        elif not self._worker.put(self._take, order, trace_id, make, span):
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
        span: TraceSpan | None,
    ) -> None:
        if trace_id is not None and not self._sampled(trace_id):
            self.dropped["not sampled"] += 1
            return
        try:
            made = make()
        except Exception as error:
            # What was raised may quote what must be redacted.
            shown = error if self._processing.privacy is None else None
            logger.error("ctxeval could not read a captured query", exc_info=shown)
            self._notices.drop("it could not be read")
            return
        for record in [made] if isinstance(made, QueryRecord) else made:
            if trace_id is None and not self._sampled(record.id):
                self.dropped["not sampled"] += 1
                continue
            record.traced = record.traced or span
            if record.started is None and record.ended is None:
                record.started = datetime.now(UTC)  # once: what is sent again has the same time
            if (prepared := self._processing.prepare(record)) is not None:
                self._processing.process(prepared, self._place(order, prepared))

    def _place(self, order: int, record: QueryRecord) -> QueryRecord | None:
        """Put a record among the others, and give the one whose place it takes."""
        with self._lock:
            _, earlier = self._records.get(record.id, (order, None))
            self._records[record.id] = (order, record)
            while self._max_records is not None and len(self._records) > self._max_records:
                self._records.popitem(last=False)
                self.dropped["more than max_records"] += 1
        return earlier

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
        said = repr(error) if self._processing.privacy is None else type(error).__name__
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
        self._processing.rescore(record, reference)
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
        return self._processing.wait_for_sinks(left) and scored

    def _wait_for_scores(self, timeout: float | None = None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._worker.join(timeout):
            return False
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        return self._processing.wait_for_models(left)

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
        metrics = self._processing.metrics
        n = sum(1 for _ in self._processing.references)
        if not n and metrics.names == ["auto"] and not metrics.calls_model:
            return "Nothing can be scored: give references, or a model."
        references = f"{n} {'reference' if n == 1 else 'references'}"
        judged = "; a model judges" if metrics.calls_model else ""
        return f"Metrics: {', '.join(metrics.names)}; {references}{judged}."

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
        from ctxeval.capture.notebook.display import show_followed

        if not show_followed(self):
            raise NotImplementedError  # then IPython takes the forms below

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Write the records as a notebook and a terminal show them."""
        from ctxeval.capture.notebook.display import bundle_of

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
        recorder._processing.give_up("the process ended")


def _after_fork() -> None:
    # What was under way is the parent's, and so is whoever held a lock.
    for recorder in list(_recorders):
        recorder._processing.start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


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
