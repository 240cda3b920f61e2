"""What the LangChain handler adds to a retriever call beside others, in the caller's thread."""

from __future__ import annotations

import asyncio
import gc
import time
from statistics import median
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from benchmarks.capturing_peers import peers
from benchmarks.measuring import report
from ctxeval_langchain import CtxEvalCallbackHandler

CALLS, ROUNDS = 1000, 9
DOCUMENTS = [Document(id=f"d{n}", page_content="x" * 600, metadata={"n": n}) for n in range(10)]


class _Kb(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return DOCUMENTS

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return DOCUMENTS


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
        others = peers()
        # What the others' modules hold is not to be gone through by whose turn it is.
        gc.collect()
        gc.freeze()
        added: dict[str, list[float]] = {other: [] for other in (*others, "ctxeval")}
        for _ in range(ROUNDS):
            bare = ask({})
            for other, attached in others.items():
                with attached() as config:
                    added[other].append(ask(config) - bare)
            handler = CtxEvalCallbackHandler(max_pending=2 * CALLS)
            added["ctxeval"].append(ask({"callbacks": [handler]}) - bare)
            handler.flush()
            assert len(handler.records) == CALLS
        figures = {other: 1e6 * median(times) for other, times in added.items()}
        for other, figure in figures.items():
            told = limit if other == "ctxeval" else None
            report(f"added to a retriever call by {other}, {name}", figure, "µs", limit=told)
        ratio = figures["ctxeval"] / figures["appending"]
        report(f"ctxeval / appending, {name}", ratio, "×", limit=3)
