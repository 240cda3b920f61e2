"""What the LangChain handler adds to a retriever call, beside one that appends to a list."""

from __future__ import annotations

import asyncio
import time
from statistics import median
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from benchmarks.measuring import report
from ctxeval_langchain import CtxEvalCallbackHandler

CALLS, ROUNDS = 1000, 9
DOCUMENTS = [Document(id=f"d{n}", page_content="x" * 600, metadata={"n": n}) for n in range(10)]


class _Kb(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return DOCUMENTS

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return DOCUMENTS


class _Appending(BaseCallbackHandler):
    run_inline = True

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.seen.append([(one.id, one.page_content, dict(one.metadata)) for one in documents])


def _sync(config: Any) -> float:
    kb = _Kb()
    start = time.thread_time()
    for _ in range(CALLS):
        kb.invoke("q", config)
    return (time.thread_time() - start) / CALLS


def _async(config: Any) -> float:
    kb = _Kb()

    async def ask() -> float:
        start = time.thread_time()
        for _ in range(CALLS):
            await kb.ainvoke("q", config)
        return (time.thread_time() - start) / CALLS

    return asyncio.run(ask())


def main() -> None:
    for name, ask, limit in (("sync", _sync, 15.0), ("async", _async, 30.0)):
        added: dict[str, list[float]] = {"appending to a list": [], "ctxeval": []}
        for _ in range(ROUNDS):
            handler = CtxEvalCallbackHandler(max_pending=2 * CALLS)
            bare = ask({})
            added["appending to a list"].append(ask({"callbacks": [_Appending()]}) - bare)
            added["ctxeval"].append(ask({"callbacks": [handler]}) - bare)
            handler.flush()
            assert len(handler.records) == CALLS
        appending, ours = (1e6 * median(times) for times in added.values())
        report(f"added to a retriever call by appending, {name}", appending, "µs")
        report(f"added to a retriever call by ctxeval, {name}", ours, "µs", limit=limit)
        report(f"ctxeval / appending, {name}", ours / appending, "×", limit=3)
