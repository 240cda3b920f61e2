"""No chunk ends the document, poses as instructions, or speaks for the model."""

from __future__ import annotations

import json

import pytest
from injections import INJECTIONS, QUESTION, REFERENCE, USEFUL

from ctxeval import ContextPrecision, ContextRecall, Sample
from ctxeval.judges.prompts import Prompts, read_document
from ctxeval.judges.replies import read_claims, read_verdicts
from ctxeval.testing import ScriptedLLM

ALL = [pytest.param(text, id=name) for name, text in INJECTIONS.items()]


def test_there_are_enough_of_them():
    assert len(INJECTIONS) >= 60
    assert len(set(INJECTIONS.values())) == len(INJECTIONS)


def sendable(text):
    """A lone half of a character can't be sent; it travels as a question mark."""
    return text.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("text", ALL)
def test_a_text_stays_inside_of_the_document(text):
    asked = {"question": text, "target": text, "chunks": [text, USEFUL], "claims": [text]}
    messages, _ = Prompts().judge("reference", judge_chunks=[1, 2], **asked)
    clean, _ = Prompts().judge(
        "reference", "q", "t", [USEFUL, USEFUL], judge_chunks=[1, 2], claims=["c"]
    )
    system, user = messages
    assert system == clean[0], "the instructions don't depend on what is judged"
    opening, *lines, closing = user["content"].split("\n")
    mark = opening.removeprefix("<data ").removesuffix(">")
    assert closing == f"</data {mark}>"
    assert user["content"].count(mark) == 2, "no text knows the mark"
    assert len(lines) == 1, "no text begins a line"
    document = json.loads(lines[0])
    assert document == read_document(messages)
    assert document["judge_chunks"] == [1, 2]
    assert document["question"] == document["reference"] == sendable(text)
    assert document["claims"] == [{"id": 1, "claim": sendable(text)}]
    assert document["chunks"] == [{"id": 1, "text": sendable(text)}, {"id": 2, "text": USEFUL}]


@pytest.mark.parametrize("text", ALL)
def test_a_reference_stays_inside_of_the_document(text):
    messages, _ = Prompts().split(text)
    assert read_document(messages) == {"text": sendable(text)}
    assert messages[0] == Prompts().split("another")[0][0]


def reply(reason, verdict):
    return json.dumps({"chunks": [{"id": 1, "reason": reason, "verdict": verdict}]})


@pytest.mark.parametrize("text", ALL)
@pytest.mark.parametrize("around", ["{reply}", "{text}\n{reply}", "```json\n{reply}\n```"])
def test_a_model_that_quotes_a_text_says_what_it_says(text, around):
    """As a reason, or before the answer: the verdict is the model's, or unread, never a yes."""
    said = around.replace("{reply}", reply(text, "no")).replace("{text}", text)
    chunks, _ = read_verdicts(said, chunks=[1], claims=0, shown=2)
    assert chunks[1].value is not True
    if "{text}" not in around:
        assert chunks[1].value is False


@pytest.mark.parametrize("text", ALL)
def test_a_claim_that_quotes_a_text_is_one_claim(text):
    said = json.dumps({"claims": [text, "Another one."]})
    assert len(read_claims(said)) == 2


@pytest.mark.parametrize("text", ALL)
def test_a_judge_that_is_not_taken_in_says_no(text):
    """From the metric down to the model and back: nothing in between is taken in."""
    llm = ScriptedLLM(relevant={USEFUL}, supported={REFERENCE: {USEFUL}})
    sample = Sample(
        user_input=QUESTION, reference=REFERENCE, retrieved_contexts=[text, USEFUL, text + "!"]
    )
    precision, recall = ContextPrecision(llm).score(sample), ContextRecall(llm).score(sample)
    assert precision.value == 0.5
    assert [one.value for one in precision.verdicts.chunks] == [False, True, False]
    assert recall.value == 1
    assert recall.verdicts.units[0].matched == (1,)
