"""Stale references are told before they turn scores to 0."""

import uuid

import pytest

import ctxeval
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
    assert strict.reference_spans == (Span("d", 10, 20),)


def test_a_place_keeps_its_characters_beside_the_ids():
    references = References.from_spans(
        SAMPLES[1:], {"d1": Span("d", 90, 120), "e0": Span("e", 0, 9)}
    )
    expected = references.lookup("q2").sample
    assert len(expected.reference_spans) == 2
    retrieved = {"retrieved_context_ids": ["d1"], "retrieved_spans": [Span("d", 90, 120)]}
    scores = ctxeval.score(
        expected.model_copy(update=retrieved), ["span_recall", "id_based_context_recall"]
    )
    assert scores["span_recall"].value == 10 / 15
    assert scores["id_based_context_recall"].value == 0.5


def test_places_that_no_chunk_holds_are_warned_of_and_kept():
    chunks = {"x": Span("d", 10, 20), "y": Span("e", 3, 9)}
    with pytest.warns(UserWarning, match=r"no chunk holds 1 of the places, expected by \w+: are"):
        references = References.from_spans(SAMPLES, chunks)
    ((key, places),) = references.unresolved.items()
    assert (key, places) == (SAMPLES[1].key, (Span("d", 95, 105),))
    assert references.lookup("q1").sample.reference_context_ids == ("x",)
    assert references.lookup("q2").sample.reference_context_ids == ("y",)
    with pytest.raises(InvalidArgumentError, match="no chunk holds 1 of"):
        References.from_spans(SAMPLES, chunks, strict=True)


def test_a_sample_of_which_no_place_was_found_is_skipped_by_id():
    with pytest.warns(UserWarning, match="no chunk holds 2"):
        references = References.from_spans(SAMPLES, {"x": Span("d", 10, 20)})
    expected = references.lookup("q2").sample
    assert expected.reference_context_ids is None
    assert expected.reference_spans == SAMPLES[1].reference_spans


def test_chunks_of_other_documents_are_an_error():
    with pytest.raises(InvalidArgumentError, match="no chunk holds 3 of the places"):
        References.from_spans(SAMPLES, {"x": Span("z", 10, 20)})


class Retriever:
    """Brings the chunks that hold what is asked for, with ids as a framework has them."""

    def __init__(self, chunks):
        self.chunks = chunks

    def invoke(self, text):
        words = text.casefold()
        return [
            Chunk(0, name, "document_id", held)
            for name, held in self.chunks.items()
            if held.casefold() in words or words in held.casefold()
        ]


def test_a_retriever_is_asked_for_the_expected_texts():
    references = References(
        [
            {"id": "moved", "reference_context_ids": ["a"], "reference_contexts": ["Text one."]},
            {"id": "there", "reference_context_ids": ["b"], "reference_contexts": ["Text two."]},
            {"id": "gone", "reference_context_ids": ["c"], "reference_contexts": ["Text nine."]},
            {"id": "?", "user_input": "What?", "reference_context_ids": ["d"]},
        ]
    )
    retriever = Retriever({"new": "Text one.", "b": "Text two.", "z": "What? That."})
    for asked in (retriever, retriever.invoke):
        found = references.check(asked)
        assert found.missing == {"moved": ("a",), "gone": ("c",)}
        assert found.moved == {"moved": {"a": "new"}}
        assert found.unseen == {"?": ("d",)}
        assert "1 did not come from the retriever" in str(found)


def test_retrievers_and_stores_of_the_frameworks():
    documents = pytest.importorskip("langchain_core.documents")
    embeddings = pytest.importorskip("langchain_core.embeddings")
    vectorstores = pytest.importorskip("langchain_core.vectorstores")
    store = vectorstores.InMemoryVectorStore(embeddings.DeterministicFakeEmbedding(size=8))
    store.add_documents(
        [
            documents.Document(id="new", page_content="Text one."),
            documents.Document(id="b", page_content="Text two."),
        ]
    )
    references = References(
        [
            {"id": "1", "reference_context_ids": ["a"], "reference_contexts": ["Text one."]},
            {"id": "2", "reference_context_ids": ["b"]},
        ]
    )
    found = references.check(store)
    assert (found.missing, found.moved) == ({"1": ("a",)}, {"1": {"a": "new"}})
    asked = references.check(store.as_retriever())
    assert (asked.missing, asked.moved, asked.unseen) == (found.missing, found.moved, {})


def test_a_document_store_of_llamaindex():
    schema = pytest.importorskip("llama_index.core.schema")
    docstore = pytest.importorskip("llama_index.core.storage.docstore")
    store = docstore.SimpleDocumentStore()
    store.add_documents([schema.TextNode(id_="new", text="Text one.")])
    references = References(
        [{"id": "1", "reference_context_ids": ["a"], "reference_contexts": ["Text one."]}]
    )
    found = references.check(store)
    assert (found.missing, found.moved) == ({"1": ("a",)}, {"1": {"a": "new"}})
