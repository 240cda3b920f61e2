"""Judges behind a real server with a real small model: nothing is lost, whatever it says.

Needs the weights of SmolLM2-135M-Instruct and a Python with xllamacpp; CONTRIBUTING says how to
get both. Whether so small a model judges well is another question: see benchmarks/JUDGES.md.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ctxeval
from ctxeval import Sample
from ctxeval.judges.cells import MemoryCache
from ctxeval.judges.llm import MODES, LLMJudge
from ctxeval.llm.loop import run

openai = pytest.importorskip("openai")

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(600)]

SERVING = Path(__file__).parents[2] / "benchmarks" / "judges" / "serving.py"
PYTHON = os.environ.get("CTXEVAL_MODEL_PYTHON", "")
MODEL = os.environ.get("CTXEVAL_MODEL", "")

FIELDS: dict[str, Any] = {
    "user_input": "When does the library open?",
    "reference": "It opens at nine. On Sundays it is closed.",
    "reference_claims": ["The library opens at nine.", "The library is closed on Sundays."],
    "retrieved_contexts": [
        "The library opens at nine in the morning.",
        "Books may be kept for four weeks.",
        "On Sundays the library is closed.",
    ],
}
SAMPLE = Sample(**FIELDS)
METRICS = ["context_precision", "context_recall"]


@pytest.fixture(scope="module", autouse=True)
def _there() -> None:
    if not (PYTHON and MODEL):
        pytest.skip("CTXEVAL_MODEL_PYTHON and CTXEVAL_MODEL name no server and no model")


class Served:
    """A server's process, and where it is."""

    def __init__(self, context: int, slots: int = 1) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        self.process = subprocess.Popen(
            [PYTHON, SERVING, MODEL, str(port), str(context), str(slots)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def wait(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == "ready", "the server did not start"

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(30) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def served(context: int, slots: int = 1) -> Iterator[Served]:
    server = Served(context, slots)
    try:
        yield server
    finally:
        server.end()


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(3072, 2) as one:
        one.wait()
        yield one


@pytest.fixture
def model() -> Iterator[Callable[..., Any]]:
    """Makes models behind a server, and closes their connections in the end."""
    made: list[Any] = []

    def make(server: Served, **given: Any) -> Any:
        made.append(ctxeval.llm_factory("smollm2", base_url=server.url, api_key="none", **given))
        return made[-1]

    yield make
    for one in made:
        run(one.aclose())


def judged(llm: Any, mode: str, sample: Sample) -> dict[str, ctxeval.MetricResult]:
    judge = LLMJudge(llm, mode=mode, cache=MemoryCache())  # type: ignore[arg-type]
    metrics = [ctxeval.ContextPrecision(judge), ctxeval.ContextRecall(judge)]
    [row] = ctxeval.evaluate([sample], metrics, progress=False).rows
    return row.results


def nothing_is_lost(results: dict[str, ctxeval.MetricResult], sample: Sample) -> None:
    assert set(results) == set(METRICS)
    for result in results.values():
        assert result.status in ("scored", "failed")
        assert result.verdicts is not None
        assert (result.value is None) == (result.status == "failed")
        if result.status == "failed":
            assert result.bounds is not None
            assert result.reason
        for verdict in (*result.verdicts.chunks, *result.verdicts.units):
            assert verdict.value is not None or verdict.reason
    precision, recall = (results[name].verdicts for name in METRICS)
    assert len(precision.chunks) == len(sample.retrieved_contexts or ())
    assert len(recall.units) == len(sample.reference_claims or ())


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_runs_end_to_end(server, mode, model):
    results = judged(model(server), mode, SAMPLE)
    nothing_is_lost(results, SAMPLE)
    if mode == "logprob":
        for verdict in results["context_precision"].verdicts.chunks:
            assert 0 < verdict.probability < 1
        assert 0 < results["context_precision"].expected < 1


def test_a_reference_is_split_by_the_model(server, model):
    whole = Sample(**{**FIELDS, "reference_claims": None})
    recall = ctxeval.score(whole, ["context_recall"], llm=model(server))["context_recall"]
    assert recall.verdicts.units, "claims, or the reference with a reason"
    assert recall.status == "scored" or recall.reason


def test_a_judge_that_starts_before_its_server(model):
    """First nobody answers, then "loading" (503), then it judges."""
    with served(4096) as server:
        results = judged(model(server), "logprob", SAMPLE)
        server.wait()
    nothing_is_lost(results, SAMPLE)
    assert [one.probability is None for one in results["context_precision"].verdicts.chunks] == [
        False
    ] * 3


@pytest.mark.parametrize("mode", MODES)
def test_a_context_that_cuts_the_answer(mode, model):
    """The prompt fits, the answer does not: it ends in the middle of the JSON."""
    with served(640) as server:
        server.wait()
        results = judged(model(server), mode, SAMPLE)
    nothing_is_lost(results, SAMPLE)


@pytest.mark.parametrize("mode", MODES)
def test_a_chunk_that_does_not_fit(mode, model):
    """It is unread and says why; the others are judged."""
    long = " ".join(f"The shelf with number {n} holds books." for n in range(600))
    sample = Sample(**{**FIELDS, "retrieved_contexts": [*FIELDS["retrieved_contexts"], long]})
    with served(2048) as server:
        server.wait()
        results = judged(model(server), mode, sample)
    nothing_is_lost(results, sample)
    *_, last = results["context_precision"].verdicts.chunks
    assert last.value is None
    assert "does not fit the model's context" in last.reason


@pytest.mark.parametrize("mode", MODES)
def test_a_slot_that_is_taken(mode, model):
    """Somebody else has the only slot, for long: the judge waits for its turn."""
    with served(2048) as server:
        server.wait()
        taken = threading.Event()

        def take() -> None:
            client = openai.OpenAI(base_url=server.url, api_key="none")
            with client.chat.completions.create(
                model="smollm2",
                messages=[{"role": "user", "content": "Count to one thousand."}],
                max_tokens=300,
                stream=True,
            ) as stream:
                for _ in stream:
                    taken.set()
            client.close()

        other = threading.Thread(target=take)
        other.start()
        assert taken.wait(60)
        results = judged(model(server), mode, SAMPLE)
        other.join(120)
        assert not other.is_alive()
    nothing_is_lost(results, SAMPLE)


def test_many_at_once_on_two_slots(server, model):
    samples = [Sample(**{**FIELDS, "id": str(n), "user_input": f"{n}?"}) for n in range(12)]
    judge = LLMJudge(model(server, concurrency=8), mode="logprob", cache=MemoryCache())
    metrics = [ctxeval.ContextPrecision(judge), ctxeval.ContextRecall(judge)]
    found = ctxeval.evaluate(samples, metrics, progress=False)
    rows = list(found.rows)
    assert len(rows) == len(samples)
    for row in rows:
        nothing_is_lost(row.results, SAMPLE)


async def _twice(llm: Any, messages: list[Any]) -> set[float]:
    told = [await llm.first_token(messages) for _ in range(3)]
    return {max(one.logprobs.values()) for one in told}


def test_asked_alone_and_again_it_says_the_same(server, model):
    messages = [{"role": "user", "content": "Is the sky blue? Answer Yes or No."}]
    assert len(run(_twice(model(server), messages))) == 1
