"""An endpoint that fails in every way: no sample is lost, and no value is wrong."""

from __future__ import annotations

import random

import pytest
from openai_server import FAULTS

from ctxeval import ContextPrecision, ContextRecall, Sample
from ctxeval.judges.cells import MemoryCache
from ctxeval.scoring import score_all
from ctxeval.testing import ScriptedLLM

TRANSPORT = ("late", "429", "429-retry-after", "500", "503-html", "cut-body", "reset")
HARMLESS = (*TRANSPORT, "bad-http-json", "fenced", "prose", "think", "two-objects")
"""What must cost no verdict: it is tried again, or can be read."""


def drawn(number):
    """Draw what is true of a sample: which chunks are useful, and which support which claim."""
    draw = random.Random(number)
    useful = [draw.random() < 0.4 for _ in range(10)]
    support = [draw.choice([None, *range(10)]) for _ in range(1 + number % 4)]
    return useful, support


SCRIPT = {number: drawn(number) for number in range(100)}
SAMPLES = [
    Sample(
        user_input=f"Question {n}?",
        reference=" ".join(f"Claim {c} of {n}." for c in range(len(SCRIPT[n][1]))),
        retrieved_contexts=[f"Chunk {k} of {n}" for k in range(10)],
    )
    for n in range(100)
]


def script():
    """Make a model that tells the truth as it was drawn."""

    def relevant(question, chunk):
        _, k, _, n = chunk.split()
        return SCRIPT[int(n)][0][int(k)]

    def supported(claim, texts):
        _, c, _, n = claim.strip(".").split()
        chunk = f"Chunk {SCRIPT[int(n)][1][int(c)]} of {n}"
        return [index for index, text in enumerate(texts) if text == chunk]

    return ScriptedLLM(relevant, supported)


def true_precision(number):
    """Average precision, spelt out."""
    useful = SCRIPT[number][0]
    found, total = 0, 0.0
    for rank, is_useful in enumerate(useful, start=1):
        if is_useful:
            found += 1
            total += found / rank
    return total / found if found else 0.0


def true_recall(number):
    """The share of claims that some chunk supports."""
    support = SCRIPT[number][1]
    return sum(chunk is not None for chunk in support) / len(support)


def judge(llm, samples):
    cache = MemoryCache()
    metrics = [ContextPrecision(llm, cache=cache), ContextRecall(llm, cache=cache)]
    return score_all(samples, metrics)


def check(results, samples):
    """See that none is lost or wrong, and count those that were scored."""
    assert len(results) == len(samples)
    scored = 0
    for sample, result in zip(samples, results, strict=True):
        number = SAMPLES.index(sample)
        truth = {
            "context_precision": true_precision(number),
            "context_recall": true_recall(number),
        }
        assert result.keys() == truth.keys()
        for name, one in result.items():
            if one.status == "scored":
                scored += 1
                assert one.value == pytest.approx(truth[name]), (number, name)
                continue
            assert (one.value, one.status) == (None, "failed")
            assert one.reason
            if one.bounds is not None:
                low, high = one.bounds
                assert low - 1e-9 <= truth[name] <= high + 1e-9, (number, name)
    return scored


def test_without_faults_everything_is_scored(serve, connect):
    results = judge(connect(serve(script())), SAMPLES)
    assert check(results, SAMPLES) == 200


@pytest.mark.parametrize("seed", range(2))
def test_a_tenth_of_all_replies_is_faulty(serve, connect, seed):
    server = serve(script(), faults=dict.fromkeys(FAULTS, 0.1 / len(FAULTS)), seed=seed)
    results = judge(connect(server), SAMPLES)
    assert check(results, SAMPLES) >= 180
    assert len(server.faulty) >= 5, "of many kinds"


def test_most_replies_are_faulty(serve, connect):
    server = serve(script(), faults=dict.fromkeys(FAULTS, 0.6 / len(FAULTS)))
    results = judge(connect(server), SAMPLES)
    assert 0 < check(results, SAMPLES) < 200
    assert {*server.faulty} == {*FAULTS}


@pytest.mark.parametrize("kind", FAULTS)
def test_each_kind_of_fault(serve, connect, kind):
    samples = SAMPLES[:20]
    server = serve(script(), faults={kind: 0.5}, max_faults_per_body=1, seed=1)
    scored = check(judge(connect(server), samples), samples)
    assert server.faulty[kind] >= 5
    assert scored == 40 if kind in HARMLESS else scored >= 10


@pytest.mark.parametrize("kind", FAULTS)
def test_nothing_but_one_fault(serve, connect, kind):
    samples = SAMPLES[4:8]
    server = serve(script(), faults={kind: 1.0})
    scored = check(judge(connect(server, max_retries=2), samples), samples)
    readable = kind in ("late", "fenced", "prose", "think", "two-objects")
    assert scored == 8 if readable else scored < 8
    assert server.requests < 400, "it ends"
