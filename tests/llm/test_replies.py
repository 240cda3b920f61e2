"""What is read out of a model's reply, whatever it wrote."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxeval.judges.replies import MAX_REASON, Reading, read_claims, read_verdicts

YES_NO = '{"chunks": [{"id": 1, "reason": "", "verdict": "yes"}, {"id": 2, "verdict": "no"}]}'
NO_YES = YES_NO.replace("yes", "?").replace("no", "yes").replace("?", "no")


def values(text, asked=(1, 2)):
    """Read the verdicts on chunks."""
    return [
        reading.value
        for reading in read_verdicts(text, chunks=asked, claims=0, shown=2)[0].values()
    ]


def chunk(verdict, number=1):
    return json.dumps({"chunks": [{"id": number, "reason": "because", "verdict": verdict}]})


# Where the JSON stands.

FOUND = [
    pytest.param(YES_NO, id="nothing but JSON"),
    pytest.param(f"\ufeff  \n{YES_NO}\n", id="blanks and a byte order mark"),
    pytest.param(json.dumps(json.loads(YES_NO), indent=2), id="over several lines"),
    pytest.param(f"```json\n{YES_NO}\n```", id="fenced as json"),
    pytest.param(f"```\n{YES_NO}\n```", id="fenced"),
    pytest.param(f"~~~~JSON\n{YES_NO}", id="fenced otherwise, unclosed"),
    pytest.param(f"Sure, here it is: {YES_NO} Anything else?", id="prose around"),
    pytest.param(
        f"In {{braces}} and [brackets] [1] {{}} []: {YES_NO} {{", id="braces in the prose"
    ),
    pytest.param(f"<think>It is {NO_YES}</think>{YES_NO}", id="thoughts with JSON"),
    pytest.param(f"It is {NO_YES}\n</think>\n{YES_NO}", id="thoughts that were never opened"),
    pytest.param(f"<think>{NO_YES}</think>a<think>{NO_YES}</think>{YES_NO}", id="thinking twice"),
    pytest.param(f"{NO_YES}\nNo, rather:\n{YES_NO}", id="two objects: the last counts"),
    pytest.param(f'{YES_NO}\n{{"confidence": 1}}', id="another object after it"),
    pytest.param(f"[{YES_NO}]", id="in a list"),
    pytest.param(f'{{"result": {YES_NO}}}', id="in an object of its own"),
    pytest.param(YES_NO[:-1] + ', "note": "</think>"}', id="</think> in a string"),
    pytest.param(YES_NO[:-1] + ', "note": "<think>"}', id="<think> in a string"),
    pytest.param(YES_NO[:-1] + ', "note": "} ] {"}', id="brackets in a string"),
    pytest.param(f'{{"chunks": [{{"id": 1, {YES_NO}', id="cut off, then begun anew"),
    pytest.param("{" * 3000 + YES_NO, id="3000 braces before it"),
    pytest.param("[" * 3000 + YES_NO, id="3000 brackets before it"),
    pytest.param('{"a":' * 500 + YES_NO, id="in 500 objects that never end"),
]


@pytest.mark.parametrize("text", FOUND)
def test_finds_the_verdicts(text):
    assert values(text) == [True, False]


NOT_FOUND = [
    pytest.param("", id="nothing"),
    pytest.param(" \n", id="blanks"),
    pytest.param("<html><body>Please {log} in</body></html>", id="HTML"),
    pytest.param("yes", id="a bare verdict"),
    pytest.param(YES_NO[:20], id="cut off in the first item"),
    pytest.param(YES_NO[:-2], id="cut off before the end"),
    pytest.param(f"<think>{YES_NO}", id="thoughts that never end"),
    pytest.param(f"{YES_NO}</think>", id="nothing but thoughts"),
    pytest.param('{"claims": []}', id="claims instead of chunks"),
    pytest.param('{"chunks": null}', id="null"),
    pytest.param('{"chunks": {"1": "yes"}}', id="an object instead of a list"),
    pytest.param('{"chunks": ["yes", "no"]}', id="bare verdicts in the list"),
    pytest.param('{"chunks": [[1, "yes"], null, 3]}', id="anything in the list"),
    pytest.param("null", id="JSON null"),
    pytest.param("[1, 2]", id="a list of numbers"),
    pytest.param(YES_NO.replace('"', "'"), id="single quotes"),
]


@pytest.mark.parametrize("text", NOT_FOUND)
def test_finds_nothing_and_says_so(text):
    readings = read_verdicts(text, chunks=[1, 2], claims=1, shown=2)
    for reading in (*readings[0].values(), *readings[1].values()):
        assert reading.value is None
        assert reading.reason.startswith("the reply holds no")


def test_the_reason_quotes_an_unreadable_reply():
    reading = read_verdicts("I'm sorry, but…", chunks=[1], claims=0, shown=1)[0][1]
    assert "I'm sorry, but…" in reading.reason


# How a verdict is written.

VERDICTS = [
    *(pytest.param(v, True, id=f"{v!r}") for v in ("yes", "Yes", " YES ", "yes.", "true", "1")),
    *(pytest.param(v, False, id=f"{v!r}") for v in ("no", "No", "NO!", " no\n", "false", "0")),
    pytest.param(True, True, id="true"),
    pytest.param(False, False, id="false"),
    pytest.param(1, True, id="1"),
    pytest.param(0, False, id="0"),
    *(
        pytest.param(v, None, id=f"{v!r}")
        for v in ("maybe", "", "yes and no", "not", "yess", "partial", "10", "-1")
    ),
    *(pytest.param(v, None, id=json.dumps(v)) for v in (None, 2, -1, 0.5, [], ["yes"], {"a": 1})),
]


@pytest.mark.parametrize(("written", "value"), VERDICTS)
def test_how_a_verdict_is_written(written, value):
    assert values(chunk(written), [1]) == [value]


def test_an_off_menu_verdict_is_quoted():
    reading = read_verdicts(chunk("maybe"), chunks=[1], claims=0, shown=1)[0][1]
    assert reading == Reading(None, "'maybe' is no verdict: yes or no was asked")


# Which verdict is meant.

IDS = [
    pytest.param("1", True, id="a string"),
    pytest.param(" 1 ", True, id="a string with blanks"),
    pytest.param(1.0, True, id="a float"),
    pytest.param("chunk 1", True, id="'chunk 1'"),
    pytest.param("Chunk_1", True, id="'Chunk_1'"),
    pytest.param("#1", True, id="'#1'"),
    pytest.param(0, None, id="0"),
    pytest.param(2, None, id="one that was not asked"),
    pytest.param(-1, None, id="a negative one"),
    pytest.param(1.5, None, id="1.5"),
    pytest.param(1e300, None, id="1e300"),
    pytest.param(float("nan"), None, id="NaN"),
    pytest.param(float("inf"), None, id="Infinity"),
    pytest.param(10**50, None, id="a huge one"),
    pytest.param(True, None, id="true"),
    pytest.param(None, None, id="null"),
    pytest.param("one", None, id="a word"),
    pytest.param("1 and 2", None, id="two"),
    pytest.param([1], None, id="a list"),
]


@pytest.mark.parametrize(("number", "value"), IDS)
def test_how_an_id_is_written(number, value):
    assert values(chunk("yes", number), [1]) == [value]


def items(*pairs):
    return json.dumps({"chunks": [{"id": n, "reason": f"{n}", "verdict": v} for n, v in pairs]})


SETS = [
    pytest.param(items((2, "no"), (1, "yes")), [True, False], id="in another order"),
    pytest.param(items((1, "yes")), [True, None], id="one is missing"),
    pytest.param(items((1, "yes"), (2, "no"), (3, "yes")), [True, False], id="an unknown one"),
    pytest.param(items((1, "yes"), (1, "yes"), (2, "no")), [True, False], id="repeated, alike"),
    pytest.param(items((1, "yes"), (1, "no"), (2, "no")), [None, False], id="repeated, unlike"),
    pytest.param(
        items((1, "yes"), (1, "?"), (2, "no")), [None, False], id="repeated, off the menu"
    ),
    pytest.param(items((1, "yes"), ("1", True), (2, "no")), [True, False], id="repeated, in words"),
    pytest.param(items((0, "yes"), (1, "no")), [False, None], id="counted from 0"),
]


@pytest.mark.parametrize(("text", "expected"), SETS)
def test_which_verdict_is_meant(text, expected):
    assert values(text) == expected


def test_only_what_was_asked_is_read():
    assert values(items((1, "yes"), (7, "yes")), asked=[7, 9]) == [True, None]


# Claims need chunks that were shown.


def claim(verdict, *supporting, **item):
    one = {"id": 1, "reason": "because", "supporting_chunks": [*supporting], "verdict": verdict}
    return json.dumps({"claims": [{**one, **item}]})


SUPPORT = [
    pytest.param(claim("yes", 2), True, (2,), id="one chunk"),
    pytest.param(claim("yes", 3, 1), True, (1, 3), id="two chunks, sorted"),
    pytest.param(claim("yes", 2, 2, "2"), True, (2,), id="one chunk, thrice"),
    pytest.param(claim("yes", "chunk 2"), True, (2,), id="in words"),
    pytest.param(claim("yes", 2, 9), True, (2,), id="one that was shown, one that was not"),
    pytest.param(claim("yes", supporting_chunks=3), True, (3,), id="a bare number"),
    pytest.param(claim("yes"), None, (), id="supported by none"),
    pytest.param(claim("yes", 0), None, (), id="by chunk 0"),
    pytest.param(claim("yes", 4), None, (), id="by one that was not shown"),
    pytest.param(claim("yes", None, "x", [1]), None, (), id="by no numbers"),
    pytest.param(claim("yes", supporting_chunks=None), None, (), id="by null"),
    pytest.param(claim("no"), False, (), id="not supported"),
    pytest.param(claim("no", 2), False, (), id="not supported, though a chunk is named"),
    pytest.param(claim("partial", 2), None, (), id="off the menu"),
    pytest.param(claim("yes", 1, id=2), None, (), id="another claim"),
]


@pytest.mark.parametrize(("text", "value", "chunks"), SUPPORT)
def test_support(text, value, chunks):
    reading = read_verdicts(text, chunks=[], claims=1, shown=3)[1][1]
    assert (reading.value, reading.chunks) == (value, chunks)


def test_claims_repeated_with_different_chunks_agree():
    one, two = (json.loads(claim("yes", n))["claims"][0] for n in (1, 2))
    text = json.dumps({"claims": [one, two]})
    assert read_verdicts(text, chunks=[], claims=1, shown=3)[1][1].value is True


# Reasons.


def test_a_reason_is_trimmed_and_cut():
    text = json.dumps({"chunks": [{"id": 1, "reason": " a\n b " + "c" * 999, "verdict": "no"}]})
    reason = read_verdicts(text, chunks=[1], claims=0, shown=1)[0][1].reason
    assert reason.startswith("a b ccc")
    assert len(reason) == MAX_REASON


@pytest.mark.parametrize("reason", [None, 3, ["because"], {"a": 1}])
def test_a_reason_that_is_no_text_is_none(reason):
    text = json.dumps({"chunks": [{"id": 1, "reason": reason, "verdict": "no"}]})
    assert read_verdicts(text, chunks=[1], claims=0, shown=1)[0][1] == Reading(False, "")


def test_a_broken_character_in_a_reason_can_be_written_to_a_file():
    text = '{"chunks": [{"id": 1, "reason": "half a pair: \\ud83d", "verdict": "yes"}]}'
    reading = read_verdicts(text, chunks=[1], claims=0, shown=1)[0][1]
    assert reading.value is True
    assert reading.reason.encode().startswith(b"half a pair: ")


# The claims of a reference.

CLAIMS = [
    pytest.param('{"claims": ["A.", "B."]}', ["A.", "B."], id="strings"),
    pytest.param('{"claims": [{"claim": "A."}, {"text": "B."}]}', ["A.", "B."], id="objects"),
    pytest.param('{"claims": [{"id": 1}, "B."]}', ["B."], id="an object without a claim"),
    pytest.param('{"claims": [" A\\n is.  ", "", " "]}', ["A is."], id="trimmed, blank left out"),
    pytest.param('{"claims": ["A.", "a.", "A."]}', ["A."], id="repeated"),
    pytest.param('{"claims": [1, null, ["A."], "B."]}', ["B."], id="what is no text"),
    pytest.param('{"claims": []} {"claims": ["A."]}', ["A."], id="the last object counts"),
    pytest.param('<think>{"claims": ["X."]}</think>{"claims": ["A."]}', ["A."], id="thoughts"),
    pytest.param('{"claims": "A."}', [], id="no list"),
    pytest.param('["A.", "B."]', [], id="a bare list"),
    pytest.param('{"claims": ["A.", "B', [], id="cut off"),
    pytest.param("A. B.", [], id="prose"),
    pytest.param("", [], id="nothing"),
]


@pytest.mark.parametrize(("text", "expected"), CLAIMS)
def test_claims(text, expected):
    assert read_claims(text) == expected


# Nothing is too odd, or takes for ever.

MEGABYTE = 1_000_000
HUGE = [
    pytest.param("{", id="{{{…"),
    pytest.param("[", id="[[[…"),
    pytest.param('{"', id='{"{"…'),
    pytest.param('{"a":', id='{"a":{"a":…'),
    pytest.param("[{", id="[{[{…"),
    pytest.param('[{"a":', id='[{"a":[{"a":…'),
    pytest.param('{"a":1,', id='{"a":1,{"a":1,…'),
    pytest.param("{}", id="{}{}…"),
    pytest.param('{"chunks":[]}', id="empty answers"),
    pytest.param("<think>", id="<think><think>…"),
    pytest.param("</think>", id="</think></think>…"),
    pytest.param("\\", id="backslashes"),
    pytest.param(" ", id="blanks"),
    pytest.param('"', id="quotes"),
]


@pytest.mark.parametrize("part", HUGE)
def test_a_megabyte_of_it_ends(part):
    text = part * (MEGABYTE // len(part))
    assert values(text) == [None, None]
    assert read_claims(text) == []


def test_a_megabyte_of_reasons_is_read():
    many = [{"id": n, "reason": "x" * 1000, "verdict": "no"} for n in range(1, 1000)]
    assert values(json.dumps({"chunks": many})) == [False, False]


def test_no_depth_of_nesting_raises():
    for depth in (1, 100, *range(800, 1000), 5_000, 100_000):
        deep = "[" * depth + "]" * depth
        text = f'{{"chunks": [{{"id": 1, "verdict": {deep}, "reason": {deep}}}]}}'
        assert values(text, [1]) == [None]


PIECES = st.lists(
    st.sampled_from(
        [
            *'{}[],:"\\',
            "<think>",
            "</think>",
            '"chunks":',
            '"claims":',
            '{"id":1,"verdict":"yes"}',
            '{"id":1,"supporting_chunks":[1],"verdict":"no"}',
            '{"chunks":[]}',
            "NaN",
            "-1e999",
            "null",
            "```json",
            "\ud800",
        ]
    ),
    max_size=25,
).map("".join)


@settings(deadline=None)
@given(st.one_of(PIECES, st.text()), st.sets(st.integers(1, 9)), st.integers(0, 5))
def test_any_text_gives_a_reading_for_each_that_was_asked(text, asked, claims):
    chunks, of_claims = read_verdicts(text, chunks=sorted(asked), claims=claims, shown=9)
    assert set(chunks) == asked
    assert list(of_claims) == list(range(1, claims + 1))
    for reading in (*chunks.values(), *of_claims.values()):
        assert reading.value in (True, False, None)
        assert reading.value is not None or reading.reason
    for reading in of_claims.values():
        assert bool(reading.chunks) == (reading.value is True)
        assert all(1 <= number <= 9 for number in reading.chunks)
    assert all(claim.strip() for claim in read_claims(text))


PROSE = st.text(string.ascii_letters + string.punctuation.replace("{", "").replace("[", "") + " \n")
REASON = st.text(max_size=40)


@st.composite
def answers(draw):
    chunks = draw(st.dictionaries(st.integers(1, 9), st.booleans(), max_size=9))
    claims = draw(st.lists(st.sets(st.integers(1, 9)), max_size=5))
    answer = {
        "chunks": [
            {"id": n, "reason": draw(REASON), "verdict": "yes" if value else "no"}
            for n, value in chunks.items()
        ],
        "claims": [
            {
                "id": n,
                "reason": draw(REASON),
                "supporting_chunks": sorted(support),
                "verdict": "yes" if support else "no",
            }
            for n, support in enumerate(claims, start=1)
        ],
    }
    return chunks, claims, json.dumps(answer, ensure_ascii=draw(st.booleans()))


@settings(deadline=None)
@given(answers(), PROSE, PROSE, st.sampled_from(["{0}{1}{2}", "<think>{0}</think>{1}{2}"]))
def test_a_right_answer_in_prose_is_read_exactly(answer, before, after, frame):
    chunks, claims, text = answer
    before = before.replace("<think>", "").replace("</think>", "")
    after = after.replace("</think>", "")
    written = frame.format(before, text, after)
    read_chunks, of_claims = read_verdicts(
        written, chunks=list(chunks), claims=len(claims), shown=9
    )
    assert {n: reading.value for n, reading in read_chunks.items()} == chunks
    assert [set(reading.chunks) for reading in of_claims.values()] == claims
