"""Metrics by text beside other ways to them: `python -m benchmarks texts_peers`.

In the environment of `benchmarks/peers.txt`; a library that is missing there is left out.
Each sample has 10 chunks of about 600 characters and 3 references: of the chunks a fifth
equal a reference, a quarter are a window that is shifted, three in twenty have some words
exchanged, the rest is of other texts. All have to come to the same verdicts.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from benchmarks.alone import alone, answer, measured
from benchmarks.measuring import side_by_side

CHUNKS, REFERENCES, THRESHOLD = 10, 3, 0.5
Sample = tuple[list[str], list[str]]
Verdicts = tuple[list[bool], list[bool]]
Made = dict[str, Any]


def _words(randomly: random.Random) -> list[str]:
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    weights = [1 / place for place in range(1, len(letters) + 1)]
    return [
        "".join(randomly.choices(letters, weights, k=randomly.randint(2, 9))) for _ in "x" * 400
    ]


def samples(n: int) -> list[Sample]:
    """Make n samples."""
    randomly = random.Random(n)
    words = _words(randomly)
    often = [1 / (place + 2) for place in range(len(words))]
    articles = [" ".join(randomly.choices(words, often, k=1600)) for _ in range(100)]
    made = []
    for _ in range(n):
        article = randomly.choice(articles)
        places = [
            (1900 * k + randomly.randrange(1200), randomly.randint(500, 700)) for k in range(3)
        ]
        references = [article[begin : begin + length] for begin, length in places]
        chunks = []
        for _ in range(CHUNKS):
            lot, which = randomly.random(), randomly.randrange(REFERENCES)
            begin, _ = places[which]
            if lot < 0.2:
                chunks.append(references[which])
            elif lot < 0.45:
                begin = max(0, begin + randomly.choice((-1, 1)) * randomly.randint(60, 420))
                chunks.append(article[begin : begin + randomly.randint(500, 700)])
            elif lot < 0.6:
                share = randomly.uniform(0.05, 0.4)
                chunks.append(
                    " ".join(
                        randomly.choice(words) if randomly.random() < share else word
                        for word in references[which].split(" ")
                    )
                )
            else:
                begin = randomly.randrange(4000)
                chunks.append(randomly.choice(articles)[begin : begin + randomly.randint(500, 700)])
        made.append((chunks, references))
    return made


def _digest(values: list[float]) -> str:
    return sha256(repr(values).encode()).hexdigest()[:12]


def _values(verdicts: list[Verdicts]) -> list[float]:
    """Turn verdicts into precision and recall, as the metrics do."""
    from ctxeval.formulas.precision import average_precision
    from ctxeval.formulas.recall import recall

    return [
        value for chunks, units in verdicts for value in (average_precision(chunks), recall(units))
    ]


def score_table(n: int, threads: int) -> Made:
    import pyarrow as pa

    import ctxeval
    from ctxeval.evaluation.columns import texts

    texts.usable_processors = lambda: threads
    given = samples(n)
    table = pa.table(
        {
            "retrieved_contexts": [chunks for chunks, _ in given],
            "reference_contexts": [references for _, references in given],
        }
    )
    metrics = ["non_llm_context_precision_with_reference", "non_llm_context_recall"]
    made = measured(lambda: ctxeval.score_table(table, metrics), rounds=5)
    columns = [made["result"].column(name).to_pylist() for name in metrics]
    return {
        **made,
        "result": _digest([value for pair in zip(*columns, strict=True) for value in pair]),
    }


def batch_score(n: int) -> Made:
    """The same metrics, one sample after the other, with their verdicts."""
    import ctxeval

    given = [
        ctxeval.Sample(retrieved_contexts=chunks, reference_contexts=references)
        for chunks, references in samples(n)
    ]
    metrics = [ctxeval.NonLLMContextPrecision(), ctxeval.NonLLMContextRecall()]

    def run() -> list[float]:
        told = [ctxeval.score(sample, metrics) for sample in given]
        return [float(one) for results in told for one in results.values()]

    made = measured(run)
    return {**made, "result": _digest(made["result"])}


def _of_matrices(n: int, matrix: Callable[[list[str], list[str]], Any]) -> Made:
    given = samples(n)

    def run() -> list[Verdicts]:
        verdicts = []
        for chunks, references in given:
            similarities = matrix(chunks, references)
            rows = [max(row) >= THRESHOLD for row in similarities]
            columns = [max(column) >= THRESHOLD for column in zip(*similarities, strict=True)]
            verdicts.append((rows, columns))
        return verdicts

    made = measured(run)
    return {**made, "result": _digest(_values(made["result"]))}


def pair_loop(n: int) -> Made:
    from rapidfuzz.distance.Levenshtein import normalized_similarity

    return _of_matrices(
        n, lambda chunks, refs: [[normalized_similarity(c, r) for r in refs] for c in chunks]
    )


def pair_loop_with_cutoff(n: int) -> Made:
    from rapidfuzz.distance.Levenshtein import normalized_similarity

    return _of_matrices(
        n,
        lambda chunks, refs: [
            [normalized_similarity(c, r, score_cutoff=THRESHOLD) for r in refs] for c in chunks
        ],
    )


def cdist(n: int) -> Made:
    import numpy as np
    from rapidfuzz.distance.Levenshtein import normalized_similarity
    from rapidfuzz.process import cdist

    options: Any = {"scorer": normalized_similarity, "dtype": np.float64}
    return _of_matrices(
        n, lambda chunks, refs: cdist(chunks, refs, score_cutoff=THRESHOLD, **options).tolist()
    )


def ragas(n: int) -> Made:
    from ragas import SingleTurnSample
    from ragas.metrics import NonLLMContextPrecisionWithReference, NonLLMContextRecall

    metrics = (NonLLMContextPrecisionWithReference(), NonLLMContextRecall())
    given = [
        SingleTurnSample(retrieved_contexts=chunks, reference_contexts=references)
        for chunks, references in samples(n)
    ]

    async def run() -> list[float]:
        return [await metric.single_turn_ascore(one) for one in given for metric in metrics]

    made = measured(lambda: asyncio.run(run()), rounds=2)
    return {**made, "result": "not exact: it adds 1e-10"}


CONTESTANTS: dict[str, tuple[Callable[[int], Made], int]] = {
    "ctxeval.score_table, one thread": (lambda n: score_table(n, 1), 1000),
    "ctxeval.score_table, two threads": (lambda n: score_table(n, 2), 1000),
    "ctxeval.score, sample by sample": (batch_score, 1000),
    "rapidfuzz, a loop over pairs": (pair_loop, 1000),
    "rapidfuzz, the loop with cutoff": (pair_loop_with_cutoff, 1000),
    "rapidfuzz, cdist of each sample": (cdist, 1000),
    "ragas": (ragas, 200),
}


def main() -> None:
    rows: list[dict[str, Any]] = []
    mine: Made | None = None
    for name, (_, n) in CONTESTANTS.items():
        made = alone("benchmarks.texts_peers", name, n)
        if made is None:
            continue
        made["pairs"] = n * CHUNKS * REFERENCES
        mine = mine or made
        rows.append(
            {
                "by text": name,
                "samples": n,
                "pairs per CPU second": made["pairs"] / made["cpu"],
                "pairs per second": made["pairs"] / made["wall"],
                "ctxeval is faster": (mine["pairs"] / mine["cpu"]) / (made["pairs"] / made["cpu"]),
                "MB above the input": made["MB"],
                "values agree": "yes" if made["result"] == mine["result"] else made["result"],
            }
        )
    side_by_side("metrics by text", rows)


if __name__ == "__main__" and len(sys.argv) == 3:
    answer({name: call for name, (call, _) in CONTESTANTS.items()})
