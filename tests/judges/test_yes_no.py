"""How likely is a yes? Read from the likeliest words, whatever their spelling."""

from math import log

import pytest
from injections import INJECTIONS

from ctxeval.judges.prompts import Prompts, read_document
from ctxeval.judges.yes_no import ask_chunk, ask_claim, yes_probability


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
def test_a_text_stays_inside_of_the_document(text):
    prompts = Prompts()
    sendable = text.encode("utf-8", "replace").decode()
    of_chunk = ask_chunk(prompts, "reference", "q", text, text)
    assert read_document(of_chunk) == {"question": "q", "reference": sendable, "text": sendable}
    of_claim = ask_claim(prompts, text, [text, "c"])
    assert read_document(of_claim) == {"chunks": [sendable, "c"], "claim": sendable}
    for messages, clean in (
        (of_chunk, ask_chunk(prompts, "reference", "q", "t", "x")),
        (of_claim, ask_claim(prompts, "c", [])),
    ):
        assert messages[0] == clean[0]
        lines = messages[1]["content"].split("\n")
        mark = lines[0].removeprefix("<data ").removesuffix(">")
        assert messages[1]["content"].count(mark) == 2
        assert lines[2:] == [f"</data {mark}>", "", "Answer with one word: yes or no."]
