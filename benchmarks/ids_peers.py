"""Six metrics by id of many queries, beside other libraries: `python -m benchmarks ids_peers`.

In the environment of `benchmarks/peers.txt`; a library that is missing there is left out.
Each query retrieves 10 of 13 ids and expects 3. Peers get their own objects ready-made:
dicts for trec_eval's, `Qrels` and `Run` for ranx, lists for the rest.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable
from math import log2
from typing import Any

from benchmarks.alone import alone, answer, measured
from benchmarks.measuring import side_by_side

RETRIEVED, EXPECTED = 10, 3
METRICS = (
    "precision@10",
    "recall@10",
    "hit_rate@10",
    "reciprocal_rank",
    "ndcg@10",
    "average_precision@10",
)
Lists = list[list[str]]
Made = dict[str, Any]


def queries(n: int) -> tuple[Lists, Lists]:
    """Make what n queries retrieve and expect: of three in five ids that are expected."""
    randomly = random.Random(n)
    retrieved, expected = [], []
    for _ in range(n):
        begin = randomly.randrange(900_000)
        names = [f"doc_{begin + 7 * k}" for k in range(RETRIEVED + EXPECTED)]
        found, missed = names[:RETRIEVED], names[RETRIEVED:]
        randomly.shuffle(found)
        retrieved.append(found)
        picked = randomly.sample(found, EXPECTED)
        expected.append(
            [
                one if randomly.random() < 0.6 else other
                for one, other in zip(picked, missed, strict=True)
            ]
        )
    return retrieved, expected


def score_table(n: int) -> Made:
    import pyarrow as pa

    import ctxeval

    retrieved, expected = queries(n)
    lists = pa.list_(pa.string())
    table = pa.table(
        {
            "retrieved_context_ids": pa.array(retrieved, lists),
            "reference_context_ids": pa.array(expected, lists),
        }
    )
    del retrieved, expected
    made = measured(lambda: ctxeval.score_table(table, METRICS), rounds=7)
    columns = [made["result"].column(name).to_numpy() for name in METRICS]
    return {**made, "result": [float(column.mean()) for column in columns]}


DISCOUNTS = [1 / log2(rank + 2) for rank in range(RETRIEVED)]
BEST = [sum(DISCOUNTS[:units]) for units in range(RETRIEVED + 1)]


def set_loop(n: int) -> Made:
    """A loop in plain Python, as quick as it gets: what somebody would write by hand."""
    retrieved, expected = queries(n)

    def loop() -> list[list[float]]:
        columns: list[list[float]] = [[] for _ in METRICS]
        precision, recall, hit, reciprocal, ndcg, average = (one.append for one in columns)
        for names, wanted in zip(retrieved, map(set, expected), strict=True):
            hits = 0
            first = gain = total = 0.0
            for rank, name in enumerate(names):
                if name in wanted:
                    hits += 1
                    gain += DISCOUNTS[rank]
                    total += hits / (rank + 1)
                    first = first or 1 / (rank + 1)
            precision(hits / RETRIEVED)
            recall(hits / len(wanted))
            hit(1.0 if hits else 0.0)
            reciprocal(first)
            ndcg(gain / BEST[min(len(wanted), RETRIEVED)])
            average(total / len(wanted))
        return columns

    made = measured(loop)
    return {**made, "result": [sum(column) / n for column in made["result"]]}


def polars_sets(n: int) -> Made:
    """Two metrics only, which is what expressions on lists can say."""
    import polars as pl

    retrieved, expected = queries(n)
    frame = pl.DataFrame({"retrieved": retrieved, "expected": expected})
    hits = pl.col("retrieved").list.set_intersection("expected").list.len().cast(pl.Float64)
    lengths = {name: pl.col(name).list.n_unique() for name in ("retrieved", "expected")}
    made = measured(
        lambda: frame.select(p=hits / lengths["retrieved"], r=hits / lengths["expected"])
    )
    return {**made, "metrics": 2, "result": [made["result"][name].mean() for name in "pr"]}


def _dicts(n: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    retrieved, expected = queries(n)
    wanted = {f"q{q}": dict.fromkeys(names, 1) for q, names in enumerate(expected)}
    found = {
        f"q{q}": {name: float(RETRIEVED - rank) for rank, name in enumerate(names)}
        for q, names in enumerate(retrieved)
    }
    return wanted, found


def pytrec_eval(n: int) -> Made:
    import pytrec_eval

    wanted, found = _dicts(n)
    names = ("P_10", "recall_10", "success_10", "recip_rank", "ndcg_cut_10", "map_cut_10")
    asked = {"P.10", "recall.10", "success.10", "recip_rank", "ndcg_cut.10", "map_cut.10"}
    made = measured(lambda: pytrec_eval.RelevanceEvaluator(wanted, asked).evaluate(found))
    told = made["result"].values()
    return {**made, "result": [sum(one[name] for one in told) / n for name in names]}


def ir_measures(n: int) -> Made:
    import ir_measures
    from ir_measures import AP, RR, P, R, Success, nDCG

    wanted, found = _dicts(n)
    asked = [P @ 10, R @ 10, Success @ 10, RR, nDCG @ 10, AP @ 10]
    made = measured(lambda: ir_measures.calc_aggregate(asked, wanted, found))
    return {**made, "result": [made["result"][one] for one in asked]}


def _ranx(n: int) -> tuple[Any, Any, Callable[[], Any]]:
    import ranx

    wanted, found = _dicts(n)
    names = ["precision@10", "recall@10", "hit_rate@10", "mrr@10", "ndcg@10", "map@10"]
    small = _dicts(8)
    ranx.evaluate(ranx.Qrels(small[0]), ranx.Run(small[1]), names)  # compiles
    return (
        ranx,
        names,
        lambda: (ranx.Qrels(wanted), ranx.Run(found)),
    )


def ranx(n: int) -> Made:
    library, names, build = _ranx(n)
    built = build()
    made = measured(lambda: library.evaluate(*built, names))
    return {**made, "result": [float(made["result"][name]) for name in names]}


def ranx_with_building(n: int) -> Made:
    library, names, build = _ranx(n)
    made = measured(lambda: library.evaluate(*build(), names), rounds=2)
    return {**made, "result": [float(made["result"][name]) for name in names]}


def llama_index(n: int) -> Made:
    from llama_index.core.evaluation import resolve_metrics

    retrieved, expected = queries(n)
    asked = ("precision", "recall", "hit_rate", "mrr", "ndcg", "ap")
    metrics = [metric() for metric in resolve_metrics(list(asked))]

    def run() -> list[float]:
        sums = [0.0] * len(metrics)
        for names, wanted in zip(retrieved, expected, strict=True):
            for place, metric in enumerate(metrics):
                told = metric.compute(expected_ids=wanted, retrieved_ids=names)
                sums[place] += told.score
        return [one / n for one in sums]

    return measured(run)


def ragas(n: int) -> Made:
    """Two metrics, which is what it has."""
    from ragas import SingleTurnSample
    from ragas.metrics import IDBasedContextPrecision, IDBasedContextRecall

    retrieved, expected = queries(n)
    samples = [
        SingleTurnSample(retrieved_context_ids=names, reference_context_ids=wanted)
        for names, wanted in zip(retrieved, expected, strict=True)
    ]
    metrics = (IDBasedContextPrecision(), IDBasedContextRecall())

    async def run() -> list[float]:
        sums = [0.0, 0.0]
        for sample in samples:
            for place, metric in enumerate(metrics):
                sums[place] += await metric.single_turn_ascore(sample)
        return [one / n for one in sums]

    return {**measured(lambda: asyncio.run(run()), rounds=2), "metrics": 2}


CONTESTANTS: dict[str, tuple[Callable[[int], Made], tuple[int, ...]]] = {
    "ctxeval.score_table": (score_table, (10_000, 100_000, 1_000_000)),
    "a loop over sets": (set_loop, (10_000, 100_000, 1_000_000)),
    "polars, sets of lists": (polars_sets, (100_000,)),
    "pytrec_eval": (pytrec_eval, (10_000, 100_000)),
    "ir-measures": (ir_measures, (10_000, 100_000)),
    "ranx": (ranx, (10_000, 100_000)),
    "ranx, its objects built": (ranx_with_building, (10_000,)),
    "llama-index": (llama_index, (10_000, 100_000)),
    "ragas": (ragas, (10_000, 100_000)),
}


def main() -> None:
    rows: list[dict[str, Any]] = []
    ours: dict[int, dict[str, Any]] = {}
    for name, (_, sizes) in CONTESTANTS.items():
        for n in sizes:
            made = alone("benchmarks.ids_peers", name, n)
            if made is None:
                break
            mine = ours.setdefault(n, made)
            agreed = all(
                abs(one - other) < 1e-6
                for one, other in zip(made["result"], mine["result"], strict=False)
            )
            rows.append(
                {
                    "by id": name,
                    "queries": n,
                    "metrics": made.get("metrics", len(METRICS)),
                    "queries per CPU second": n / made["cpu"],
                    "ctxeval is faster": made["cpu"] / mine["cpu"],
                    "MB above the input": made["MB"],
                    "means agree": "yes" if agreed else f"NO: {made['result']}",
                }
            )
    side_by_side("metrics by id", rows)


if __name__ == "__main__" and len(sys.argv) == 3:
    answer({name: call for name, (call, _) in CONTESTANTS.items()})
