"""What the LlamaIndex handler adds to a retrieve of 10 nodes, beside one that appends to a list."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from importlib.util import find_spec
from statistics import quantiles
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


def _measure(ask: Callable[[], float]) -> tuple[float, float]:
    """Time both in turn, each against the framework's own handlers alone, in seconds.

    Of each the quickest rounds count: whatever else runs can only make one slower.

    Neither keeps more than one round: what grows pays for new memory too, which no application
    does once it has run for a while.
    """
    root = get_dispatcher()
    events, spans = root.event_handlers, root.span_handlers
    own = (
        [one for one in events if one.class_name() == "NullEventHandler"],
        [one for one in spans if one.class_name() == "NullSpanHandler"],
    )
    appending, handler = _Appending(seen=[]), CtxEvalEventHandler(max_records=CALLS)
    rounds = []
    gc.collect()
    gc.disable()  # as timeit does
    for _ in range(ROUNDS):
        root.event_handlers, root.span_handlers = own
        ask()  # what the recorder's thread has left in the caches is no handler's doing
        bare = ask()
        root.event_handlers = [*own[0], appending]
        by_appending = ask()
        appending.seen.clear()
        root.event_handlers, root.span_handlers = events, spans
        handler.install()
        rounds.append((bare, by_appending, ask()))
        handler.uninstall()
        assert handler.flush(10)
    gc.enable()
    assert len(handler.records) == CALLS
    assert handler.recorder.dropped.total() == CALLS * (ROUNDS - 1)
    handler.close()
    bare, by_appending, by_ctxeval = (
        quantiles(times, n=8)[0] for times in zip(*rounds, strict=True)
    )
    return by_appending - bare, by_ctxeval - bare


def _openinference(ask: Callable[[], float]) -> float:
    """Time openinference's instrumentation, which is for good; its spans go nowhere."""
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    from benchmarks.capturing_peers import provider

    instrumentor = LlamaIndexInstrumentor()
    rounds = []
    for _ in range(ROUNDS // 3):
        bare = ask()
        instrumentor.instrument(tracer_provider=provider())
        rounds.append((bare, ask()))
        instrumentor.uninstrument()
    bare, traced = (quantiles(times, n=8)[0] for times in zip(*rounds, strict=True))
    return traced - bare


def main() -> None:
    ways = {"sync": _sync, "async": _async}
    # Before openinference: where a tracing is loaded, its spans are looked for too.
    for name, ask in ways.items():
        appending, ours = (1e6 * seconds for seconds in _measure(ask))
        report(f"added to a retrieve by appending, {name}", appending, "µs")
        report(f"added to a retrieve by ctxeval, {name}", ours, "µs")
        report(f"ctxeval / appending in LlamaIndex, {name}", ours / appending, "×", limit=3)
    for name, ask in ways.items() if find_spec("openinference") else ():
        traced = 1e6 * _openinference(ask)
        report(f"added to a retrieve by openinference, {name}", traced, "µs")
