"""An application under load while everything around it fails: `python soak.py STORE …`.

It asks LangChain and LlamaIndex from threads and from tasks, captured by one recorder whose
judge, store and sinks fail at random, and forks meanwhile. Of each answer it knows what it is
without ctxeval. At the end it prints what became of each query, as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import gc
import itertools
import json
import logging
import os
import random
import re
import resource
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import offline
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever as BaseIndex
from llama_index.core.schema import NodeWithScore, TextNode
from llamaindex_captures import Model
from small_chains import Scripted, rag

import ctxeval
from ctxeval.capture import outlet
from ctxeval.errors import JudgeError, StoreError
from ctxeval.llm.protocol import Completion
from ctxeval.testing import ScriptedLLM
from ctxeval.verdicts import Usage
from ctxeval_langchain import CtxEvalCallbackHandler
from ctxeval_llamaindex import CtxEvalEventHandler

CORPUS = [f"fact {n}: " + f"what is known of it, in its {n}th form. " * 5 for n in range(500)]
LOSSES = ("too many were waiting", "it could not be read", "the store failed")
"""The reasons for which a query is not in the store; for others, it is there without scores."""

FORK_SECONDS = 100


def found(question: str) -> list[int]:
    """Say which facts are found for a question; some questions find none but an error."""
    number = int(question.split()[1])
    if number % 97 == 0:
        raise ConnectionError(f"the index is away for {question}")
    return [(number + step) % len(CORPUS) for step in (0, 7, 31)]


class Documents(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(id=f"d{n}", page_content=CORPUS[n]) for n in found(query)]


class Index(BaseIndex):
    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        nodes = [TextNode(id_=f"d{n}", text=CORPUS[n]) for n in found(query_bundle.query_str)]
        return [NodeWithScore(node=one, score=1 / (n + 1)) for n, one in enumerate(nodes)]


def of_documents(given: Iterable[Any]) -> str:
    return repr([(one.id, one.page_content, one.metadata) for one in given])


def of_nodes(given: Iterable[Any]) -> str:
    return repr([(one.node.node_id, one.node.text, one.score) for one in given])


class Application:
    """What is asked, in each of its ways; with handlers or without.

    Args:
        config: What LangChain is given with each call.
    """

    def __init__(self, config: Callable[[str], dict[str, Any]]) -> None:
        self.config = config
        self.documents, self.index = Documents(), Index()
        self.chain = rag(self.documents, Scripted())
        self.engine = RetrieverQueryEngine.from_args(self.index, llm=Model())

    def ask(self, question: str) -> str:
        """Ask, synchronously; an error is an answer too."""
        try:
            return self._ways[int(question.split()[1]) % 20](self, question)
        except ConnectionError as error:
            return repr(error)

    async def aask(self, question: str) -> str:
        try:
            return await self._aways[int(question.split()[1]) % 20](self, question)
        except ConnectionError as error:
            return repr(error)

    def _retrieve(self, question: str) -> str:
        return of_documents(self.documents.invoke(question, self.config(question)))

    def _invoke(self, question: str) -> str:
        return str(self.chain.invoke(question, self.config(question)))

    def _stream(self, question: str) -> str:
        return repr(list(self.chain.stream(question, self.config(question))))

    def _index(self, question: str) -> str:
        return of_nodes(self.index.retrieve(question))

    def _query(self, question: str) -> str:
        answer = self.engine.query(question)
        return f"{answer} {of_nodes(answer.source_nodes)}"

    async def _aretrieve(self, question: str) -> str:
        return of_documents(await self.documents.ainvoke(question, self.config(question)))

    async def _ainvoke(self, question: str) -> str:
        return str(await self.chain.ainvoke(question, self.config(question)))

    async def _aindex(self, question: str) -> str:
        return of_nodes(await self.index.aretrieve(question))

    async def _aquery(self, question: str) -> str:
        answer = await self.engine.aquery(question)
        return f"{answer} {of_nodes(answer.source_nodes)}"

    _ways = (*[_retrieve, _index] * 8, _invoke, _query, _stream, _index)
    _aways = (*[_aretrieve, _aindex] * 8, _ainvoke, _aquery, _ainvoke, _aindex)


def answer_to(question: str, *, tasks: bool) -> str:
    """Say what the application answers; `check_answers` sees that it does, without ctxeval."""
    number = int(question.split()[1])
    try:
        facts = found(question)
    except ConnectionError as error:
        return repr(error)
    documents = repr([(f"d{n}", CORPUS[n], {}) for n in facts])
    nodes = repr([(f"d{n}", CORPUS[n], 1 / (rank + 1)) for rank, n in enumerate(facts)])
    answer = f"answer to {question}"
    way = number % 20
    if way < 16:
        return nodes if way % 2 else documents
    if way == 18 and not tasks:
        return repr([*re.findall(r"\s*\S+", answer), ""])
    return {16: answer, 17: f"{answer} {nodes}", 18: answer, 19: nodes}[way]


def check_answers(seed: int) -> None:
    """Have the application answer without ctxeval."""
    plain = Application(lambda question: {})
    questions = [f"question {n} of {seed}" for n in range(500)]

    async def in_tasks() -> list[str]:
        return [await plain.aask(question) for question in questions]

    for question, answer in zip(questions, asyncio.run(in_tasks()), strict=True):
        assert answer == answer_to(question, tasks=True), answer
    for question in questions:
        assert (answer := plain.ask(question)) == answer_to(question, tasks=False), answer


class FailingJudge:
    """A model that answers rightly, or badly, or not at all."""

    concurrency = 16
    identity = MappingProxyType({"endpoint": "here", "model": "failing"})

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._truth = ScriptedLLM(lambda question, text: text < "fact 3")

    async def complete(
        self, messages: Any, schema: Any, *, max_tokens: int | None = None
    ) -> Completion:
        draw = self._random.random()
        if draw < 0.05:
            raise JudgeError("no answer")
        if draw < 0.1:
            raise ConnectionResetError("gone")
        if draw < 0.12:
            await asyncio.sleep(0.2)
        text = "yes, I would say" if draw < 0.2 else self._truth.answer(messages)
        return Completion(text, Usage(1, 100, 10))


class FailingStore(ctxeval.Store):
    """A store that does not take every hundredth batch."""

    draw = random.Random(1)

    def put_records(self, records: Iterable[ctxeval.QueryRecord]) -> None:
        if self.draw.random() < 0.01:
            raise StoreError("the store has a bad day")
        super().put_records(records)


class FailingSink:
    """Takes most of what it is given; forgets it at once."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self._random = random.Random(seed)

    def export(self, record: ctxeval.QueryRecord) -> None:
        if self._random.random() < 0.02:
            raise TimeoutError("not now")


def resident() -> int:
    """Give the memory that the process holds, in bytes."""
    gc.collect()
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Soak:
    """One run of it."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        sinks = [FailingSink("one", given.seed), FailingSink("two", given.seed + 1)]
        self.store = FailingStore(given.store)
        self.recorder = ctxeval.Recorder(
            ["reciprocal_rank", "context_relevance"],
            llm=FailingJudge(given.seed),
            store=self.store,
            sinks=sinks,
            max_pending=2000,
            max_records=200,
            max_requests_per_minute=2000,
        )
        self.handler = CtxEvalCallbackHandler(recorder=self.recorder)
        self.listener = CtxEvalEventHandler(recorder=self.recorder)
        self.captured = Application(self._config)
        self.numbers = itertools.count()
        self.begun = time.monotonic()
        self.asked = 0
        self.different: list[str] = []
        self.children: Counter[str] = Counter()
        self.forks = 0
        self.lock = threading.Lock()

    def _config(self, question: str) -> dict[str, Any]:
        expected = {"ctxeval_reference_ids": ["d7"]}
        return {"callbacks": [self.handler], "metadata": expected}

    def _questions(self, until: int) -> Iterator[str]:
        """Give questions at an even pace."""
        while True:
            with self.lock:
                if self.asked >= until:
                    return
                number = next(self.numbers)
                self.asked += 1
            ahead = number * self.given.seconds / self.given.queries
            time.sleep(max(0.0, self.begun + ahead - time.monotonic()))
            yield f"question {number} of {self.given.seed}"

    def threads(self, until: int) -> None:
        """Ask from threads and from tasks, until so many were asked."""

        def ask() -> None:
            for question in self._questions(until):
                self._compare(question, self.captured.ask(question))

        def ask_in_tasks() -> None:
            async def one(question: str) -> None:
                self._compare(question, await self.captured.aask(question), tasks=True)

            async def some() -> None:
                questions = self._questions(until)
                while batch := list(itertools.islice(questions, 8)):
                    await asyncio.gather(*map(one, batch))

            asyncio.run(some())

        running = [threading.Thread(target=do) for do in [ask, ask, ask_in_tasks, ask_in_tasks]]
        for thread in running:
            thread.start()
        while any(thread.is_alive() for thread in running):
            if self.given.fork_every and self.asked // self.given.fork_every > self.forks:
                self.forks += 1
                self._fork(self.forks)
            time.sleep(0.01)
        for thread in running:
            thread.join()

    def _compare(self, question: str, answer: str, *, tasks: bool = False) -> None:
        expected = answer_to(question, tasks=tasks)
        if answer != expected:
            self.different.append(f"{question}: {answer} instead of {expected}")

    def _fork(self, number: int) -> None:
        """Fork; the child goes on asking, and tells what it lost."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                faulthandler.dump_traceback_later(FORK_SECONDS - 10)
                signal.alarm(FORK_SECONDS)
                before = Counter(self.recorder.dropped)
                for n in range(20):
                    question = f"question {10**8 + 100 * number + n} of the child"
                    self._compare(question, self.captured.ask(question))
                assert self.recorder.flush(FORK_SECONDS), "the child could not finish"
                lost = Counter(self.recorder.dropped)
                lost.subtract(before)
                os.write(writing, json.dumps([lost, self.different]).encode())
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            said = pipe.read()
        _, status = os.waitpid(child, 0)
        if status:
            self.different.append(f"child {number} ended with {status}")
            return
        lost, different = json.loads(said)
        self.children.update(lost)
        self.different += different

    def run(self) -> dict[str, Any]:
        """Warm up, go on, and count."""
        check_answers(self.given.seed)
        self.listener.install()
        warm = self.given.queries // 5
        self.threads(warm)
        assert self.recorder.flush(FORK_SECONDS), "it does not get done after the warm-up"
        before = resident()
        self.threads(self.given.queries)
        flushed = self.recorder.flush(FORK_SECONDS)
        after = resident()
        self.listener.uninstall()
        return {**self.account(), "flushed": flushed, "memory": [before, after]}

    def account(self) -> dict[str, Any]:
        """Say what became of each query."""
        children = 20 * self.forks
        asked = {f"question {n} of {self.given.seed}" for n in range(self.asked)}
        asked |= {
            f"question {10**8 + 100 * (n // 20 + 1) + n % 20} of the child" for n in range(children)
        }
        late = {
            f"question {n} of {self.given.seed}" for n in range(self.asked * 9 // 10, self.asked)
        }
        store = ctxeval.Store(self.given.store)
        stored = {one.question for one in store.records()}
        dropped = Counter(self.recorder.dropped)
        dropped.update({name: n for name, n in self.children.items() if n > 0})
        return {
            "asked": len(asked),
            "stored": len(stored & asked),
            "unknown": len(stored - asked),
            "missing": len(asked - stored),
            "late": len(stored & late) / len(late),
            "taken": self.asked - self.recorder.dropped[LOSSES[0]],
            "lost": {name: dropped[name] for name in LOSSES if dropped[name]},
            "dropped": dict(dropped),
            "deliveries": {
                name: one._asdict() for name, one in self.recorder.deliveries.items()
            },
            "unsent": store.count_unsent(),
            "different": self.different[:5],
            "compared": self.asked + children,
            "open": len(self.handler._open),
            "errors": dict(self.handler.errors + self.listener.errors),
            "forks": self.forks,
            "seconds": round(time.monotonic() - self.begun),
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    for name in ("--queries", "--seconds", "--seed", "--fork-every"):
        parser.add_argument(name, type=int, default=0)
    given = parser.parse_args()
    offline.forbid()
    outlet.DELAYS = (0.01, 0.01)
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    print(json.dumps(Soak(given).run()), flush=True)


if __name__ == "__main__":
    main()
