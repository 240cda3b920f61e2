"""Every kind of file reads to the same samples, or says where it is broken."""

import csv
import io
import json
import os
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxeval import InvalidSampleError, MissingExtraError, Sample, Span
from ctxeval.record.reading import read_samples

SAMPLE = Sample(
    id="7",
    user_input="Who wrote Faust, and when?",
    retrieved_contexts=["a, b", 'a "quoted" one'],
    retrieved_context_ids=["g1", "2"],
    retrieved_spans=[Span("d", 0, 4), Span("d", 4, 9)],
    response="Goethe.\nIn 1808.",
    reference="1808",
    reference_context_ids={"g1": 2, "g4": 1},
    reference_claims=["Goethe wrote Faust."],
    metadata={"topic": "books"},
)


def as_jsonl(samples):
    return "".join(sample.model_dump_json() + "\n" for sample in samples)


def as_json(samples):
    return json.dumps([sample.model_dump() for sample in samples], indent=1)


def as_csv(samples):
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(Sample.model_fields)
    for sample in samples:
        cells = sample.model_dump().values()
        writer.writerow(c if c is None or isinstance(c, str) else json.dumps(c) for c in cells)
    return table.getvalue()


WRITERS = {".jsonl": as_jsonl, ".json": as_json, ".csv": as_csv}


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["plain", "with a BOM"])
def test_every_field_comes_back(tmp_path, suffix, start):
    samples = [SAMPLE, Sample(id="8")]
    path = tmp_path / f"references{suffix.upper()}"
    path.write_bytes(start + WRITERS[suffix](samples).encode())
    assert list(read_samples(path)) == samples
    assert list(read_samples(str(path))) == samples


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("id,reference\n1,\n", {"id": "1"}, id="an empty cell is missing"),
        pytest.param('id,reference\n1,""\n', {"id": "1"}, id="an empty quoted cell too"),
        pytest.param("id,reference\n1, \n", {"id": "1", "reference": " "}, id="a blank is no void"),
        pytest.param("id,reference_contexts\n1, \n", {"id": "1"}, id="unless a list is due"),
        pytest.param("id,reference\n1,1808\n", {"id": "1", "reference": "1808"}, id="a number"),
        pytest.param("id,reference\n1,NA\n", {"id": "1", "reference": "NA"}, id="NA is a text"),
        pytest.param('\nid\n\n""\n1\n', {"id": "1"}, id="void rows are passed over"),
        pytest.param("id,reference\n,\n1,x\n,\n", {"id": "1", "reference": "x"}, id="Excel's too"),
        pytest.param("id,reference\r1,x\r", {"id": "1", "reference": "x"}, id="an old Mac's lines"),
        pytest.param("id,reference\n1,x", {"id": "1", "reference": "x"}, id="no line break last"),
        pytest.param(
            'id,reference_context_ids\n1,"[""a"", 2, 3.0]"\n',
            {"id": "1", "reference_context_ids": ["a", "2", "3"]},
            id="a list of ids",
        ),
        pytest.param(
            "id,reference_context_ids\n1,[]\n",
            {"id": "1", "reference_context_ids": []},
            id="an empty list is no void",
        ),
        pytest.param(
            'id,reference_context_ids\n1,"{""a"": 2, ""b"": null}"\n',
            {"id": "1", "reference_context_ids": {"a": 2}},
            id="grades",
        ),
        pytest.param(
            "id,reference_contexts\n1,null\n", {"id": "1"}, id="null in a cell is missing"
        ),
        pytest.param(
            'id,reference_spans\n1,"[{""document"": 4, ""start"": 0, ""end"": 9}]"\n',
            {"id": "1", "reference_spans": [Span("4", 0, 9)]},
            id="spans",
        ),
        pytest.param(
            'id,topic,metadata\n1,tax,"{""year"": 1}"\n',
            {"id": "1", "metadata": {"year": 1, "topic": "tax"}},
            id="a column for the metadata",
        ),
        pytest.param("id,topic\n1,\n", {"id": "1"}, id="an empty cell for the metadata"),
        pytest.param(
            "id,persona_name\n1,clerk\n",
            {"id": "1", "metadata": {"persona_name": "clerk"}},
            id="a column of Ragas",
        ),
    ],
)
def test_csv(tmp_path, text, expected):
    path = tmp_path / "references.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert list(read_samples(path, metadata_columns=["topic"])) == [Sample(**expected)]


@pytest.mark.parametrize("missing", ["null", "NaN"])
def test_a_missing_value_in_jsonl(tmp_path, missing):
    path = tmp_path / "references.jsonl"
    path.write_text(f'\n{{"id": 7.0, "reference": {missing}, "reference_contexts": {missing}}}\n')
    assert list(read_samples(path)) == [Sample(id="7")]


GOOD = b'{"id": 1}\n'

BROKEN = {
    "empty .jsonl": (".jsonl", b"", "f.jsonl: it holds no sample: give a file with"),
    "blank .jsonl": (".jsonl", b"\n \n", "f.jsonl: it holds no sample"),
    "empty .json": (".json", b"", "f.json: it holds no sample"),
    "empty list": (".json", b"[]", "f.json: it holds no sample"),
    "empty .csv": (".csv", b"", "f.csv: it holds no sample"),
    "header only": (".csv", b"id\n", "f.csv: it holds no sample"),
    "line 7": (".jsonl", GOOD * 6 + b'{"id": 1,}\n' + GOOD, "f.jsonl, line 7: no JSON: "),
    "line 7 is a list": (".jsonl", GOOD * 6 + b"[1]\n", "f.jsonl, line 7: [1] is no JSON object"),
    "line 7 is cut off": (".jsonl", GOOD * 6 + b'{"id": ', "f.jsonl, line 7: no JSON: Expecting"),
    "line 7, a field": (
        ".jsonl",
        GOOD * 6 + b'{"reference_contexts": [1]}\n',
        "f.jsonl, line 7: reference_contexts[0]: 1 is a int: give its text",
    ),
    "line 7, a name": (
        ".jsonl",
        GOOD * 6 + b'{"referense": "x"}',
        "f.jsonl, line 7: unknown field 'referense' (kept if named in metadata_columns): "
        "did you mean 'reference'",
    ),
    "a list in lines": (".jsonl", b"[\n{}\n]", "line 1: no JSON: Expecting value at character 2"),
    "deep brackets": (".jsonl", b"[" * 200_000, "f.jsonl, line 1: no JSON: "),
    "a long number": (".jsonl", b'{"id": ' + b"1" * 5000 + b"}", "f.jsonl, line 1: no JSON: "),
    "lines in .json": (
        ".json",
        b'{"id": 1}\n{"id": 2}\n',
        "f.json, line 2: no JSON: Extra data at character 1: write one JSON list (one object "
        "per line belongs into a .jsonl file)",
    ),
    "an object in .json": (".json", GOOD, "f.json: {'id': 1} is no list: write one JSON list"),
    "a bad row in .json": (".json", b"[{}, 7]", "f.json, row 2: 7 is no JSON object: write the"),
    "a bad field in .json": (".json", b'[{"reference": 7}]', "f.json, row 1: reference: 7 is a"),
    "an unknown column": (
        ".csv",
        b"id,referense\n1,x\n",
        "f.csv, line 1, the header: unknown column 'referense' (kept if named in "
        "metadata_columns): did you mean 'reference' or",
    ),
    "a column by another name": (".csv", b"question\nq\n", "did you mean 'user_input'?"),
    "no header": (
        ".csv",
        b"What is it?,x\nWhere is it?,y\n",
        "f.csv, line 1, the header: unknown column 'What is it?' (kept",
    ),
    "a column twice": (".csv", b"id,id\n1,2\n", "the header: two columns are named 'id': leave"),
    "semicolons": (".csv", b"id;reference\n1;x\n", "part the cells by commas, or read it by"),
    "pandas' index": (
        ".csv",
        b",id\n0,1\n",
        "unknown column '' (kept if named in metadata_columns): an index that pandas wrote",
    ),
    "too many cells": (
        ".csv",
        b'id,reference_context_ids\n1,[]\n2,["a", "b"]\n',
        "f.csv, line 3: 3 cells for 2 columns: put a cell that holds a comma",
    ),
    "too few cells": (".csv", b"id,reference\n1,x\n2\n", "f.csv, line 3: 1 cells for 2 columns"),
    "after a cell of two lines": (".csv", b'id,reference\n1,"x\ny"\n2\n', "f.csv, line 4: 1 cells"),
    "an open quote": (
        ".csv",
        b'id,reference\n1,x\n2,"y\n3,z\n4,z\n',
        "f.csv, line 3: no CSV: unexpected end of data: double the quotes",
    ),
    "a stray quote": (".csv", b'id,reference\n1,"y" z\n', "f.csv, line 2: no CSV: "),
    "a long cell": (".csv", b"id\n" + b"x" * 200_000, "f.csv, line 2: no CSV: field larger than"),
    "no list in a cell": (
        ".csv",
        b"id,reference_contexts\n1,[]\n2,a text\n",
        'f.csv, line 3: reference_contexts: \'a text\' is no list in JSON: write ["a", "b"], as '
        "json.dumps does",
    ),
    "Python's list in a cell": (
        ".csv",
        b"id,reference_context_ids\n1,\"['a', 'b']\"\n",
        'reference_context_ids: "[\'a\', \'b\']" is no list in JSON: write ["a", "b"], or with',
    ),
    "deep brackets in a cell": (
        ".csv",
        b"reference_spans\n" + b"[" * 100_000,
        "is no list in JSON",
    ),
    "a number for a list": (".csv", b"reference_context_ids\n5\n", "'5' is no list in JSON"),
    "no object in a cell": (".csv", b"metadata\nx\n", "metadata: 'x' is no object in JSON: write"),
    "a list for the metadata": (".csv", b"metadata,topic\n[],x\n", "[] is a list: give a dict"),
    "no span in a cell": (".csv", b"reference_spans\n[1]\n", "reference_spans[0]: 1 is no Span"),
    "no grade in a cell": (
        ".csv",
        b'reference_context_ids\n"{""a"": 0.5}"\n',
        "line 2: reference_context_ids['a']: the grade 0.5 is no integer",
    ),
    "Latin-1": (
        ".csv",
        "id,reference\n1,x\n2,née\n".encode("latin-1"),
        "f.csv, line 3: byte 0xe9 at character 4 is no UTF-8: save the file as UTF-8",
    ),
    "Latin-1 in .jsonl": (".jsonl", GOOD + b'{"id": "\xe9"}', "f.jsonl, line 2: byte 0xe9 at cha"),
    "Latin-1 in .json": (".json", b'[\n\n"\xe9"]', "f.json, line 3: byte 0xe9 at character 2 is"),
    "UTF-16": (".csv", "id\n1\n".encode("utf-16"), "f.csv, line 1: byte 0xff at character 1 is"),
    "a letter cut in two": (".jsonl", GOOD + '{"é'.encode()[:-1], "line 2: byte 0xc3 at character"),
}


@pytest.mark.parametrize(("suffix", "content", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_says_where_and_what_to_do(tmp_path, suffix, content, message):
    path = tmp_path / f"f{suffix}"
    path.write_bytes(content)
    with pytest.raises(InvalidSampleError) as caught:
        list(read_samples(path, metadata_columns=["topic"]))
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet"])
def test_no_such_file(tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"none{suffix}"
    with pytest.raises(InvalidSampleError, match=f"none{suffix}: it can't be read: No such file"):
        list(read_samples(path))
    path.mkdir()
    with pytest.raises(InvalidSampleError, match=f"none{suffix}: it can't be read: Is a dir"):
        list(read_samples(path))


@pytest.mark.parametrize("name", ["references.xlsx", "references", "a text"])
def test_an_unknown_suffix(name):
    with pytest.raises(InvalidSampleError, match=r"it is one of \.jsonl, \.json, \.csv, \.parquet"):
        read_samples(name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    ("suffix", "start", "end"),
    [(".jsonl", '{"id": 1}\n', '{"id": 2}\n'), (".csv", "id\n1\n", "2\n")],
)
def test_a_line_is_read_before_the_next_is_written(tmp_path, suffix, start, end):
    path = tmp_path / f"pipe{suffix}"
    os.mkfifo(path)
    read, in_time = threading.Event(), []

    def write():
        with path.open("w") as pipe:
            pipe.write(start)
            pipe.flush()
            in_time.append(read.wait(20))
            pipe.write(end)

    writer = threading.Thread(target=write)
    writer.start()
    samples = read_samples(path)
    assert next(samples) == Sample(id="1")
    read.set()
    assert list(samples) == [Sample(id="2")]
    writer.join()
    assert in_time == [True]


def test_what_precedes_a_broken_line_is_read(tmp_path):
    path = tmp_path / "references.jsonl"
    path.write_bytes(GOOD + b"{")
    samples = read_samples(path)
    assert next(samples) == Sample(id="1")
    with pytest.raises(InvalidSampleError, match="line 2"):
        next(samples)


class TestParquet:
    def path(self, tmp_path, **columns):
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table(columns), tmp_path / "f.parquet")
        return tmp_path / "f.parquet"

    def test_every_field_comes_back(self, tmp_path):
        samples = [SAMPLE, SAMPLE.model_copy(update={"id": "8", "reference_context_ids": None})]
        dumps = [sample.model_dump() for sample in samples]
        path = self.path(tmp_path, **{name: [d[name] for d in dumps] for name in dumps[0]})
        assert list(read_samples(path)) == samples

    def test_wherever_it_is_cut_off_it_says_so(self, tmp_path):
        path = self.path(tmp_path, id=["1", "2"], user_input=["q", "r"])
        whole = path.read_bytes()
        for end in range(0, len(whole), 7):
            path.write_bytes(whole[:end])
            with pytest.raises(InvalidSampleError, match=r"f\.parquet: no Parquet, or cut off: "):
                list(read_samples(path))

    def test_pages_that_are_overwritten(self, tmp_path):
        path = self.path(tmp_path, id=["1"] * 1000, user_input=[f"q{i}" for i in range(1000)])
        whole = path.read_bytes()
        path.write_bytes(whole[:4] + b"\xff" * 200 + whole[204:])
        with pytest.raises(InvalidSampleError, match=r"f\.parquet: "):
            list(read_samples(path))

    def test_a_bad_row(self, tmp_path):
        path = self.path(tmp_path, id=[1, 2], reference_contexts=[["a"], [None]])
        with pytest.raises(InvalidSampleError, match=r"f\.parquet, row 2: reference_contexts\[0\]"):
            list(read_samples(path))

    def test_a_text_that_is_a_number(self, tmp_path):
        path = self.path(tmp_path, user_input=[1, 2])
        with pytest.raises(InvalidSampleError, match=r"row 1: user_input: 1 is a int: give a str"):
            list(read_samples(path))

    def test_an_unknown_column(self, tmp_path):
        path = self.path(tmp_path, __index_level_0__=[1])
        with pytest.raises(InvalidSampleError, match=r"f\.parquet: unknown column .*index=False"):
            list(read_samples(path))

    def test_no_rows(self, tmp_path):
        with pytest.raises(InvalidSampleError, match="it holds no sample"):
            list(read_samples(self.path(tmp_path, id=[])))

    def test_without_pyarrow(self, tmp_path, monkeypatch):
        path = tmp_path / "f.parquet"
        path.write_bytes(b"")
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(MissingExtraError, match=r"needs pyarrow.*pip install 'ctxeval\[arrow"):
            list(read_samples(path))


TEXT = st.text(min_size=1, max_size=20)
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5)


@st.composite
def side(draw, name, graded):
    """Contexts, ids and spans of one side: any of them, of one length."""
    size = draw(st.integers(0, 3))
    spans = st.builds(lambda doc, start, more: Span(doc, start, start + more), TEXT, *[NATURAL] * 2)
    ids = st.lists(TEXT, min_size=size, max_size=size)
    grades = st.dictionaries(TEXT, st.integers(), min_size=size, max_size=size)
    return {
        f"{name}_contexts": draw(st.none() | st.lists(st.text(), min_size=size, max_size=size)),
        f"{name}_context_ids": draw(st.none() | ids | (grades if graded else ids)),
        f"{name}_spans": draw(st.none() | st.lists(spans, min_size=size, max_size=size)),
    }


NATURAL = st.integers(0, 99)
SAMPLES = st.builds(
    lambda texts, retrieved, reference: Sample(**texts, **retrieved, **reference),
    st.fixed_dictionaries(
        {},
        optional={
            "id": TEXT,
            "user_input": TEXT,  # an empty one is no cell of a CSV file
            "response": TEXT,
            "reference": TEXT,
            "reference_claims": st.lists(TEXT.filter(str.strip), max_size=3),
            "metadata": st.dictionaries(st.text(max_size=5), JSON, max_size=3),
        },
    ),
    side("retrieved", graded=False),
    side("reference", graded=True),
)


@pytest.mark.parametrize("suffix", WRITERS)
@given(samples=st.lists(SAMPLES, min_size=1, max_size=4))
def test_any_samples_come_back(tmp_path_factory, suffix, samples):
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_text(WRITERS[suffix](samples), encoding="utf-8", newline="")
    assert list(read_samples(path)) == samples


PIECES = st.sampled_from(
    [b"id", b"reference_contexts", b"{", b"}", b"[", b"]", b":", b",", b'"', b"\n", b"\r", b"\xe9"]
)


@pytest.mark.parametrize("suffix", WRITERS)
@given(content=st.binary() | st.lists(PIECES, max_size=30).map(b"".join))
def test_any_bytes_are_samples_or_a_file_that_is_named(tmp_path_factory, suffix, content):
    path = tmp_path_factory.getbasetemp() / f"bytes{suffix}"
    path.write_bytes(content)
    try:
        samples, said = list(read_samples(path)), ""
    except InvalidSampleError as error:
        samples, said = [], str(error)
    assert bool(samples) != said.startswith(str(path))
