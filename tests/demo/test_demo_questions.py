from __future__ import annotations

from collections import Counter

import pytest

from ctxeval.demo.corpus import Passage, fold, load_passages
from ctxeval.demo.questions import QUESTIONS, answering, usable


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    return load_passages()


def test_passages_are_unique(passages: list[Passage]) -> None:
    assert len({passage.id for passage in passages}) == len(passages)
    assert len({fold(passage.text) for passage in passages}) == len(passages)


def test_passages_are_of_readable_size(passages: list[Passage]) -> None:
    sizes = sorted(len(passage.text) for passage in passages)
    assert len(sizes) > 500
    assert sizes[0] > 50
    assert 400 < sizes[len(sizes) // 2] < 700
    assert sizes[-1] < 1200


def test_ids_do_not_depend_on_the_order_of_topics(
    passages: list[Passage], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pydoc_data import topics

    monkeypatch.setattr(topics, "topics", dict(reversed(topics.topics.items())))
    assert load_passages() == passages


def test_passages_of_a_made_up_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    prose = "A sentence of this text has got a few words. " * 8
    text = "\n\n".join(
        [
            "A heading\n*********",
            prose.strip(),
            "For example:",
            "   code()",
            "str.method(argument)",
            "   " + prose.strip(),
            "Section\n=======",
            (prose * 3).strip(),
        ]
    )
    monkeypatch.setattr("pydoc_data.topics.topics", {"b": text, "a": prose, "compound": prose})
    first, second, third, fourth, fifth = load_passages()
    assert (first.id, first.topic, fold(first.text)) == ("a#01", "a", fold(prose))
    assert second.id == "b#01"
    assert second.text.startswith("A heading\n\nA sentence")
    assert second.text.endswith("For example:\n\n   code()")
    assert third.text.startswith("str.method(argument)\n\n   A sentence")
    assert fourth.text.startswith("Section\n\nA sentence")
    assert fold(f"{fourth.text} {fifth.text}") == fold(f"Section {prose * 3}")
    assert fifth.text.startswith("A sentence")


def test_questions_are_well_formed() -> None:
    assert len({question.text for question in QUESTIONS}) == len(QUESTIONS)
    for question in QUESTIONS:
        assert question.text.endswith("?")
        assert question.answer.endswith(".")
        assert question.anchors
        assert not set("\"'`\u2018\u2019\u201c\u201d") & set("".join(question.anchors))
    styles = Counter(question.style for question in QUESTIONS)
    assert abs(styles["beginner"] - styles["reference"]) <= 4
    assert len({question.topic for question in QUESTIONS}) >= 30


def test_enough_questions_are_usable(passages: list[Passage]) -> None:
    answered, unanswered = usable(passages)
    assert len(answered) >= 35
    assert len(answered) + len(unanswered) == len(QUESTIONS)
    topics = {passage.id: passage.topic for passage in passages}
    for question, expected in answered:
        assert expected == answering(question, passages)
        assert 1 <= len(expected) <= 3, question
        assert {topics[id_] for id_ in expected} == {question.topic}


def test_a_question_without_passage_is_not_usable(passages: list[Passage]) -> None:
    left_out = QUESTIONS[0]
    answered, unanswered = usable(
        passage for passage in passages if passage.topic != left_out.topic
    )
    assert left_out in unanswered
    assert left_out not in [question for question, _ in answered]


def test_bm25_finds_some_answers_but_not_all(passages: list[Passage]) -> None:
    bm25s = pytest.importorskip("bm25s", reason="bm25s is not installed")

    def tokenize(texts: list[str]) -> object:
        return bm25s.tokenize(texts, stopwords="en", show_progress=False)

    retriever = bm25s.BM25(method="lucene")
    retriever.index(tokenize([passage.text for passage in passages]), show_progress=False)
    answered, _ = usable(passages)
    found, _ = retriever.retrieve(
        tokenize([question.text for question, _ in answered]), k=10, show_progress=False
    )
    hits: dict[str, list[bool]] = {"beginner": [], "reference": []}
    for (question, expected), positions in zip(answered, found, strict=True):
        ids = {passages[position].id for position in positions}
        hits[question.style].append(not ids.isdisjoint(expected))
    share = {style: sum(of_style) / len(of_style) for style, of_style in hits.items()}
    assert 0.5 <= sum(map(sum, hits.values())) / len(answered) <= 0.9
    assert share["beginner"] <= share["reference"] - 0.2
