"""What the LlamaIndex handler adds to a retrieve of 10 nodes, beside one that appends to a list."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from benchmarks.measuring import report
from ctxeval_llamaindex.handler import CtxEvalEventHandler

CALLS, ROUNDS = 150, 51
"""So few calls that the recorder's thread, which lets records gather, starts after the last."""

NODES = [
    NodeWithScore(
        node=TextNode(
            id_=f"n{n}",
            text="x" * 600,
            metadata={"file_name": f"{n}.md", "page_label": str(n)},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"d{n}")},
            start_char_idx=0,
            end_char_idx=600,
        ),
        score=1.0 - n / 10,
    )
    for n in range(10)
]


class _Kb(BaseRetriever):
    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return NODES

    async def _aretrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return NODES


class _Appending(BaseEventHandler):
    seen: list[Any]

    @classmethod
    def class_name(cls) -> str:
        return "Appending"

    def handle(self, event: Any, **kwargs: Any) -> None:
        if event.class_name() == "RetrievalEndEvent":
            self.seen.append([(one.node_id, one.get_content()) for one in event.nodes])


def _sync() -> float:
    kb = _Kb()
    start = time.thread_time()
    for _ in range(CALLS):
        kb.retrieve("q")
    return (time.thread_time() - start) / CALLS


def _async() -> float:
    kb = _Kb()

    async def ask() -> float:
        start = time.thread_time()
        for _ in range(CALLS):
            await kb.aretrieve("q")
        return (time.thread_time() - start) / CALLS

    return asyncio.run(ask())


def _measure(ask: Callable[[], float]) -> dict[str, list[float]]:
    """Time both, one right after the other, each against no handler at all."""
    root = get_dispatcher()
    appending, handler = _Appending(seen=[]), CtxEvalEventHandler()
    hooks = root.event_handlers, root.span_handlers
    added: dict[str, list[float]] = {"appending": [], "ctxeval": []}
    gc.collect()
    gc.disable()  # as timeit does
    for _ in range(ROUNDS):
        root.event_handlers, root.span_handlers = [], []
        bare = ask()
        root.event_handlers = [appending]
        added["appending"].append(ask() - bare)
        appending.seen.clear()
        root.event_handlers, root.span_handlers = hooks
        handler.install()
        added["ctxeval"].append(ask() - bare)
        handler.uninstall()
        assert handler.flush(10)
    gc.enable()
    assert len(handler.records) == CALLS * ROUNDS
    handler.close()
    return added


def main() -> None:
    for name, ask in (("sync", _sync), ("async", _async)):
        appending, ours = (1e6 * median(times) for times in _measure(ask).values())
        report(f"added to a retrieve by appending, {name}", appending, "µs")
        report(f"added to a retrieve by ctxeval, {name}", ours, "µs")
        report(f"ctxeval / appending in LlamaIndex, {name}", ours / appending, "×", limit=3)
