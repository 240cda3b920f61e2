"""Label files: what they hold, and what is said of a bad line."""

from __future__ import annotations

import json

import pytest

from ctxeval import InvalidArgumentError, InvalidSampleError, Sample
from ctxeval.calibration.labels import Labelled, Pair, read_labels

CHUNK = {"user_input": "q", "chunk": "c", "label": True}
CLAIM = {"claim": "c", "chunks": ["a", "b"], "label": False}


@pytest.fixture
def write(tmp_path):
    def file(name, *lines):
        path = tmp_path / name
        text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(text) + "\n", encoding="utf-8")
        return path

    return file


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (CHUNK, Labelled(Pair("question", "q", "", ("c",)), True)),
        ({**CHUNK, "label": "No"}, Labelled(Pair("question", "q", "", ("c",)), False)),
        ({**CHUNK, "label": 2}, Labelled(Pair("question", "q", "", ("c",)), 2)),
        ({**CHUNK, "reference": "r"}, Labelled(Pair("reference", "q", "r", ("c",)), True)),
        ({**CHUNK, "response": "r"}, Labelled(Pair("response", "q", "r", ("c",)), True)),
        (CLAIM, Labelled(Pair("support", "", "c", ("a", "b")), False)),
        ({**CLAIM, "user_input": "q"}, Labelled(Pair("support", "q", "c", ("a", "b")), False)),
        (
            {"claim": "c", "chunk": "a", "label": 1.0},
            Labelled(Pair("support", "", "c", ("a",)), 1),
        ),
        (
            {**CHUNK, "reference": "r", "response": "s", "purpose": "question"},
            Labelled(Pair("question", "q", "", ("c",)), True),
        ),
        ({**CHUNK, "sample": 7}, Labelled(Pair("question", "q", "", ("c",), "7"), True)),
    ],
)
def test_a_line(write, line, expected):
    assert list(read_labels(write("l.jsonl", line))) == [expected]


def test_what_is_written_reads_the_same(write):
    given = [
        Labelled(Pair("question", "q", "", ("c",), "s1"), True),
        Labelled(Pair("reference", "q", "r", ("c",)), 2),
        Labelled(Pair("support", "", "c", ("a", "b"), "s2"), False),
        Labelled(Pair("support", "q", "c", ("a",)), False),
    ]
    assert list(read_labels(write("l.jsonl", *(one.to_dict() for one in given)))) == given


def test_a_table(write):
    path = write(
        "l.csv",
        "user_input,chunk,claim,chunks,label",
        "q,c,,,yes",
        "q,d,,,0",
        ',,c,"[""a"", ""b""]",3',
    )
    assert list(read_labels(path)) == [
        Labelled(Pair("question", "q", "", ("c",)), True),
        Labelled(Pair("question", "q", "", ("d",)), 0),
        Labelled(Pair("support", "", "c", ("a", "b")), 3),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({**CHUNK, "label": "maybe"}, "label: 'maybe' is no label: write true or false"),
        ({**CHUNK, "label": -1}, "label: -1 is no label"),
        ({**CHUNK, "label": 0.5}, "label: 0.5 is no label"),
        ({**CHUNK, "label": 10**30}, "label: 10+ is no label: .* an integer grade from 0 to 999"),
        ({**CHUNK, "label": 1e30}, r"label: 1e\+30 is no label"),
        ({**CHUNK, "label": [1]}, r"label: \[1\] is no label"),
        ({**CHUNK, "label": float("inf")}, "label: inf is no label"),
        ({**CHUNK, "label": "1.5"}, "label: '1.5' is no label"),
        ({"user_input": "q", "chunk": "c"}, "label: it is missing"),
        ({**CHUNK, "lable": 1}, "unknown field 'lable': did you mean 'label'"),
        ({"chunk": "c", "label": 1}, "user_input: it is missing or blank: a label for 'question'"),
        ({**CHUNK, "chunk": "  "}, "chunk: it is missing or blank"),
        ({**CHUNK, "chunk": 5}, "chunk: 5 is no text"),
        ({"user_input": "q", "chunks": ["c"], "label": 1}, "chunks: only claims"),
        ({**CHUNK, "reference": "r", "response": "s"}, "purpose: there is a reference and a resp"),
        ({**CHUNK, "purpose": "questions"}, "purpose: 'questions' is unknown: did you mean"),
        ({**CHUNK, "purpose": "reference"}, "reference: it is missing or blank"),
        ({**CLAIM, "chunks": []}, r"chunks: \[\] is no list of texts"),
        ({**CLAIM, "chunks": ["a", 3]}, r"chunks\[1\]: 3 is no text"),
        ({**CLAIM, "chunks": "a, b"}, "chunks: 'a, b' is no list in JSON"),
        ({**CLAIM, "chunk": "a"}, "chunk: there are chunks too"),
        ({"claim": "c", "label": 1}, "chunk: it is missing"),
        ("[1]", "is no JSON object: write the fields by name"),
        ("{", "no JSON"),
    ],
)
def test_a_bad_line_is_told_with_file_line_and_field(write, line, message):
    path = write("labels.jsonl", CHUNK, "", line)
    with pytest.raises(InvalidSampleError, match=rf"labels\.jsonl, line 3: .*{message}"):
        list(read_labels(path))


def test_a_bad_row_of_a_table(write):
    path = write("labels.csv", "user_input,chunk,label", "q,c,yes", "q,c,perhaps")
    with pytest.raises(InvalidSampleError, match=r"labels\.csv, line 3: label: 'perhaps'"):
        list(read_labels(path))


@pytest.mark.parametrize(
    ("name", "message"), [("none.jsonl", "can't be read"), ("labels.txt", "no suffix")]
)
def test_a_file_that_cannot_be_read(tmp_path, name, message):
    with pytest.raises(InvalidSampleError, match=message):
        list(read_labels(tmp_path / name))


@pytest.mark.parametrize("name", ["l.jsonl", "l.csv", "l.json"])
def test_an_empty_file_holds_no_label(write, name):
    with pytest.raises(InvalidSampleError, match="it holds no label: give a file with at least"):
        list(read_labels(write(name, "")))


def test_a_list_and_a_frame():
    pandas = pytest.importorskip("pandas")
    given = [CHUNK, {**CHUNK, "chunk": "d", "label": 0, "reference": "r"}]
    expected = [
        Labelled(Pair("question", "q", "", ("c",)), True),
        Labelled(Pair("reference", "q", "r", ("d",)), 0),
    ]
    assert list(read_labels(given)) == expected
    assert list(read_labels(expected)) == expected
    for labels in ([True, False], [1, 0], [1.0, 0.0], ["1.0", "0"]):
        frame = pandas.DataFrame(given).assign(label=labels)
        assert list(read_labels(frame)) == expected


def test_what_is_no_list_and_no_label():
    with pytest.raises(
        InvalidArgumentError, match="labels: None is no list: give a list of labels"
    ):
        list(read_labels(None))
    with pytest.raises(InvalidSampleError, match=r"'a' .str. is no label: give a dict of its"):
        list(read_labels(["a"]))


@pytest.mark.parametrize("given", [[5], [Sample(user_input="q")], [{**CHUNK, "label": "x"}]])
def test_a_bad_item_of_a_list(given):
    with pytest.raises(InvalidSampleError, match=r"labels\[0\]: "):
        list(read_labels(given))
