"""Metrics by text, beside the very rapidfuzz calls that decide their verdicts."""

from __future__ import annotations

import random

from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import extract_iter

import ctxeval
from benchmarks.measuring import cpu_per_call, report

CHUNKS, REFERENCES, LETTERS = 10, 3, 600


def _text(words: list[str], randomly: random.Random) -> str:
    text = ""
    while len(text) < LETTERS:
        text += randomly.choice(words) + " "
    return text[:LETTERS]


def _samples(n: int) -> list[ctxeval.Sample]:
    """Make samples in which a tenth of the chunks equal or resemble a reference context."""
    randomly = random.Random(1)
    words = [
        "".join(randomly.choices("etaoinshrdlu", k=randomly.randint(2, 9))) for _ in range(800)
    ]
    samples = []
    for _ in range(n):
        references = [_text(words, randomly) for _ in range(REFERENCES)]
        chunks = [_text(words, randomly) for _ in range(CHUNKS)]
        if randomly.random() < 0.5:
            chunks[randomly.randrange(CHUNKS)] = references[0]
        near = list(references[1])
        for _ in range(LETTERS // 5):
            near[randomly.randrange(LETTERS)] = "x"
        chunks[randomly.randrange(CHUNKS)] = "".join(near)
        samples.append(ctxeval.Sample(retrieved_contexts=chunks, reference_contexts=references))
    return samples


def _extract(reference: str, chunks: list[str]) -> list[int]:
    found = extract_iter(
        reference,
        chunks,
        scorer=Levenshtein.normalized_similarity,
        processor=None,
        score_cutoff=0.5,
    )
    return [index for _, _, index in found]


def _precision_calls(sample: ctxeval.Sample) -> list[bool]:
    """Make the calls that decide precision: equal texts first, decided chunks not again."""
    chunks, references = sample.retrieved_contexts or (), sample.reference_contexts or ()
    wanted = set(references)
    relevant = [chunk in wanted for chunk in chunks]
    for reference in references:
        pending = [rank for rank, decided in enumerate(relevant) if not decided]
        for index in _extract(reference, [chunks[rank] for rank in pending]):
            relevant[pending[index]] = True
    return relevant


def _recall_calls(sample: ctxeval.Sample) -> list[bool]:
    """Make the calls that decide recall: equal texts first, up to the first match."""
    chunks, references = sample.retrieved_contexts or (), sample.reference_contexts or ()
    there = set(chunks)
    covered = []
    for reference in references:
        if reference in there:
            covered.append(True)
            continue
        found = extract_iter(
            reference,
            chunks,
            scorer=Levenshtein.normalized_similarity,
            processor=None,
            score_cutoff=0.5,
        )
        covered.append(next(found, None) is not None)
    return covered


def main() -> None:
    samples = _samples(100)
    for name, metric, calls in (
        ("precision", ctxeval.NonLLMContextPrecision(), _precision_calls),
        ("recall", ctxeval.NonLLMContextRecall(), _recall_calls),
    ):
        for sample in samples:
            result = metric.score(sample)
            assert result.verdicts is not None
            assert metric.answers(result.verdicts) == calls(sample)
        ours = cpu_per_call(lambda metric=metric: [metric.score(s) for s in samples], 1)  # type: ignore[misc]
        bare = cpu_per_call(lambda calls=calls: [calls(s) for s in samples], 1)  # type: ignore[misc]
        report(f"{name} by text, 10 × 3 texts of 600 letters", 1e4 * ours, "µs a sample")
        report(f"{name} by text / the bare rapidfuzz calls", ours / bare, "×", limit=1.3)
