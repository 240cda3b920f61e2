"""The labelled set: questions and claims on the language reference, and passages of it.

A passage answers a question or not, and supports a claim or not: who wrote the questions
marked the answering passages. Negatives are near, the first passages that the demo's search
finds in other topics, and far, any passages of other topics.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal, NamedTuple

from benchmarks.judges.asked import ASKED, Asked
from ctxeval.calibration.calibration import Purpose
from ctxeval.calibration.labels import Labelled, Pair
from ctxeval.demo.corpus import Passage, load_passages
from ctxeval.demo.questions import QUESTIONS, answering
from ctxeval.demo.retriever import BM25Retriever

Kind = Literal["answering", "near", "far", "contradicted"]

NEGATIVES = 2
"""How many of each kind are shown for an answer; for a question and for a claim it is one."""


class Case(NamedTuple):
    """A pair, its label, and what it tries.

    Attributes:
        labelled: The pair and its label; its sample is the question's number.
        kind: Does the passage answer, or what makes it a negative?
        language: The question's, by its code of two letters.
    """

    labelled: Labelled
    kind: Kind
    language: str


def cases() -> list[Case]:
    """Build the set, the same each time on one version of Python."""
    passages = load_passages()
    search = BM25Retriever(passages=passages, k=50)
    by_id = {passage.id: passage for passage in passages}
    answers = {question.text: question for question in QUESTIONS}
    found: list[Case] = []
    for number, asked in enumerate(ASKED):
        question = answers[asked.question]
        others = [p for p in passages if p.topic not in (question.topic, asked.also)]
        ranked = [by_id[document.id] for document in search.invoke(question.text)]
        shown = Shown(
            right=[by_id[one] for one in answering(question, passages)],
            near=[passage for passage in ranked if passage in others][:NEGATIVES],
            far=random.Random(asked.question).sample(others, NEGATIVES),
        )
        found += _for_question(str(number), asked, shown)
        found += _for_answer(str(number), asked.question, question.answer, shown)
        found += _for_claim(str(number), asked, shown)
    return found


class Shown(NamedTuple):
    """The passages that are shown for one question."""

    right: list[Passage]
    near: list[Passage]
    far: list[Passage]

    def one_by_one(self, negatives: int) -> Iterator[tuple[Kind, str]]:
        """Give the answering ones, and so many of each kind of negatives."""
        kinds: dict[Kind, list[Passage]] = {
            "answering": self.right,
            "near": self.near[:negatives],
            "far": self.far[:negatives],
        }
        for kind, passages in kinds.items():
            yield from ((kind, passage.text) for passage in passages)


def _for_question(sample: str, asked: Asked, shown: Shown) -> Iterator[Case]:
    for kind, text in shown.one_by_one(1):
        for language, question in _languages(asked):
            pair = Pair("question", question, "", (text,), sample)
            yield Case(Labelled(pair, kind == "answering"), kind, language)


def _for_answer(sample: str, question: str, answer: str, shown: Shown) -> Iterator[Case]:
    purposes: tuple[Purpose, ...] = ("reference", "response")
    for kind, text in shown.one_by_one(NEGATIVES):
        for purpose in purposes:
            pair = Pair(purpose, question, answer, (text,), sample)
            yield Case(Labelled(pair, kind == "answering"), kind, "en")


def _languages(asked: Asked) -> Iterator[tuple[str, str]]:
    yield "en", asked.question
    if asked.chinese:
        yield from (("zh", asked.chinese), ("de", asked.german), ("es", asked.spanish))


def _for_claim(sample: str, asked: Asked, shown: Shown) -> Iterator[Case]:
    right = tuple(passage.text for passage in shown.right)
    near, far = shown.near[0].text, shown.far[0].text
    pairs: list[tuple[Kind, str, tuple[str, ...]]] = [
        ("answering", asked.true, right),
        ("contradicted", asked.false, right),
        ("answering", asked.true, (*right, far)),
        ("near", asked.true, (near,)),
        ("far", asked.true, (far,)),
    ]
    for kind, claim, chunks in pairs:
        pair = Pair("support", asked.question, claim, chunks, sample)
        yield Case(Labelled(pair, kind == "answering"), kind, "en")
