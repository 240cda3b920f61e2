"""The callback handler: it only takes snapshots, a recorder does the rest."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, TypeVar
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from ctxeval import QueryRecord, Recorder
from ctxeval_langchain.documents import snapshot
from ctxeval_langchain.records import Reader, interrupted
from ctxeval_langchain.runs import OpenQueries, Query

logger = logging.getLogger("ctxeval")

F = TypeVar("F", bound=Callable[..., Any])

MAX_INTERRUPTED = 1000
"""How many interrupted graphs are remembered until they are resumed."""


def _hook(method: F) -> F:
    """Keep whatever goes wrong in a hook from the chain: count it, and log it at debug level."""

    @wraps(method)
    def guarded(self: CtxEvalCallbackHandler, *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self.errors[type(error).__name__] += 1
            logger.debug("ctxeval: a hook failed", exc_info=True)
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
        if recorder is not None and options:
            raise TypeError(
                f"recorder= and {', '.join(options)} were given: give the options to the Recorder"
            )
        self.recorder = Recorder(**options) if recorder is None else recorder
        self.errors: Counter[str] = Counter()
        self.run_inline = inline
        self._reader = Reader(
            self.recorder.question_key, self.recorder.answer_key, self.recorder.id_key
        )
        self._open = OpenQueries(max_open, open_seconds, query_run_name)
        self._interrupted: OrderedDict[str, Query] = OrderedDict()

    # Models' starts and ends tell whether an answer is complete; their tokens are left aside.
    @property
    def ignore_llm(self) -> bool:
        """Not inline, a model's every token would cost a change of thread."""
        return not self.run_inline

    @property
    def ignore_chat_model(self) -> bool:
        """See `ignore_llm`."""
        return not self.run_inline

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
        self._start(run_id, parent_run_id, inputs, metadata, name)

    @_hook
    def on_chain_end(
        self, outputs: Any, *, run_id: UUID, inputs: Any = None, **kwargs: Any
    ) -> None:
        """Note the end; a root's output holds the answer, and `inputs` what a stream was asked."""
        self._finish(self._open.end(run_id.int, output=outputs, late_input=inputs))

    @_hook
    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, inputs: Any = None, **kwargs: Any
    ) -> None:
        """Note the failure: retrievals below it don't count, unless it is the root."""
        self._finish(self._open.end(run_id.int, error=error, late_input=inputs))

    @_hook
    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Note the run, so that retrievals below it find their root."""
        self._start(run_id, parent_run_id, input_str, metadata, name)

    @_hook
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the end."""
        self._finish(self._open.end(run_id.int, output=output))

    @_hook
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the failure."""
        self._finish(self._open.end(run_id.int, error=error))

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
        self._start(run_id, parent_run_id, query, metadata, name, chain=False)
        self._open.start_retrieval(run_id.int, query, name or "retriever")

    @_hook
    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Copy the documents."""
        self._open.end_retrieval(run_id.int, snapshot(documents))
        self._finish(self._open.end(run_id.int, output=True))

    @_hook
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note the failure."""
        self._open.end_retrieval(run_id.int, (), f"{type(error).__name__}: {error}")
        self._finish(self._open.end(run_id.int, error=error))

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
        self._start(run_id, parent_run_id, prompts, metadata, None)
        if self.recorder.capture_prompts:
            self._open.see_prompt(run_id.int, prompts)

    @_hook
    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        """Note that a chat model began to answer."""
        self.on_llm_start(serialized, messages, **kwargs)

    @_hook
    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note that a model has answered."""
        self._finish(self._open.end(run_id.int))

    @_hook
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note that a model failed."""
        self._finish(self._open.end(run_id.int, error=error))

    def _start(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        input: Any,
        metadata: Mapping[str, Any] | None,
        name: str | None,
        *,
        chain: bool = True,
    ) -> None:
        parent = None if parent_run_id is None else parent_run_id.int
        given_up = self._open.start(run_id.int, parent, input, metadata, name, chain=chain)
        if given_up:
            self._give_up(given_up)

    def _finish(self, query: Query | None) -> None:
        if query is None:
            return
        thread = query.metadata.get("thread_id")
        if thread is not None and type(query.input).__name__ == "Command":
            query = self._resumed(query, str(thread))
        if not query.retrievals:
            return
        if thread is not None and interrupted(query):
            self._interrupted[str(thread)] = query
            while len(self._interrupted) > MAX_INTERRUPTED:
                self._interrupted.popitem(last=False)
        reader = self._reader
        self.recorder.submit(query.order, query.root_id, partial(reader.record, query))

    def _resumed(self, query: Query, thread: str) -> Query:
        """Join a resumed graph to the query that it was interrupted in: that is one question."""
        before = self._interrupted.pop(thread, None)
        if before is None:
            return query
        query.root_id, query.order, query.started = before.root_id, before.order, before.started
        query.input = before.input
        query.parents = {**before.parents, **query.parents}
        query.retrievals = {**before.retrievals, **query.retrievals}
        return query

    def _give_up(self, queries: list[Query]) -> None:
        reader = self._reader
        for query in queries:
            if query.retrievals:
                self.recorder.submit(
                    query.order, query.root_id, partial(reader.record, query, abandoned=True)
                )
