"""A model's verdicts beside shared words, where nobody has labelled anything.

Which chunks a judge calls relevant should have something to do with the words that they share
with what was asked. Where it has not, the judge may still be right, but somebody should look.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from math import sqrt

import numpy as np

from ctxeval.calibration.baselines import word_overlap
from ctxeval.calibration.calibration import Z
from ctxeval.evaluation.rows import Row
from ctxeval.result import MetricResult
from ctxeval.sample import Sample

MOST = 1000
"""So many verdicts of each metric are looked at, drawn from all."""

FEWEST = 30
"""Of fewer yeses or noes nothing is said."""

UNRELATED = 0.55
"""Verdicts that no label stands behind are odd where it is sure that they are related to shared
words less than this: with chunks that all look alike, right verdicts reach 0.55 to 0.65."""

SEED = 20240229

_CHUNKS_FOR = {
    "context_relevance": "user_input",
    "context_precision": "reference",
    "context_utilization": "response",
}

Pair = tuple[str, str, bool]


class BesideWords:
    """Takes rows, and says of which metrics the verdicts have nothing to do with shared words."""

    def __init__(self) -> None:
        """See the class."""
        self._drawn: dict[str, list[Pair]] = {}
        self._seen: dict[str, int] = {}
        self._random = random.Random(SEED)

    def add(self, row: Row) -> None:
        """Take a row's verdicts by a model, as far as they are drawn."""
        for name, result in row.results.items():
            for pair in _pairs(name, result, row.sample):
                drawn = self._drawn.setdefault(name, [])
                seen = self._seen[name] = self._seen.get(name, 0) + 1
                if len(drawn) < MOST:
                    drawn.append(pair)
                elif (place := self._random.randrange(seen)) < MOST:
                    drawn[place] = pair

    def odd(self) -> tuple[str, ...]:
        """Say what is odd, a line for each metric that is."""
        told = []
        for name, pairs in self._drawn.items():
            scores = np.array([word_overlap(query, passage) for query, passage, _ in pairs])
            yes = np.array([value for _, _, value in pairs])
            if min(yes.sum(), (~yes).sum()) < FEWEST:
                continue
            area, error = _area(scores[yes], scores[~yes])
            if area + Z * error < UNRELATED:
                told.append(
                    f"{name}: what the judge says yes to shares no more words with what it was "
                    f"judged for than the rest (AUC {area:.2f}, over {len(pairs)} verdicts): read "
                    "some, or check the judge on labels"
                )
        return tuple(told)


def _pairs(name: str, result: MetricResult, sample: Sample) -> Iterator[Pair]:
    verdicts = result.verdicts
    if verdicts is None or not verdicts.judge.startswith("llm("):
        return
    chunks: Sequence[str] = sample.retrieved_contexts or ()
    if name == "context_recall":
        passage = "\n".join(chunks)
        for unit in verdicts.units:
            if unit.value is not None:
                yield unit.text, passage, unit.value
    elif name in _CHUNKS_FOR:
        query = getattr(sample, _CHUNKS_FOR[name]) or ""
        for chunk in verdicts.chunks:
            if chunk.value is not None and chunk.text.strip():
                yield query, chunk.text, chunk.value


def _area(yes: np.ndarray, no: np.ndarray) -> tuple[float, float]:
    """Give the area under the ROC curve, a tie counting half, and its standard error.

    Source:
        Hanley and McNeil, 1982.
    """
    ordered = np.sort(no)
    below = np.searchsorted(ordered, yes, side="left")
    equal = np.searchsorted(ordered, yes, side="right") - below
    m, n = len(yes), len(no)
    area = float((below + equal / 2).sum()) / (m * n)
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (m - 1) * (one - area**2) + (n - 1) * (two - area**2)
    return area, sqrt(max(0.0, spread) / (m * n))
