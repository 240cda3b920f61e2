"""Compare wordings, modes and baselines on the labelled set, and print the tables of JUDGES.md.

`python -m benchmarks.judges NAME=URL… --answers FOLDER`, with an OpenAI-compatible endpoint
for each model. What was answered is kept in the folder: a run that ends early goes on.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import openai

import ctxeval
from benchmarks.judges import by_json
from benchmarks.judges.asking import Answers
from benchmarks.judges.cases import Case, cases
from benchmarks.judges.embedding import sentence_model
from benchmarks.judges.rows import Told, row
from benchmarks.measuring import markdown
from ctxeval.calibration.baselines import baseline_scores
from ctxeval.judges.embedding import EmbeddingSimilarity

PURPOSES = ("question", "reference", "response", "support")


def main() -> None:
    given = argparse.ArgumentParser(prog="python -m benchmarks.judges", description=__doc__)
    given.add_argument("models", nargs="*", metavar="NAME=URL")
    given.add_argument("--answers", type=Path, required=True, metavar="FOLDER")
    given.add_argument("--embed", type=Path, metavar="FOLDER", help="model.onnx, tokenizer.json")
    given.add_argument("--json", nargs="*", default=[], choices=("joint", "pointwise"), help="too")
    given.add_argument("--split", action="store_true", help="split texts into claims, too")
    given.add_argument("--slots", type=int, default=1, metavar="N", help="calls at once")
    options = given.parse_args()
    every = cases()
    print(f"### Baselines\n\n{markdown(list(_baselines(every, options.embed)))}\n")
    for named in options.models:
        name, _, url = named.partition("=")
        llm = _model(name, url, options.slots)
        told = asyncio.run(Answers(name, options.answers).ask(llm, every))
        print(f"### {name}, by probability\n\n{markdown(_rows(told))}\n", flush=True)
        print(f"By language of the question:\n\n{markdown(list(_by_language(told)))}\n", flush=True)
        if options.json:
            judged = list(by_json.judged(llm, every, options.json, options.answers))
            print(f"### {name}, by JSON\n\n{markdown(judged)}\n", flush=True)
        if options.split:
            claims = list(by_json.split(llm, options.answers))
            print(f"### {name}, splitting\n\n{markdown(claims)}\n", flush=True)


def _model(name: str, url: str, slots: int) -> Any:
    client = openai.AsyncOpenAI(base_url=url, api_key="none", timeout=900)
    return ctxeval.llm_factory(name, client=client, base_url=url, concurrency=slots)


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


main()
