"""How queries end: with an answer, an error, or a stream that somebody may read later."""

from __future__ import annotations

import time
from functools import partial
from typing import Any
from weakref import ref

from ctxeval import QueryStatus
from ctxeval_llamaindex.failures import Failure
from ctxeval_llamaindex.queries import Outcome, Query
from ctxeval_llamaindex.reading import answer_of
from ctxeval_llamaindex.spans import RETRIEVE, RUN
from ctxeval_llamaindex.streams import watch

_RETRIEVED, _INCOMPLETE = Outcome("ok"), Outcome("incomplete")


class _Chat:
    """A chat's answer that its engine reads in a thread or task of its own, and keeps for the user.

    Attributes:
        response: The response, held weakly.
        query: The query, once its root has ended.
        ended: The text and the error, once the answer has been read.
    """

    def __init__(self, response: ref[Any]) -> None:
        """Begin."""
        self.response = response
        self.query: Query | None = None
        self.ended: tuple[str, BaseException | None] | None = None


class Endings:
    """Finds out what became of a query, and hands it to its takers.

    With a stream that happens twice: when the stream is there, and when it has been read;
    the second record takes the place of the first.
    """

    def __init__(self) -> None:
        """See the class."""
        self._chats: dict[int, _Chat] = {}

    def __len__(self) -> int:
        """Count the chats whose answers are still being read."""
        return len(self._chats)

    def of_root(self, query: Query, result: Any) -> None:
        """Note what a query's root returned; if it failed, the query knows why."""
        query.ended = time.time()
        query.outcome = _INCOMPLETE
        try:
            if query.failed is not None:
                query.outcome = Outcome(query.failed.status)
            elif query.kind == RETRIEVE:
                query.outcome = _RETRIEVED
            elif not self._comes_later(query, result):
                query.outcome = _outcome(query, result)
        finally:
            if query.is_ours:  # a forked child leaves its parent's queries alone
                for taker in query.takers:
                    taker.take(query, ends=True)

    def _comes_later(self, query: Query, result: Any) -> bool:
        if not getattr(result, "is_writing_to_memory", False):
            return watch(result, partial(self._settle, query))
        chat = self._chat(result)
        chat.query = query
        self._settle_chat(id(result), chat)
        return True

    def _chat(self, response: Any) -> _Chat:
        key = id(response)
        gone = ref(response, lambda _: self._chats.pop(key, None))
        return self._chats.setdefault(key, _Chat(gone))

    def of_writing(self, response: Any) -> None:
        """Watch the stream of a chat that its engine is about to read."""
        chat = self._chat(response)

        def done(text: str, error: BaseException | None) -> None:
            chat.ended = text.strip(), error
            self._settle_chat(key, chat)

        key = id(response)
        watch(response, done)

    def _settle_chat(self, key: int, chat: _Chat) -> None:
        """Settle a chat of which both are known, its query and its answer: once."""
        if chat.query and chat.ended and self._chats.pop(key, None) is not None:
            self._settle(chat.query, *chat.ended)

    def _settle(self, query: Query, text: str, error: BaseException | None) -> None:
        """Note an answer that was read. Never raises: the application is reading it."""
        status: QueryStatus = "ok"
        if error is not None:
            closed = isinstance(error, GeneratorExit)
            status = "incomplete" if closed else Failure.of(error).status
        query.ended = time.time()
        query.outcome = Outcome(status, text or None)
        if query.is_ours:
            for taker in query.takers:
                taker.take(query)


def _outcome(query: Query, result: Any) -> Outcome:
    if result is not None:
        asked_for = any(taker.recorder.answer_key is not None for taker in query.takers)
        return Outcome("ok", answer_of(result), result if asked_for else None)
    if query.step_failed is not None:  # older workflows hide why they fail
        return Outcome(query.step_failed.status)
    cancelled = query.kind == RUN and not query.frames[0].leaks
    return Outcome("cancelled" if cancelled else "incomplete")
