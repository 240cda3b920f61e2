"""The baselines: by pencil, in several scripts, and beside a judge."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("sklearn")

from hypothesis import given
from hypothesis import strategies as st

from ctxeval import EmbeddingSimilarity
from ctxeval.calibration.baselines import (
    baseline_scores,
    beside,
    best_sentence,
    sentences,
    word_overlap,
)
from ctxeval.calibration.labels import Pair


@pytest.mark.parametrize(
    ("query", "passage", "expected"),
    [
        pytest.param("red green blue", "Green, and RED.", 2 / 3, id="2 of 3 words"),
        pytest.param("red red red", "red", 1, id="a word counts once"),
        pytest.param("Straße", "STRASSE", 1, id="case folded"),
        pytest.param("café", "cafe\u0301", 1, id="composed or not"),
        pytest.param("罗马在哪里", "罗马在意大利", 1 / 2, id="2 of 4 pairs of characters"),
        pytest.param("東京タワー", "東京にはタワーがある", 3 / 4, id="東京 タワ ワー, not 京タ"),
        pytest.param("水", "水", 1, id="one character"),
        pytest.param("使用 Python 3", "python 3 使用", 1, id="two scripts"),
        pytest.param("กรุงเทพ", "กรุงเทพมหานคร", 1, id="Thai with its marks"),
        pytest.param("हिन्दी भाषा", "भाषा", 1 / 2, id="marks part no word"),
        pytest.param("?!", "anything", 0, id="no words"),
        pytest.param("", "", 0, id="nothing"),
    ],
)
def test_word_overlap(query, passage, expected):
    assert word_overlap(query, passage) == pytest.approx(expected)


@given(st.text(max_size=50), st.text(max_size=50))
def test_it_is_a_share(query, passage):
    assert 0 <= word_overlap(query, passage) <= 1
    assert word_overlap(query, query + " " + passage) in (0.0, 1.0)


def test_sentences():
    text = 'He said "no." Then? 他说好。再见！\n\nEnd without a stop… Really'
    assert sentences(text) == [
        'He said "no."', "Then?", "他说好。", "再见！", "End without a stop…", "Really"
    ]  # fmt: skip
    assert sentences(" \n ") == []


def test_sentences_of_scripts_with_stops_of_their_own():
    assert sentences("هل هذا؟ نعم.") == ["هل هذا؟", "نعم."]
    assert sentences("यह है। वह है।") == ["यह है।", "वह है।"]
    assert sentences("یہ ہے۔ وہ ہے۔") == ["یہ ہے۔", "وہ ہے۔"]


def letters(texts):
    return [[float(text.lower().count(letter)) for letter in "abcxyz"] for text in texts]


def test_the_best_sentence_counts_and_all_are_embedded_at_once():
    batches = []

    def embed(texts):
        batches.append(list(texts))
        return letters(texts)

    pairs = [
        Pair("question", "abc", "", ("xyz xyz. abc!",)),
        Pair("support", "q", "xxx", ("aaa", "bbb\nx")),
        Pair("question", "abc", "", (" . ",)),
    ]
    scores = baseline_scores(pairs, EmbeddingSimilarity(embed))
    assert scores["best sentence"] == [pytest.approx(1), pytest.approx(1), 0]
    assert scores["word overlap"] == [1, 0, 0]
    assert len(batches) == 1
    assert best_sentence(EmbeddingSimilarity(embed), "abc", "") == 0


def pairs_of(n, judge_right, baseline_right, seed=0):
    rng = random.Random(seed)
    labels = [place % 2 == 0 for place in range(n)]
    judged = [label if rng.random() < judge_right else not label for label in labels]
    scores = [
        rng.uniform(0.5, 1) if label == (rng.random() < baseline_right) else rng.uniform(0, 0.5)
        for label in labels
    ]
    return judged, labels, {"word overlap": scores}


def test_the_gain_by_hand():
    labels = [True] * 4 + [False] * 4
    judged = [True, True, True, False, False, False, False, False]
    # The scores part yes from no but for one yes and one no that lie beyond: at any threshold
    # between, 3 of 4 yeses and 3 of 4 noes.
    scores = {"b": [0.9, 0.8, 0.7, 0.1, 0.2, 0.1, 0.3, 0.95]}
    (got,) = beside(judged, labels, scores)
    assert got.gain == pytest.approx((3 / 4 - 3 / 4) / 2 + (4 / 4 - 3 / 4) / 2)
    assert got.low < 0 < got.high
    assert not got.better
    assert got.disagreement == 1 / 8
    assert "does no better than b on these labels" in str(got)


def test_a_better_judge_and_a_worse_one():
    (better,) = beside(*pairs_of(300, 0.95, 0.7))
    assert better.better
    assert better.low < 0.25 < better.high
    assert "does better than word overlap on these labels, +0." in str(better)
    (worse,) = beside(*pairs_of(300, 0.6, 0.9))
    assert not worse.better
    assert worse.high < 0


def test_a_judge_that_has_nothing_to_do_with_the_baseline():
    (chance,) = beside(*pairs_of(400, 0.5, 0.9, seed=2))
    assert chance.odd == (chance.disagreement >= 0.5)
    (against,) = beside(*pairs_of(400, 0.3, 0.9))
    assert against.odd
    assert "as if the two judged different things" in str(against)
    (fine,) = beside(*pairs_of(400, 0.9, 0.9))
    assert not fine.odd


def test_unread_pairs_count_on_neither_side():
    judged, labels, scores = pairs_of(100, 1.0, 0.8)
    (got,) = beside([None if n < 40 else one for n, one in enumerate(judged)], labels, scores)
    (rest,) = beside(judged[40:], labels[40:], {"b": scores["word overlap"][40:]})
    assert got.gain == pytest.approx(rest.gain, abs=0.1)


@pytest.mark.slow
def test_the_interval_of_the_gain_covers_it():
    covered = 0
    for seed in range(400):
        judged, labels, scores = pairs_of(100, 0.9, 0.8, seed)
        # Two values leave one threshold, so that fitting it costs the baseline nothing.
        halves = {name: [float(one >= 0.5) for one in told] for name, told in scores.items()}
        (got,) = beside(judged, labels, halves)
        covered += got.low <= 0.1 <= got.high
    assert covered / 400 >= 0.93
