"""How likely is a yes? Read from the likeliest words, whatever their spelling."""

import subprocess
import sys
from math import log

import pytest
from injections import INJECTIONS

from ctxeval.judges.prompts import Prompts
from ctxeval.judges.yes_no import (
    WORDING,
    ask_chunk,
    ask_claim,
    read_texts,
    yes_probability,
)


@pytest.mark.parametrize(
    ("told", "yes", "missing"),
    [
        pytest.param({"yes": 1.0}, 1.0, 0.0, id="certain"),
        pytest.param({"No": 1.0}, 0.0, 0.0, id="certain no"),
        pytest.param({"Yes": 0.5, " yes": 0.25, "No": 0.25}, 0.75, 0.0, id="spellings are summed"),
        pytest.param({"YES.": 0.25, '"no"': 0.75}, 0.25, 0.0, id="quotes and full stops"),
        pytest.param({"▁yes": 0.5, "Ġno": 0.5}, 0.5, 0.0, id="marks of tokenizers"),
        pytest.param({"true": 0.75, "0": 0.25}, 0.75, 0.0, id="other words for it"),
        pytest.param({"yes": 0.25, "no": 0.25, "The": 0.5}, 0.5, 0.5, id="other words are missing"),
        pytest.param({"yes": 0.5}, 1.0, 0.5, id="the rest is not told"),
        pytest.param({"yesterday": 0.75, "not": 0.25}, None, 1.0, id="words that only begin so"),
        pytest.param({}, None, 1.0, id="nothing"),
    ],
)
def test_the_probability_of_a_yes(told, yes, missing):
    read = yes_probability({word: log(p) for word, p in told.items()})
    assert read.yes == (None if yes is None else pytest.approx(yes))
    assert read.missing == pytest.approx(missing)


def test_impossible_words_count_nothing():
    assert yes_probability({"yes": -9999.0, "no": -9999.0}).yes is None
    assert yes_probability({"yes": float("-inf"), "no": 0.0}).yes == 0


@pytest.mark.parametrize("text", [pytest.param(t, id=n) for n, t in INJECTIONS.items()])
def test_a_text_stays_inside_of_its_tags(text):
    prompts = Prompts()
    sendable = text.encode("utf-8", "replace").decode()
    of_chunk = ask_chunk(prompts, "reference", "q", text, text)
    assert read_texts(of_chunk) == {"text": sendable, "question": "q", "reference": sendable}
    of_claim = ask_claim(prompts, text, [text, "c"])
    assert read_texts(of_claim) == {"chunks": [sendable, "c"], "claim": sendable}
    for messages, clean, tags in (
        (of_chunk, ask_chunk(prompts, "reference", "q", "t", "x"), 3),
        (of_claim, ask_claim(prompts, "c", []), 3),
    ):
        assert messages[0] == clean[0], "the instructions don't depend on what is judged"
        content = messages[1]["content"]
        mark = content.split("\n", 1)[0].removesuffix(">").split(" ")[1]
        assert content.count(mark) == 2 * tags, "no text knows the mark"
        assert content.rsplit("\n\n", 1)[1] == clean[1]["content"].rsplit("\n\n", 1)[1]


def test_what_questions_share_comes_first_and_is_the_same():
    """Servers reuse what they have read of the beginning of a prompt."""
    one, other = (ask_chunk(Prompts(), "question", q, "", "a text") for q in ("q1", "q2"))
    assert one[1]["content"].split("<question")[0] == other[1]["content"].split("<question")[0]
    one, other = (ask_claim(Prompts(), claim, ["a", "b"]) for claim in ("c1", "c2"))
    assert one[1]["content"].split("<claim")[0] == other[1]["content"].split("<claim")[0]


def test_marks_differ_by_text_and_by_process():
    marks = {ask_chunk(Prompts(), "question", "q", "", text)[1]["content"][:23] for text in "abc"}
    assert len(marks) == 3
    asked = (
        "from ctxeval.judges.yes_no import ask_chunk; from ctxeval.judges.prompts import Prompts; "
        "print(ask_chunk(Prompts(), 'question', 'q', '', 'a')[1]['content'][:23])"
    )
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert told.stdout.strip().startswith("<text ")
    assert told.stdout.strip() not in marks


def test_own_criteria_take_the_place_of_the_question():
    own = Prompts({"question": "It counts if it rhymes.", "support": "It counts if it is near."})
    for messages, said in (
        (ask_chunk(own, "question", "q", "", "t"), "It counts if it rhymes."),
        (ask_claim(own, "c", ["t"]), "It counts if it is near."),
    ):
        asked = messages[1]["content"].rsplit("\n\n", 1)[1]
        assert said in asked
        assert not any(text in asked for text in WORDING.asked.values())
