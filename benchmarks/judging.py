"""Judging by a model at a local endpoint: client CPU beside bare calls, requests, wall time."""

from __future__ import annotations

import asyncio
import time
from math import ceil
from statistics import median
from typing import Any

import ctxeval
from benchmarks.endpoint import endpoint
from benchmarks.measuring import report
from ctxeval.judges.cells import MemoryCache
from ctxeval.judges.prompts import Prompts
from ctxeval.llm.loop import run

SAMPLES, CHUNKS, CLAIMS, CONCURRENCY, LATENCY = 100, 10, 6, 16, 0.2
FILLER = "the carrier inspects parcels before they leave the warehouse and notes their weight "


def _samples(n: int, claims: bool) -> list[ctxeval.Sample]:
    samples = []
    for number in range(n):
        facts = [f"Parcel {number} was sent by post in week {week}." for week in range(CLAIMS)]
        samples.append(
            ctxeval.Sample(
                user_input=f"How was parcel {number} sent?",
                reference=" ".join(facts),
                reference_claims=facts if claims else None,
                retrieved_contexts=[
                    f"Chunk {chunk} of {number}: {FILLER * 7}" for chunk in range(CHUNKS)
                ],
            )
        )
    return samples


def _score(samples: list[ctxeval.Sample], llm: Any, cache: MemoryCache) -> int:
    """Score precision and recall, and give the number of requests."""
    from ctxeval.scoring import score_all

    metrics = [
        ctxeval.ContextPrecision(llm, cache=cache),
        ctxeval.ContextRecall(llm, cache=cache),
    ]
    results = score_all(samples, metrics)
    assert all(r.status == "scored" for one in results for r in one.values())
    return sum(one["context_recall"].usage.requests for one in results)  # type: ignore[union-attr]


async def _bare(samples: list[ctxeval.Sample], url: str) -> None:
    """Make the same calls with nothing around them."""
    import openai

    prompts = Prompts()
    slots = asyncio.Semaphore(CONCURRENCY)
    numbers = list(range(1, CHUNKS + 1))
    bodies = []
    for sample in samples:
        messages, schema = prompts.judge(
            "reference",
            sample.user_input or "",
            sample.reference or "",
            sample.retrieved_contexts or (),
            numbers,
            sample.reference_claims or (),
        )
        named = {"name": "verdicts", "schema": schema, "strict": True}
        form = {"type": "json_schema", "json_schema": named}
        bodies.append({"messages": messages, "response_format": form})
    async with openai.AsyncOpenAI(base_url=url, api_key="x", max_retries=0) as client:

        async def call(body: dict[str, Any]) -> str:
            async with slots:
                made = await client.chat.completions.create(
                    model="m", temperature=0, max_tokens=3000, **body
                )
            return made.choices[0].message.content or ""

        await asyncio.gather(*(call(body) for body in bodies))


def main() -> None:
    with endpoint(0) as served:
        url = served.url
        llm = ctxeval.llm_factory("m", base_url=url, concurrency=CONCURRENCY)
        samples = _samples(2 * SAMPLES, claims=True)
        _score(samples, llm, MemoryCache())
        asyncio.run(_bare(samples, url))
        ratios, ours = [], []
        for _ in range(7):
            start = time.process_time()
            asyncio.run(_bare(samples, url))
            middle = time.process_time()
            _score(samples, llm, MemoryCache())
            end = time.process_time()
            ours.append((end - middle) / len(samples))
            ratios.append((end - middle) / (middle - start))
        report("client CPU of a joint judgement", 1000 * median(ours), "ms")
        report("client CPU of a joint judgement / a bare create", median(ratios), "×", limit=1.5)
        run(llm.aclose())
    with endpoint(LATENCY) as served:
        url = served.url
        llm = ctxeval.llm_factory("m", base_url=url, concurrency=CONCURRENCY)
        samples = _samples(SAMPLES, claims=False)
        cache = MemoryCache()
        start = time.perf_counter()
        requests = _score(samples, llm, cache)
        wall = time.perf_counter() - start
        floor = LATENCY * ceil(requests / CONCURRENCY)
        report("requests a sample, splitting included", requests / SAMPLES, "", limit=2)
        report("wall / latency × ceil(requests / concurrency)", wall / floor, "×", limit=1.3)
        report("requests of a second run", _score(samples, llm, cache), "", limit=0)
        turned = [
            s.model_copy(update={"retrieved_contexts": (s.retrieved_contexts or ())[::-1]})
            for s in samples
        ]
        report("requests with the chunks re-ordered", _score(turned, llm, cache), "", limit=0)
        exchanged = [
            s.model_copy(
                update={
                    "retrieved_contexts": ("Chunk 99 is new.", *(s.retrieved_contexts or ())[1:])
                }
            )
            for s in samples
        ]
        one_new = _score(exchanged, llm, cache) / SAMPLES
        report("requests a sample with one chunk exchanged", one_new, "", limit=1)
        run(llm.aclose())
