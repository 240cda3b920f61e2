"""Context precision and recall by a model, as each library does it: `NAME URL SAMPLES CONCURRENCY`.

Run in a process of its own for each, so that none pays for another's imports; scores once for
each line of its input, and prints its CPU and wall time, and how many scores it lost.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

CHUNKS = 10
WORDS = [f"word{number}" for number in range(500)]

Rows = list[dict[str, Any]]
Scores = list[float | None]
Judge = Callable[[Rows], Scores]


def rows(count: int) -> Rows:
    """Make questions with a reference of three sentences and ten chunks of 600 letters."""
    draw = random.Random(count)
    return [
        {
            "user_input": f"How was parcel {number} sent?",
            "reference": " ".join(
                f"Parcel {number} was sent by post in week {week}." for week in (1, 2, 3)
            ),
            "response": f"Parcel {number} went by post.",
            "retrieved_contexts": [
                f"Chunk {chunk} of {number}: {' '.join(draw.choices(WORDS, k=75))}"[:600]
                for chunk in range(CHUNKS)
            ],
        }
        for number in range(count)
    ]


def _http(aiohttp: bool) -> dict[str, Any]:
    import openai

    return {"http_client": openai.DefaultAioHttpClient()} if aiohttp else {}


def _ctxeval(url: str, concurrency: int, *, aiohttp: bool) -> Judge:
    import openai

    import ctxeval
    from ctxeval.judges.cells import MemoryCache

    def own() -> Any:
        return openai.AsyncOpenAI(base_url=url, api_key="x", **_http(True))

    llm = ctxeval.llm_factory("gpt-4o-mini", client=own if aiohttp else None, base_url=url)

    def judge(data: Rows) -> Scores:
        found = ctxeval.evaluate(
            data,
            ["context_precision", "context_recall"],
            llm=llm,
            concurrency=concurrency,
            store=MemoryCache(),
            progress=False,
        )
        return [result.value for row in found.rows for result in row.results.values()]

    return judge


def _bare(url: str, concurrency: int, *, aiohttp: bool) -> Judge:
    """Make the calls that ctxeval makes, with nothing around them."""
    import openai

    from ctxeval.judges.prompts import Prompts

    prompts = Prompts()
    numbers = list(range(1, CHUNKS + 1))
    loop = asyncio.Runner()
    loop.get_loop()
    client = openai.AsyncOpenAI(base_url=url, api_key="x", max_retries=0, **_http(aiohttp))

    def body(asked: tuple[Any, Any]) -> dict[str, Any]:
        messages, schema = asked
        named = {"name": "verdicts", "schema": schema, "strict": True}
        form = {"type": "json_schema", "json_schema": named}
        return {"messages": messages, "response_format": form, "max_tokens": 3000}

    async def ask_all(data: Rows) -> None:
        slots = asyncio.Semaphore(concurrency)

        async def call(asked: tuple[Any, Any]) -> str:
            async with slots:
                made = await client.chat.completions.create(
                    model="gpt-4o-mini", temperature=0, **body(asked)
                )
            return made.choices[0].message.content or ""

        async def both(row: dict[str, Any]) -> None:
            question, reference = row["user_input"], row["reference"]
            claims = json.loads(await call(prompts.split(reference)))["claims"]
            chunks = row["retrieved_contexts"]
            await call(prompts.judge("reference", question, reference, chunks, numbers, claims))

        await asyncio.gather(*(both(row) for row in data))

    def judge(data: Rows) -> Scores:
        loop.run(ask_all(data))
        return [1.0] * 2 * len(data)

    return judge


def _ragas_collections(url: str, concurrency: int) -> Judge:
    """Score by its batch call, which has no limit of its own and ends at the first failure."""
    import openai
    from ragas.llms import llm_factory
    from ragas.metrics.collections import ContextPrecision, ContextRecall

    loop = asyncio.Runner()
    loop.get_loop()
    client = openai.AsyncOpenAI(base_url=url, api_key="x")
    llm = llm_factory("gpt-4o-mini", client=client)

    async def ask_all(data: Rows) -> Scores:
        scores: Scores = []
        for metric in (ContextPrecision(llm=llm), ContextRecall(llm=llm)):
            inputs = [
                {name: row[name] for name in ("user_input", "reference", "retrieved_contexts")}
                for row in data
            ]
            try:
                scores += [one.value for one in await metric.abatch_score(inputs)]
            except Exception as error:
                print(type(error).__name__, file=sys.stderr)
                scores += [None] * len(data)
        return scores

    return lambda data: loop.run(ask_all(data))


def _ragas_legacy(url: str, concurrency: int) -> Judge:
    from langchain_openai import ChatOpenAI
    from ragas import EvaluationDataset, RunConfig, SingleTurnSample, evaluate
    from ragas.llms import LangchainLLMWrapper
    from ragas.metrics import ContextPrecision, ContextRecall

    llm = LangchainLLMWrapper(ChatOpenAI(model="gpt-4o-mini", base_url=url, api_key="x"))

    def judge(data: Rows) -> Scores:
        metrics = [ContextPrecision(), ContextRecall()]
        found = evaluate(
            EvaluationDataset(samples=[SingleTurnSample(**row) for row in data]),
            metrics=metrics,
            llm=llm,
            run_config=RunConfig(max_workers=concurrency),
            show_progress=False,
            raise_exceptions=False,
        )
        return [value for metric in metrics for value in found[metric.name]]

    return judge


def _deepeval(url: str, concurrency: int) -> Judge:
    from deepeval import evaluate
    from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
    from deepeval.metrics import ContextualPrecisionMetric, ContextualRecallMetric
    from deepeval.models import GPTModel
    from deepeval.test_case import LLMTestCase

    model = GPTModel(model="gpt-4o-mini", base_url=url, api_key="x")

    def judge(data: Rows) -> Scores:
        found = evaluate(
            test_cases=[
                LLMTestCase(
                    input=row["user_input"],
                    actual_output=row["response"],
                    expected_output=row["reference"],
                    retrieval_context=row["retrieved_contexts"],
                )
                for row in data
            ],
            metrics=[ContextualPrecisionMetric(model=model), ContextualRecallMetric(model=model)],
            async_config=AsyncConfig(max_concurrent=concurrency, throttle_value=0),
            display_config=DisplayConfig(show_indicator=False, print_results=False),
            cache_config=CacheConfig(write_cache=False, use_cache=False),
            error_config=ErrorConfig(ignore_errors=True),
        )
        return [
            None if one.error else one.score
            for case in found.test_results
            for one in case.metrics_data or []
        ]

    return judge


JUDGES: dict[str, Callable[[str, int], Judge]] = {
    "ctxeval": lambda *given: _ctxeval(*given, aiohttp=False),
    "ctxeval, aiohttp": lambda *given: _ctxeval(*given, aiohttp=True),
    "bare create": lambda *given: _bare(*given, aiohttp=False),
    "bare create, aiohttp": lambda *given: _bare(*given, aiohttp=True),
    "ragas, collections": _ragas_collections,
    "ragas, legacy": _ragas_legacy,
    "deepeval": _deepeval,
}


def main() -> None:
    name, url, samples, concurrency = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    warnings.simplefilter("ignore")
    told = sys.stdout
    sys.stdout = sys.stderr  # what the libraries print themselves
    judge = JUDGES[name](url, concurrency)
    judge(rows(2))  # pays for imports
    print("warm", file=told, flush=True)
    data = rows(samples)
    for _ in sys.stdin:
        cpu, wall = time.process_time(), time.perf_counter()
        scores = judge(data)
        spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        kept = [score for score in scores if score is not None and not math.isnan(score)]
        print(json.dumps({**spent, "lost": 2 * samples - len(kept)}), file=told, flush=True)


if __name__ == "__main__":
    main()
    os._exit(0)  # whatever threads a library leaves behind
