"""Where a chunk's id, score and place come from, and what is said where there are none."""

import logging
import uuid

import numpy as np
import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from small_chains import Fixed

from ctxeval import Span, text_id

UUID = uuid.UUID(int=7)


def chunks(handler, *documents):
    Fixed(documents=list(documents)).invoke("q", config={"callbacks": [handler]})
    return handler.records[-1].chunks()


def identity(handler, *documents):
    return [(chunk.id, chunk.id_source) for chunk in chunks(handler, *documents)]


IDS = {
    "Document.id": ({"id": "a"}, {"id": "b", "chunk_id": "c"}, ("a", "document_id")),
    "chunk_id": ({}, {"chunk_id": "a", "_id": "b"}, ("a", "metadata:chunk_id")),
    "_id": ({}, {"_id": "a", "id": "b"}, ("a", "metadata:_id")),
    "id": ({}, {"id": "a", "pk": "b"}, ("a", "metadata:id")),
    "pk": ({}, {"pk": 12, "uuid": "b"}, ("12", "metadata:pk")),
    "uuid": ({}, {"uuid": UUID, "result_id": "b"}, (str(UUID), "metadata:uuid")),
    "result_id": ({}, {"result_id": "a", "doc_id": "b"}, ("a", "metadata:result_id")),
    "doc_id": ({}, {"doc_id": "a", "document_id": "b"}, ("a", "metadata:doc_id")),
    "document_id": ({}, {"document_id": "a", "source": "b"}, ("a", "metadata:document_id")),
    "text": ({}, {"source": "b"}, (text_id("t"), "text_hash")),
    "Document.id as a number": ({"id": 5}, {}, ("5", "document_id")),
    "0 is an id": ({}, {"pk": 0, "uuid": "b"}, ("0", "metadata:pk")),
    "numpy's number": ({}, {"pk": np.int64(3)}, ("3", "metadata:pk")),
    "empty is none": ({"id": ""}, {"_id": "", "id": "a"}, ("a", "metadata:id")),
    "True is none": ({}, {"id": True, "pk": "a"}, ("a", "metadata:pk")),
    "a dict is none": ({}, {"id": {"x": 1}, "pk": "a"}, ("a", "metadata:pk")),
    "no number is none": ({}, {"id": float("nan"), "pk": "a"}, ("a", "metadata:pk")),
}


@pytest.mark.parametrize(("fields", "metadata", "expected"), IDS.values(), ids=IDS)
def test_the_order_in_which_ids_are_looked_for(handler, fields, metadata, expected):
    assert identity(handler, Document("t", metadata=metadata, **fields)) == [expected]


@pytest.mark.parametrize(
    ("id_key", "expected"),
    [
        pytest.param("key", ("k", "metadata:key"), id="metadata key"),
        pytest.param("number", ("8", "metadata:number"), id="a number"),
        pytest.param("missing", ("d", "document_id"), id="a key that is missing"),
        pytest.param("none", ("d", "document_id"), id="a key without value"),
        pytest.param(lambda one: f"{one.id}/{one.page_content}", ("d/t", "id_key"), id="callable"),
        pytest.param(lambda one: one.metadata["number"], ("8", "id_key"), id="gives a number"),
        pytest.param(lambda one: None, ("d", "document_id"), id="gives nothing"),
        pytest.param(lambda one: one.metadata["absent"], ("d", "document_id"), id="fails"),
    ],
)
def test_an_id_key_goes_before_all_others(make_handler, id_key, expected):
    handler = make_handler(id_key=id_key)
    document = Document("t", id="d", metadata={"key": "k", "number": 8, "none": None})
    assert identity(handler, document) == [expected]


def test_an_id_key_that_fails_is_told_once(make_handler, caplog):
    handler = make_handler(id_key=lambda one: one.metadata["never there"])
    with caplog.at_level(logging.WARNING, "ctxeval"):
        chunks(handler, Document("t", id="a"), Document("u", id="b"))
    (line,) = [one for one in caplog.messages if "id_key failed" in one]
    assert "KeyError('never there')" in line


class Loses(BaseRetriever):
    """Gives what the inner retriever found, without its ids, and a text of its own."""

    inner: object
    metadata_of: object = lambda n: {"n": n}

    def _get_relevant_documents(self, query, *, run_manager):
        config = {"callbacks": run_manager.get_child()}
        found = self.inner.invoke(query, config=config)
        kept = [
            Document(one.page_content, metadata=self.metadata_of(n)) for n, one in enumerate(found)
        ]
        return [*kept, Document("its own", metadata={"pk": "own"})]


def test_lost_ids_come_from_the_same_text_inside(handler):
    Loses(inner=Fixed()).invoke("q", config={"callbacks": [handler]})
    assert [(c.id, c.id_source) for c in handler.records[0].chunks()] == [
        ("d1", "document_id"),
        ("d2", "document_id"),
        ("own", "metadata:pk"),
    ]


def test_lost_ids_come_through_two_levels(handler):
    Loses(inner=Loses(inner=Fixed())).invoke("q", config={"callbacks": [handler]})
    assert [c.id for c in handler.records[0].chunks()] == ["d1", "d2", "own", "own"]


def test_an_id_from_inside_goes_before_metadata_but_no_hash_does(handler):
    without = Fixed(documents=[Document("t"), Document("u", id="inside")])
    Loses(inner=without, metadata_of=lambda n: {"pk": n}).invoke(
        "q", config={"callbacks": [handler]}
    )
    assert [(c.id, c.id_source) for c in handler.records[0].chunks()[:2]] == [
        ("0", "metadata:pk"),
        ("inside", "document_id"),
    ]


@pytest.mark.parametrize(
    ("metadata", "score"),
    [
        pytest.param({"score": 0.5, "relevance_score": 0.1}, 0.5, id="score"),
        pytest.param({"relevance_score": np.float32(0.25)}, 0.25, id="numpy"),
        pytest.param({"similarity_score": 1}, 1.0, id="integer"),
        pytest.param({"mmr_score": "0.5", "_distance": 0.75}, 0.75, id="a text is no score"),
        pytest.param({"_relevance_score": float("nan")}, None, id="no number"),
        pytest.param({"@search.score": 12.5}, 12.5, id="Azure"),
        pytest.param({"score": True}, None, id="True"),
        pytest.param({"score": [0.5]}, None, id="a list"),
        pytest.param({}, None, id="none"),
    ],
)
def test_scores(handler, metadata, score):
    (chunk,) = chunks(handler, Document("t", metadata=metadata))
    assert chunk.score == score


@pytest.mark.parametrize(
    ("metadata", "span"),
    [
        pytest.param({"source": "s", "start_index": 3}, Span("s", 3, 7), id="both"),
        pytest.param({"source": "s"}, None, id="no start"),
        pytest.param({"start_index": 3}, None, id="no source"),
        pytest.param({"source": "s", "start_index": -1}, None, id="not found by the splitter"),
        pytest.param({"source": "s", "start_index": True}, None, id="no number"),
    ],
)
def test_places(handler, metadata, span):
    (chunk,) = chunks(handler, Document("text", metadata=metadata))
    assert chunk.span == span


def test_ids_that_are_hashes_are_told_once(make_handler, caplog):
    references = [{"user_input": "q", "reference_context_ids": ["k1"]}]
    handler = make_handler(references=references)
    with caplog.at_level(logging.WARNING, "ctxeval"):
        for _ in range(3):
            chunks(handler, Document("t", metadata={"key": "k1"}), Document("u", id="b"))
            handler.flush()
    assert handler.recorder.id_sources == {"text_hash": 3, "document_id": 3}
    hashes, elsewhere = handler.recorder.advice
    assert hashes.startswith("3 of 6 ids are text hashes")
    assert elsewhere == (
        "in 3 queries no expected id was captured, but the chunks' metadata 'key' holds some: "
        "give id_key='key'"
    )
    lines = [record.getMessage() for record in caplog.records if record.name == "ctxeval"]
    assert len(lines) == len({line.split(":")[1][:20] for line in lines}) == 2


def test_ids_that_fit_need_no_advice(make_handler, caplog):
    handler = make_handler(references=[{"user_input": "q", "reference_context_ids": ["a"]}])
    with caplog.at_level(logging.WARNING, "ctxeval"):
        chunks(handler, Document("t", id="a"))
    assert handler.recorder.advice == []
    assert [one for one in caplog.records if one.name == "ctxeval"] == []
