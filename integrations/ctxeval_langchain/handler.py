"""The callback handler: it only takes snapshots, a recorder does the rest."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, TypeVar
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from ctxeval import InvalidArgumentError, QueryRecord, Recorder
from ctxeval_langchain.documents import snapshot, unreadable
from ctxeval_langchain.interrupts import Interrupted
from ctxeval_langchain.queries import Query
from ctxeval_langchain.records import Reader
from ctxeval_langchain.runs import OpenQueries

logger = logging.getLogger("ctxeval")

F = TypeVar("F", bound=Callable[..., Any])


def _hook(method: F) -> F:
    """Keep whatever goes wrong in a hook from the chain: count it, and log it at debug level."""

    @wraps(method)
    def guarded(self: CtxEvalCallbackHandler, *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self._count(error)
            if self.raise_error:
                raise

    return guarded  # type: ignore[return-value]  # the same call


class CtxEvalCallbackHandler(BaseCallbackHandler):
    """Captures what a chain, graph or agent retrieves and scores it behind its back.

    Give it to any runnable: `chain.invoke(question, config={"callbacks": [handler]})`.

    Args:
        recorder: Where the records go; None: one of its own, made of the other arguments.
        query_run_name: The name of runs that are a query each, wherever they stand in a
            larger run.
        inline: Run the hooks in the chain's own thread? That is quicker by far in
            asynchronous code; but as long as langchain-core has its issue 39633,
            handlers that are not inline miss `on_llm_start` of completion models there.
            If not: an answer whose stream the reader left early may look complete, and in
            asynchronous code a retriever that calls another without its run manager is not
            seen to be around it.
        max_open: How many queries may be under way; the oldest are given up.
        open_seconds: How long a query may take before it is given up.
        **options: Those of `Recorder`: `metrics`, `references`, `llm`, `id_key`, …
            Without an `id_key`, an id is `Document.id`, that of the same text in an inner
            retriever, one of the usual metadata keys, or a hash of the text.

    Attributes:
        recorder: Where the records go.
        errors: How many hooks failed, by the error's name.
    """

    def __init__(
        self,
        recorder: Recorder | None = None,
        *,
        query_run_name: str | None = None,
        inline: bool = True,
        max_open: int = 10_000,
        open_seconds: float = 900,
        **options: Any,
    ) -> None:
        """See the class."""
        if isinstance(max_open, bool) or not isinstance(max_open, int) or max_open < 1:
            raise InvalidArgumentError(f"max_open: {max_open!r} is no number of queries: give 1000")
        timed = isinstance(open_seconds, (int, float)) and not isinstance(open_seconds, bool)
        if not timed or not open_seconds > 0:
            raise InvalidArgumentError(f"open_seconds: {open_seconds!r} is no time: give 900")
        if query_run_name is not None and (
            not isinstance(query_run_name, str) or not query_run_name
        ):
            raise InvalidArgumentError(f"query_run_name: {query_run_name!r} is no name of a run")
        if not isinstance(inline, bool):
            raise InvalidArgumentError(f"inline: {inline!r} is no bool")
        self.recorder = Recorder.of(recorder, options)
        self.errors: Counter[str] = Counter()
        self.run_inline = inline
        self._capture_prompts = self.recorder.capture_prompts
        self._reader = Reader(self.recorder)
        self._query_run_name = query_run_name
        own_key = self.recorder.question_key is not None
        self._open = OpenQueries(max_open, open_seconds, query_run_name, own_key)
        self._interrupted = Interrupted.of(self.recorder)

    def __repr__(self) -> str:
        failed = f", {self.errors.total()} hooks failed" if self.errors else ""
        return f"<{type(self).__name__} of {self.recorder!r}{failed}>"

    # Models' starts and ends tell whether an answer is complete; their tokens are left aside.
    @property
    def ignore_llm(self) -> bool:
        """Not inline, a model's every token would cost a change of thread."""
        return not (self.run_inline or self._capture_prompts)

    @property
    def ignore_chat_model(self) -> bool:
        """See `ignore_llm`."""
        return self.ignore_llm

    @property
    def ignore_retry(self) -> bool:
        """Retries show as failed runs."""
        return True

    @property
    def ignore_custom_event(self) -> bool:
        """Custom events are not needed."""
        return True

    @property
    def records(self) -> list[QueryRecord]:
        """The captured queries, in order of asking; see `Recorder.records`."""
        return self.recorder.records

    @property
    def without_retrieval(self) -> int:
        """How many queries ended without any retrieval; see `Recorder.without_retrieval`."""
        return self.recorder.without_retrieval

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything captured so far is scored; see `Recorder.flush`."""
        return self.recorder.flush(timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Give up what is still open, and close the recorder; see `Recorder.close`."""
        self._give_up(self._open.close_all())
        return self.recorder.close(timeout)

    def __copy__(self) -> CtxEvalCallbackHandler:
        return self

    def __deepcopy__(self, memo: object) -> CtxEvalCallbackHandler:
        return self

    @_hook
    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Note the run; a root's input holds the question."""
        self._give_up(self._open.start(run_id, parent_run_id, inputs, metadata, name, part=True))

    @_hook
    def on_chain_end(
        self, outputs: Any, *, run_id: UUID, inputs: Any = None, **kwargs: Any
    ) -> None:
        """Note the end; a root's output holds the answer, and `inputs` what a stream was asked."""
        self._finish(self._open.end(run_id, output=outputs, late_input=inputs))

    @_hook
    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, inputs: Any = None, **kwargs: Any
    ) -> None:
        """Note the failure: retrievals below it don't count, unless it is the root."""
        self._finish(self._open.end(run_id, error=error, late_input=inputs))

    @_hook
    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        inputs: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Note the run, so that retrievals below it find their root."""
        asked = inputs or input_str
        self._give_up(self._open.start(run_id, parent_run_id, asked, metadata, name))

    @_hook
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the end."""
        self._finish(self._open.end(run_id, output=output))

    @_hook
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the failure."""
        self._finish(self._open.end(run_id, error=error))

    @_hook
    def on_retriever_start(
        self,
        serialized: Any,
        query: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Note the retrieval's query and name, which its end does not tell."""
        self._give_up(
            self._open.start(run_id, parent_run_id, query, metadata, name, retrieves=True)
        )

    @_hook
    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Copy the documents."""
        copies, problem = None, ""
        try:
            copies = snapshot(documents)
        except Exception as error:
            self._count(error)
            problem = f"what it returned could not be read: {error}"
        if copies is None and not problem:
            problem = unreadable(documents)
        self._finish(self._open.end_retrieval(run_id, copies or (), problem))

    @_hook
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the failure."""
        self._finish(self._open.end_retrieval(run_id, (), error=error))

    @_hook
    def on_llm_start(
        self,
        serialized: Any,
        prompts: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Note that a model began to answer."""
        self._give_up(self._open.start(run_id, parent_run_id, prompts, metadata, None))
        if self._capture_prompts:
            self._open.see_prompt(run_id, prompts)

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        """Note that a chat model began to answer."""
        self.on_llm_start(serialized, messages, **kwargs)

    @_hook
    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note that a model has answered."""
        self._finish(self._open.end(run_id))

    @_hook
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note that a model failed."""
        self._finish(self._open.end(run_id, error=error))

    def _count(self, error: Exception) -> None:
        self.errors[type(error).__name__] += 1
        logger.debug("ctxeval: a hook failed", exc_info=error)

    def _finish(self, query: Query | None) -> None:
        if query is None:
            return
        thread = query.metadata.get("thread_id")
        if thread is not None and query.chain:
            self._interrupted.join(query, str(thread))
            if query.interrupted or self._reader.answer(query) is None:
                self._interrupted.remember(query, str(thread))
        if query.retrievals:
            self._submit(query, partial(self._records, query))
        elif not query.interrupted and not query.holds_queries:
            self.recorder.count_without_retrieval()

    def _give_up(self, queries: Sequence[Query]) -> None:
        for query in queries:
            if query.retrievals:
                self._submit(query, partial(self._records, query, abandoned=True))
            elif not query.holds_queries:
                self.recorder.count_without_retrieval()

    def _submit(self, query: Query, make: Callable[[], list[QueryRecord]]) -> None:
        # With parts it may be several queries, each of which is sampled by itself.
        named = query.root_id if query.parts is None else None
        self.recorder.submit(query.order, named, make, traced=True)

    def _records(self, query: Query, *, abandoned: bool = False) -> list[QueryRecord]:
        if (name := self._query_run_name) is not None:
            names = self._open.names()
            self.recorder.seek(f"query_run_name={name!r}", name in names, names)
        return self._reader.records(query, abandoned=abandoned)
