"""The store keeps the judges' cells, for all processes."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxeval import ContextPrecision, ContextRecall, Store
from ctxeval.judges.cells import MemoryCache
from ctxeval.testing import ScriptedLLM

KEYS = st.sampled_from(["", "a", "b", "\ud800", "\0", "x" * 5000])
FINDINGS = st.fixed_dictionaries(
    {
        "value": st.booleans(),
        "reason": st.sampled_from(["", "because", "\ud800", "\0"]),
        "chunks": st.lists(st.sampled_from("ab"), max_size=2),
    }
)
STEPS = st.lists(st.lists(st.tuples(KEYS, FINDINGS), max_size=4), max_size=4)


@settings(suppress_health_check=list(HealthCheck), max_examples=40)
@given(steps=STEPS)
def test_it_keeps_what_the_memory_keeps(url: str, steps: Any) -> None:
    with Store(url) as store:
        store.delete(before=datetime.now(UTC) + timedelta(days=1))
        memory = MemoryCache()
        for findings in steps:
            store.put_many(findings)
            memory.put_many(findings)
        keys = ["", "a", "b", "\ud800", "\0", "x" * 5000, "unknown"]
        assert store.get_many(keys) == memory.get_many(keys)


def test_more_keys_than_a_statement_takes(store: Store) -> None:
    store.put_many((str(n), {"value": n}) for n in range(1300))
    found = store.get_many([str(n) for n in range(1400)])
    assert found == {str(n): [{"value": n}] for n in range(1300)}
    assert store.get_many([]) == {}


def test_findings_come_oldest_first_and_once(url: str) -> None:
    one, two, three = ({"value": n, "reason": "r"} for n in (2, 1, 3))
    with Store(url) as first, Store(url) as second:
        first.put_many([("k", one), ("k", two)])
        second.put_many([("k", {"reason": "r", "value": 2}), ("k", three)])
        assert first.get_many(["k"]) == second.get_many(["k"]) == {"k": [one, two, three]}


def test_threads_lose_nothing(store: Store) -> None:
    def put(thread: int) -> None:
        for n in range(10):
            store.put_many([("shared", {"value": n % 5}), (f"of {thread}", {"value": n})])
            assert len(store.get_many([f"of {thread}"])[f"of {thread}"]) == n + 1

    threads = [threading.Thread(target=put, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = store.get_many(["shared", *(f"of {n}" for n in range(8))])
    assert len(found) == 9
    assert sorted(finding["value"] for finding in found["shared"]) == [0, 1, 2, 3, 4]


SECOND_PROCESS = """
import sys
from ctxeval import ContextPrecision, ContextRecall, Store
from ctxeval.testing import ScriptedLLM

class Same(ScriptedLLM):
    identity = {"model": sys.argv[2]}

llm = Same(relevant={"A"}, supported={"It is A.": {"A"}})
with Store(sys.argv[1]) as store:
    for metric in (ContextPrecision, ContextRecall):
        result = metric(llm, cache=store).score(
            user_input="q", reference="It is A. It is B.", retrieved_contexts=["A", "B"])
        print(result.value)
print(len(llm.calls), "calls")
"""


def test_another_process_asks_nothing_and_another_model_everything(url, start, finish) -> None:
    outputs = [finish(start(SECOND_PROCESS, url, model))[0] for model in ("one", "one", "two")]
    assert outputs == [f"1.0\n0.5\n{calls} calls\n" for calls in (3, 0, 3)]


class Slow(ScriptedLLM):
    async def complete(
        self, messages: Sequence[Mapping[str, str]], schema: Any, *, max_tokens: int | None = None
    ) -> Any:
        import asyncio

        await asyncio.sleep(0.05)
        return await super().complete(messages, schema, max_tokens=max_tokens)


def test_judgements_under_way_are_made_once_in_a_process(url: str) -> None:
    llm = Slow(relevant={"A"})
    fields = {"user_input": "q", "reference": "It is A.", "retrieved_contexts": ["A", "B"]}
    one, two = Store.of(url), Store.of(url)
    assert one is two
    metrics = [ContextPrecision(llm, cache=cache) for cache in (one, two) for _ in range(4)]
    threads = [threading.Thread(target=metric.score, args=(fields,)) for metric in metrics]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(llm.calls) == 1
    one.close()


def test_it_goes_when_nobody_holds_it(url: str) -> None:
    llm = ScriptedLLM(relevant={"A"})
    store = Store(url)
    ContextRecall(llm, cache=store).score(
        user_input="q", reference="It is A.", retrieved_contexts=["A"]
    )
    store.close()
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("given_as", [str, lambda url: url.removeprefix("sqlite:///")])
def test_one_of_a_url_a_store_and_none(tmp_path: Any, given_as: Any) -> None:
    store = Store.of(given_as(f"sqlite:///{tmp_path}/a.db"))
    assert Store.of(store) is store
    assert Store.of(tmp_path / "a.db") is store
    assert Store.of(tmp_path / "b.db") is not store
    assert Store.of(None) is None


def test_turns_come_evenly_whoever_takes_them(url: str) -> None:
    one, two = Store(url), Store(url)
    started = time.monotonic()
    waits = [store.take_turn("model", 10) for store in (one, two, one, two)]
    spent = time.monotonic() - started
    for place, wait in enumerate(waits):
        assert 10 * place - spent - 0.001 <= wait <= 10 * place
    assert one.take_turn("another model", 10) == 0
    one.close()
    two.close()


def test_a_turn_that_nobody_waits_for_is_now(url: str) -> None:
    with Store(url) as store:
        store.take_turn("model", 0.01)
        time.sleep(0.02)
        assert store.take_turn("model", 0.01) == 0
