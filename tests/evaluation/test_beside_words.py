"""Verdicts that have nothing to do with shared words are pointed out, others are not."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest

pytest.importorskip("scipy")

from ctxeval import ContextRecall, ContextRelevance, LLMJudge, evaluate
from ctxeval.evaluation.beside_words import MOST, BesideWords, _area
from ctxeval.judges.cells import MemoryCache
from ctxeval.testing import ScriptedLLM


def samples(n, shared=0.8, seed=1):
    """Good chunks share words with the question as often as said, bad ones in the rest."""
    rng = random.Random(seed)

    def chunk(number, good):
        shares = rng.random() < (shared if good else 1 - shared)
        return f"{'rates of tax' if shares else 'quite other'} {'good' if good else 'bad'} {number}"

    return [
        {
            "user_input": "What are the rates of tax?",
            "retrieved_contexts": [chunk(5 * q + k, rng.random() < 0.4) for k in range(5)],
        }
        for q in range(n)
    ]


def run(relevant, n=100, **options):
    judge = LLMJudge(ScriptedLLM(relevant=relevant), cache=MemoryCache())
    return evaluate(samples(n, **options), ContextRelevance(judge))


def odd(evaluation):
    words = BesideWords()
    for row in evaluation.rows:
        words.add(row)
    return words.odd()


def right(question, chunk):
    return "good" in chunk


def test_a_judge_that_is_right_is_not_odd():
    assert odd(run(right)) == ()


def test_a_judge_that_says_the_contrary_is_odd():
    (said,) = odd(run(lambda question, chunk: "bad" in chunk))
    assert said.startswith("context_relevance: what the judge says yes to shares no more words")
    assert "(AUC 0.19, over 500 verdicts)" in said


def test_a_judge_by_chance_is_odd_and_chunks_that_are_alike_are_not():
    # By chance the area is 0.50, give or take 0.02 with a thousand verdicts.
    def by_chance(n):
        return lambda question, chunk: random.Random(f"{chunk}{n}").random() < 0.5

    assert sum(bool(odd(run(by_chance(n), n=200))) for n in range(4)) >= 2
    assert not any(odd(run(right, n=200, shared=0.6, seed=n)) for n in range(4))


def test_few_verdicts_say_nothing():
    assert odd(run(lambda question, chunk: "bad" in chunk, n=8)) == ()
    assert odd(run(lambda question, chunk: False)) == ()


def test_of_many_some_are_drawn_from_all():
    words = BesideWords()
    for row in run(right, n=400).rows:
        words.add(row)
    (drawn,) = words._drawn.values()
    assert len(drawn) == MOST
    late = sum(int(passage.split()[-1]) >= 1000 for _, passage, _ in drawn)
    assert 0.4 < late / MOST < 0.6


def test_claims_are_held_against_all_chunks():
    llm = ScriptedLLM(supported=lambda claim, chunks: [0] if "moon" in claim else [])
    given = [
        {
            "user_input": "q",
            "retrieved_contexts": [f"Rates {n}", "of tax"],
            "reference_claims": ["rates of tax", "the moon"],
        }
        for n in range(60)
    ]
    (said,) = odd(evaluate(given, ContextRecall(LLMJudge(llm, cache=MemoryCache()))))
    assert said.startswith("context_recall: ")
    assert "(AUC 0.00" in said


def test_metrics_without_a_model_are_left_alone():
    ids = {"retrieved_context_ids": [1, 2], "reference_context_ids": [1]}
    assert odd(evaluate([ids] * 100, "ndcg@10")) == ()


def test_the_area_is_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(2)
    for _ in range(20):
        scores, yes = rng.integers(0, 6, 60) / 5, rng.random(60) < 0.4
        area, error = _area(scores[yes], scores[~yes])
        assert area == pytest.approx(metrics.roc_auc_score(yes, scores))
        assert 0 < error < 0.2


def test_reports_show_it(tmp_path):
    for needed in ("rich", "jinja2", "matplotlib"):
        pytest.importorskip(needed)
    from rich.console import Console

    from ctxeval.evaluation.reporting import report_of
    from ctxeval.report.terminal import show_report

    evaluation = run(lambda question, chunk: "bad" in chunk)
    console = Console(width=160, record=True, file=io.StringIO())
    show_report(report_of(evaluation), console)
    assert "shares no more words with what it was judged for" in console.export_text()
    page = evaluation.report(tmp_path / "report.html").read_text()
    assert page.count("shares no more words with what it was judged for") == 1
