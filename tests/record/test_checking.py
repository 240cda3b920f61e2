"""Stale references are told before they turn scores to 0."""

import uuid

import pytest

from ctxeval import Chunk, InvalidArgumentError, References, Sample, Span

REFERENCES = References(
    [
        {
            "id": "q1",
            "reference_context_ids": ["a", "b"],
            "reference_contexts": ["Text of a.", "Text  of\nb."],
        },
        {"id": "q2", "reference_context_ids": {"c": 2}},
    ]
)


class Document:
    def __init__(self, id, page_content):
        self.id, self.page_content = id, page_content


class Store:
    def __init__(self, chunks):
        self.chunks = chunks

    def records(self):
        from ctxeval import QueryRecord, Retrieval

        yield QueryRecord("r", "q", retrievals=[Retrieval("q", tuple(self.chunks))])


INDEXES = [
    pytest.param(["a", "c", "x"], {}, id="ids"),
    pytest.param({"a", "c"}, {}, id="a set of ids"),
    pytest.param({"a": "Text of a.", "c": None, "x": "Text of b."}, {"b": "x"}, id="texts by id"),
    pytest.param(
        [Document("a", "A"), Document("c", "C"), Document("x", "Text of b.")],
        {"b": "x"},
        id="documents",
    ),
    pytest.param(
        Store([Chunk(0, "a", "", "A"), Chunk(1, "c", "", "C"), Chunk(2, "x", "", "Text of b.")]),
        {"b": "x"},
        id="captured records",
    ),
]


@pytest.mark.parametrize(("index", "moved"), INDEXES)
def test_what_is_gone_and_where_it_went(index, moved):
    found = REFERENCES.check(index)
    assert found
    assert found.missing == {"q1": ("b",)}
    assert found.moved == ({"q1": moved} if moved else {})
    assert str(found).startswith("1 of 3 expected ids are not in the index\n  q1: b")


def test_nothing_is_stale():
    found = REFERENCES.check(["a", "b", "c"])
    assert not found
    assert str(found) == "0 of 3 expected ids are not in the index"


def test_ids_of_any_type():
    name = uuid.uuid4()
    references = References([{"id": 1, "reference_context_ids": [7, name]}])
    assert not references.check([7, name])


@pytest.mark.parametrize("index", ["a text", 7, [None]])
def test_no_index(index):
    with pytest.raises(InvalidArgumentError, match="index"):
        REFERENCES.check(index)


SAMPLES = [
    Sample(user_input="q1", reference_spans=[Span("d", 10, 20)]),
    Sample(user_input="q2", reference_spans=[Span("d", 95, 105), Span("e", 0, 5)]),
]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        pytest.param(50, [("d0",), ("d50", "d100", "e0")], id="chunks of 50"),
        pytest.param(15, [("d0", "d15"), ("d90", "e0")], id="of 15"),
    ],
)
def test_places_survive_another_chunking(size, expected):
    chunks = {
        f"{document}{start}": Span(document, start, start + size)
        for document in "de"
        for start in range(0, 150, size)
    }
    references = References.from_spans(SAMPLES, chunks)
    found = [references.lookup(q).sample.reference_context_ids for q in ("q1", "q2")]
    assert found == expected


def test_from_captured_chunks_and_with_a_least_overlap():
    chunks = [
        Chunk(0, "one", "", "", span=Span("d", 0, 11)),
        Chunk(1, "two", "", "", span=Span("d", 11, 30)),
        Chunk(2, "none", "", ""),
    ]
    loose = References.from_spans(SAMPLES[:1], chunks).lookup("q1").sample
    strict = References.from_spans(SAMPLES[:1], chunks, min_overlap=2).lookup("q1").sample
    assert loose.reference_context_ids == ("one", "two")
    assert strict.reference_context_ids == ("two",)
    assert strict.metadata["reference_spans"] == [{"document": "d", "start": 10, "end": 20}]


def test_places_that_no_chunk_holds_are_an_error():
    with pytest.raises(InvalidArgumentError, match="no chunk holds the places expected by"):
        References.from_spans(SAMPLES, {"x": Span("d", 10, 20)})
