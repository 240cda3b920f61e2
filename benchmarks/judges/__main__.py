"""Compare wordings, modes and baselines on the labelled set, and print the tables of JUDGES.md.

`python -m benchmarks.judges NAME=URL… --answers FOLDER`, with an OpenAI-compatible endpoint
for each model. What was answered is kept in the folder: a run that ends early goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import openai

import ctxeval
from benchmarks.judges.asking import Answers
from benchmarks.judges.cases import Case, cases
from benchmarks.judges.embedding import sentence_model
from benchmarks.judges.rows import Interval, Told, accuracy, row
from benchmarks.measuring import markdown
from ctxeval.calibration.baselines import baseline_scores
from ctxeval.evaluation.judge_pairs import judge_pairs
from ctxeval.judges.cells import MemoryCache
from ctxeval.judges.embedding import EmbeddingSimilarity
from ctxeval.judges.llm import LLMJudge
from ctxeval.llm.loop import run

PURPOSES = ("question", "reference", "response", "support")
JSON_CASES = 210
"""So many questions in English are judged by the modes that answer with JSON."""


def main() -> None:
    given = argparse.ArgumentParser(prog="python -m benchmarks.judges", description=__doc__)
    given.add_argument("models", nargs="*", metavar="NAME=URL")
    given.add_argument("--answers", type=Path, required=True, metavar="FOLDER")
    given.add_argument("--embed", type=Path, metavar="FOLDER", help="model.onnx, tokenizer.json")
    given.add_argument("--json", nargs="*", default=[], choices=("joint", "pointwise"), help="too")
    options = given.parse_args()
    every = cases()
    print(f"### Baselines\n\n{markdown(list(_baselines(every, options.embed)))}\n")
    for named in options.models:
        name, _, url = named.partition("=")
        llm = _model(name, url)
        told = asyncio.run(Answers(name, options.answers).ask(llm, every))
        print(f"### {name}, by probability\n\n{markdown(_rows(told))}\n", flush=True)
        print(f"By language of the question:\n\n{markdown(list(_by_language(told)))}\n", flush=True)
        if options.json:
            print(
                f"### {name}, by JSON\n\n{markdown(list(_by_json(llm, every, options.json)))}\n",
                flush=True,
            )


def _model(name: str, url: str) -> Any:
    client = openai.AsyncOpenAI(base_url=url, api_key="none", timeout=900)
    return ctxeval.llm_factory(name, client=client, base_url=url, concurrency=1)


def _baselines(every: Sequence[Case], embed: Path | None) -> Iterable[dict[str, Any]]:
    similarity = None if embed is None else EmbeddingSimilarity(sentence_model(embed))
    for purpose in PURPOSES:
        these = [case for case in every if case.labelled.pair.purpose == purpose]
        pairs = [case.labelled.pair for case in these]
        for name, scores in baseline_scores(pairs, similarity).items():
            yield _cells(f"{purpose}: {name}", [*map(Told, these, scores)])


def _rows(told: dict[str, list[Told]]) -> list[dict[str, Any]]:
    return [_cells(name, of_wording) for name, of_wording in told.items()]


def _by_language(told: dict[str, list[Told]]) -> Iterable[dict[str, Any]]:
    for name, of_wording in told.items():
        languages = dict.fromkeys(one.case.language for one in of_wording)
        for language in languages if len(languages) > 1 else ():
            these = [one for one in of_wording if one.case.language == language]
            yield _cells(f"{name} ({language})", these)


def _cells(name: str, told: Sequence[Told]) -> dict[str, Any]:
    found = row(told)
    return {
        "what": name,
        "n": found.n,
        "unread": found.unread,
        "AUC": str(found.auc),
        "near": _two(found.near),
        "far": _two(found.far),
        "accuracy at 0.5": str(found.even),
        "accuracy, fitted": str(found.fitted),
        "on": found.held_out,
        "threshold": _two(found.threshold),
    }


def _two(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _by_json(llm: Any, every: Sequence[Case], modes: Sequence[str]) -> Iterable[dict[str, Any]]:
    of_question = [case for case in every if case.labelled.pair.purpose == "question"]
    these = sorted(of_question, key=lambda case: case.language != "en")[:JSON_CASES]
    for mode in modes:
        judge = LLMJudge(llm, mode, cache=MemoryCache())  # type: ignore[arg-type]
        begun = time.perf_counter()
        verdicts, usage, _ = run(judge_pairs(judge, [case.labelled.pair for case in these]))
        seconds = time.perf_counter() - begun
        values = [None if one.value is None else float(one.value) for one in verdicts]
        read = [one for one in map(Told, these, values) if one.yes is not None]
        found: Interval = accuracy(read, 0.5)
        yield {
            "mode": mode,
            "n": len(read),
            "unread": len(these) - len(read),
            "said yes": _two(sum(one.yes or 0 for one in read) / len(read)),
            "accuracy": str(found),
            "requests": usage.requests,
            "prompt tokens": usage.prompt_tokens,
            "answered tokens": usage.completion_tokens,
            "seconds a pair": _two(seconds / len(these)),
        }


main()
