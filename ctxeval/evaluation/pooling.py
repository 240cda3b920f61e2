"""What kept verdicts of several retrievals say together, without asking a model again.

A judge that sees only what was retrieved does not know what else there is. The chunks that
any of several retrievals brought, and that were judged relevant, are the best stand-in: the
pool, as TREC builds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike

from ctxeval.errors import InvalidArgumentError, near, short
from ctxeval.evaluation.evaluation import Evaluation
from ctxeval.evaluation.rows import Row
from ctxeval.formulas.ranking import ndcg
from ctxeval.formulas.recall import recall
from ctxeval.result import MetricResult
from ctxeval.verdicts import Verdict, Verdicts

UNJUDGED = "no run has a verdict on it"


@dataclass(slots=True)
class _Pool:
    """What is known of one question: its verdicts, by the chunk's text."""

    question: str | None
    verdicts: dict[str, Verdict] = field(default_factory=dict)


def pooled(
    runs: Iterable[Evaluation | str | PathLike[str]], metric: str, k: int = 10
) -> list[Evaluation]:
    """Score several retrievals of the same questions against what all of them found relevant.

    Nothing is judged anew. Samples are paired by id; a chunk is known by its text, and a
    repeated one is credited once. A chunk without a verdict counts as irrelevant, as in
    trec_eval: `judged@k` says how many of the first k have one, and a number whose `judged@k`
    is far below 1 is too low rather than exact.

    Args:
        runs: Evaluations, or the paths that they were saved to. One that was not scored by
            the metric adds nothing to the pool, and is scored against it all the same.
        metric: Whose verdicts on the chunks count, such as "context_precision".
        k: How many ranks count.

    Returns:
        An evaluation per run, in their order, with the metrics `ndcg@k[pooled]`,
        `recall@k[pooled]` and `judged@k`; to be summed up, compared and saved like any other.

    Raises:
        InvalidArgumentError: No run has the metric, it is judged by id or place, the runs'
            verdicts are by different judges, or one id stands for different questions.

    Source:
        Spärck Jones and van Rijsbergen, 1975 (pooling).
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InvalidArgumentError(f"k: {short(k)} is no number of ranks: give an integer >= 1")
    if isinstance(runs, (Evaluation, str, PathLike)):
        raise InvalidArgumentError(f"runs: {short(runs)} is one: give a list of them")
    given = [Evaluation.of(run) for run in runs]
    signature = _signature(given, metric)
    pools: dict[str, _Pool] = {}
    for run in given:
        _gather(run, metric, pools)
    return [Evaluation(_scored(run, pools, k, signature)) for run in given]


def _signature(runs: Sequence[Evaluation], metric: str) -> str:
    """Give the judges' common signature."""
    found = {one.signature: None for run in runs for one in run.summary() if one.metric == metric}
    if not found:
        known = {name for run in runs for name in run.metrics}
        hint = near(metric, known) if known else "give at least one run"
        raise InvalidArgumentError(f"metric: {metric!r} was not scored in any run: {hint}")
    if len(found) > 1 or " | " in next(iter(found)):
        raise InvalidArgumentError(
            f"runs: {metric} was judged in different ways, so that its verdicts don't go together: "
            + "; ".join(found)
        )
    return next(iter(found))


def _gather(run: Evaluation, metric: str, pools: dict[str, _Pool]) -> None:
    ids: set[str] = set()
    for row in run.rows:
        if row.id in ids:
            raise InvalidArgumentError(
                f"two samples have the id {row.id!r}: give each an id of its own to pool them"
            )
        ids.add(row.id)
        pool = pools.setdefault(row.id, _Pool(row.sample.user_input))
        if pool.question != row.sample.user_input:
            raise InvalidArgumentError(
                f"the id {row.id!r} stands for {short(pool.question)} in one run, and for "
                f"{short(row.sample.user_input)} in another: give the same question the same id"
            )
        result = row.results.get(metric)
        if result is None or result.verdicts is None:
            continue
        if result.verdicts.judge in ("id", "span"):
            raise InvalidArgumentError(
                f"metric: {metric!r} is judged by {result.verdicts.judge}, which knows all that is "
                "expected: it needs no pool"
            )
        for text, verdict in zip(
            row.sample.retrieved_contexts or (), result.verdicts.chunks, strict=False
        ):
            if verdict.value is not None:
                pool.verdicts.setdefault(text, verdict)


def _scored(run: Evaluation, pools: dict[str, _Pool], k: int, signature: str) -> Iterator[Row]:
    for row in run.rows:
        texts = row.sample.retrieved_contexts
        results = _results(texts, pools[row.id].verdicts, k)
        for name, result in results.items():
            result.metric, result.signature = name, f"{name}/1 of {signature}"
        yield Row(row.id, row.sample, results, row.stages)


def _results(
    texts: Sequence[str] | None, pool: dict[str, Verdict], k: int
) -> dict[str, MetricResult]:
    names = f"ndcg@{k}[pooled]", f"recall@{k}[pooled]", f"judged@{k}"
    if texts is None:
        why = "a pool needs retrieved_contexts, which the sample lacks"
        return {name: MetricResult(None, "skipped", why) for name in names}
    verdicts = Verdicts(
        [pool.get(text) or Verdict(None, text, UNJUDGED) for text in texts], judge="pool"
    )
    first = texts[:k]
    known = sum(text in pool for text in first)
    note = "" if known == len(first) else f"{known} of the first {len(first)} chunks are judged"
    relevant = [text for text, verdict in pool.items() if verdict.value]
    if relevant:
        hits = [int(text in relevant and text not in texts[:n]) for n, text in enumerate(texts)]
        values = (
            ndcg(hits, k, expected=[1] * len(relevant)),
            recall([text in first for text in relevant]),
        )
        results = [MetricResult(value, "scored", note, verdicts) for value in values]
    else:
        why = "no chunk of the pool is relevant"
        results = [MetricResult(None, "undefined", why, verdicts) for _ in range(2)]
    judged = (
        MetricResult(known / len(first), "scored", note, verdicts)
        if first
        else MetricResult(None, "undefined", "nothing was retrieved")
    )
    return dict(zip(names, (*results, judged), strict=True))
