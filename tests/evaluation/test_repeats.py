"""A judge that wavers: how often is told, and the interval includes it."""

from __future__ import annotations

import io
import itertools
import random

import numpy as np
import pytest

pytest.importorskip("scipy")

from ctxeval import (
    ContextPrecision,
    ContextRecall,
    ContextRelevance,
    Evaluation,
    LLMJudge,
    MetricResult,
    Row,
    Sample,
    evaluate,
)
from ctxeval.judges.cells import MemoryCache
from ctxeval.testing import ScriptedLLM
from ctxeval.verdicts import Verdict, Verdicts


def row(number, *votes):
    verdicts = Verdicts([Verdict(sum(map(bool, cast)) > 1, votes=cast) for cast in votes])
    value = sum(verdicts.relevant()) / len(votes)
    return Row(str(number), Sample(id=str(number)), {"m": MetricResult(value, verdicts=verdicts)})


def test_flips_by_hand():
    yes, no, unread = True, False, None
    rows = [row(0, (yes, yes, no), (yes, yes, yes)), row(1, (no, no, unread), (no, yes, unread))]
    (found,) = Evaluation(rows).summary()
    assert found.flips == 2 / 4
    assert found.to_dict()["flips"] == 0.5


def test_what_is_asked_once_has_none():
    (found,) = Evaluation([row(0, (), ()), row(1, ())]).summary()
    assert found.flips is None
    ids = {"retrieved_context_ids": [1, 2], "reference_context_ids": [1]}
    assert evaluate([ids, ids], "ndcg@10").summary()[0].flips is None


def test_each_metric_counts_the_verdicts_that_decide_it():
    """Chunks waver, the claim does not; one judge's verdicts hold both."""
    answers = itertools.cycle([True, False])
    judge = LLMJudge(ScriptedLLM(lambda q, c: next(answers)), repeats=3, cache=MemoryCache())
    sample = {"user_input": "q", "reference": "R.", "retrieved_contexts": ["x"]}
    run = evaluate([sample], [ContextPrecision(judge), ContextRecall(judge)])
    assert [(one.metric, one.flips) for one in run.summary()] == [
        ("context_precision", 1.0),
        ("context_recall", 0.0),
    ]


def test_a_wavering_judge_in_terminal_and_file(tmp_path):
    pytest.importorskip("rich")
    from rich.console import Console

    from ctxeval.evaluation.reporting import scores_of
    from ctxeval.report.terminal import show_scores

    rng = random.Random(0)
    llm = ScriptedLLM(relevant=lambda q, c: rng.random() < 0.5 if c == "unsure" else c == "yes")
    judge = LLMJudge(llm, repeats=3, cache=MemoryCache())
    samples = [
        {"user_input": f"q{n}", "retrieved_contexts": ["yes", "unsure", "no"]} for n in range(40)
    ]
    run = evaluate(samples, ContextRelevance(judge))
    (found,) = run.summary()
    assert 0.15 < found.flips < 0.35  # of a third of the verdicts three quarters
    assert Evaluation.load(run.save(tmp_path / "r.jsonl")).summary()[0].flips == found.flips
    console = Console(width=120, record=True, file=io.StringIO())
    show_scores(scores_of(run), console)
    shown = console.export_text()
    assert f"{100 * found.flips:.0f} % of its verdicts flip between repeats" in shown


@pytest.mark.slow
def test_the_interval_includes_what_repeats_change():
    """All questions are alike, and only the judge wavers: all of the width is its noise."""
    rng = np.random.default_rng(8)
    majority = 3 * 0.3**2 * 0.7 + 0.3**3  # of three votes that are a yes with 0.3 each
    covered = 0
    for _ in range(400):
        votes = rng.random((60, 3, 3)) < 0.3
        rows = [row(n, *(tuple(map(bool, cast)) for cast in of)) for n, of in enumerate(votes)]
        (found,) = Evaluation(rows).summary()
        covered += found.interval.low <= majority <= found.interval.high
    assert covered / 400 >= 0.93
