"""What costs next to nothing, beside the judge: a judge that does no better is not worth it.

Two baselines: the share of the query's words that stand in the passage, and, where an embedding
is at hand, how similar the passage's best sentence is. Their thresholds are fitted to the same
labels as the judge's, and like it they are counted on labels that were held out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import sqrt
from unicodedata import category, normalize

import numpy as np

from ctxeval.calibration.agreement import Judged, confusion_of, decided
from ctxeval.calibration.beside import Beside
from ctxeval.calibration.calibration import Z, balanced_accuracy_interval
from ctxeval.calibration.labels import Pair

Similarity = Callable[[str, str], float]

_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+)"
)
"""Scripts whose words no blank parts: Thai, Lao, Tibetan, Burmese, Khmer, Japanese, Chinese."""

_ASCII_WORDS = re.compile("[a-z0-9]+")
_END = re.compile(r"([.!?…؟۔।॥።။]+[\"'”’»)\]]*)\s+|([。！？]+[」』”’]*)")


def word_overlap(query: str, passage: str) -> float:
    """Give the share of the query's distinct words that stand in the passage.

    Case and compatibility forms aside. Where a script parts no words by blanks, pairs of
    neighbouring characters stand in for words.

    Returns:
        A number in [0, 1]; 0 where the query has no words.

    Examples:
        >>> word_overlap("Where is Rome?", "ROME is old.")
        0.6666666666666666
        >>> word_overlap("罗马在哪里", "罗马在意大利")  # 罗马 and 马在, but not 在哪 and 哪里
        0.5
    """
    wanted = _words(query)
    return len(wanted & _words(passage)) / len(wanted) if wanted else 0.0


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    if text.isascii():  # most are, and it is ten times as quick
        return frozenset(_ASCII_WORDS.findall(text.casefold()))
    plain = normalize("NFKC", text).casefold()
    spaced = "".join(char if category(char)[0] in "LNM" else " " for char in plain)
    found: set[str] = set()
    for word in spaced.split():
        for part in _UNSPACED.split(word):
            if _UNSPACED.match(part) and len(part) > 1:
                found.update(part[n : n + 2] for n in range(len(part) - 1))
            elif part:
                found.add(part)
    return frozenset(found)


def sentences(text: str) -> list[str]:
    r"""Part a text at the ends of sentences and lines.

    Examples:
        >>> sentences("One. Two?\nThree")
        ['One.', 'Two?', 'Three']
    """
    parts = _END.sub(r"\1\2\n", text).split("\n")
    return [part.strip() for part in parts if part.strip()]


def best_sentence(similarity: Similarity, query: str, passage: str) -> float:
    """Say how similar to the query the passage's most similar sentence is."""
    return max((similarity(query, one) for one in sentences(passage)), default=0.0)


def baseline_scores(
    pairs: Sequence[Pair], similarity: Similarity | None = None
) -> dict[str, list[float]]:
    """Score pairs by each baseline.

    Args:
        pairs: The pairs.
        similarity: A similarity of two texts in [0, 1], such as `EmbeddingSimilarity(embed)`;
            one with `prepare` is given all texts at once before.

    Returns:
        By the baseline's name, a score in [0, 1] per pair.
    """
    passages = ["\n".join(pair.chunks) for pair in pairs]
    both = [(pair.query, passage) for pair, passage in zip(pairs, passages, strict=True)]
    scores = {"word overlap": [word_overlap(*one) for one in both]}
    if similarity is not None:
        prepare = getattr(similarity, "prepare", None)
        if prepare is not None:
            prepare([text for query, passage in both for text in (query, *sentences(passage))])
        scores["best sentence"] = [best_sentence(similarity, *one) for one in both]
    return scores


def beside(
    judged: Sequence[Judged],
    labels: Sequence[bool | int],
    scores: Mapping[str, Sequence[float]],
) -> list[Beside]:
    """Compare a judge with baselines on the same labels.

    Args:
        judged: As of `calibrate`.
        labels: As of `calibrate`; both kinds must occur.
        scores: What `baseline_scores` gave for the same pairs.

    Source:
        Agresti and Min, 2005, for the interval of paired shares.
    """
    said = decided(judged, labels)
    read = [place for place, one in enumerate(said) if one is not None]
    yes = np.array([int(labels[place]) > 0 for place in read])
    ours = np.array([bool(said[place]) for place in read])
    found = []
    for name, of_baseline in scores.items():
        of_all = decided([float(one) for one in of_baseline], labels)
        theirs = np.array([bool(of_all[place]) for place in read])
        gain, error = _gain(ours == yes, theirs == yes, yes)
        differ = float((ours != theirs).mean())
        by_chance = ours.mean() * (1 - theirs.mean()) + theirs.mean() * (1 - ours.mean())
        own = balanced_accuracy_interval(confusion_of(theirs, yes))
        tells = own is not None and own[0] > 0.5 and 0 < ours.mean() < 1
        odd = bool(tells and differ >= by_chance)
        found.append(Beside(name, gain, gain - Z * error, gain + Z * error, differ, odd))
    return found


def _gain(ours: np.ndarray, theirs: np.ndarray, yes: np.ndarray) -> tuple[float, float]:
    """Give the difference of two balanced accuracies on the same pairs, and its error."""
    gains, variance = [], 0.0
    for kind in (yes, ~yes):
        n = int(kind.sum())
        if not n:
            continue
        better = int((ours & ~theirs & kind).sum())
        worse = int((theirs & ~ours & kind).sum())
        gains.append((better - worse) / n)
        # Half a pair is added to each cell, so that few pairs that agree are no certainty.
        spread = better + worse + 1 - (better - worse) ** 2 / (n + 2)
        variance += spread / (n + 2) ** 2
    return sum(gains) / len(gains), sqrt(variance) / len(gains)
