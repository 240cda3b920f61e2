"""What a retriever returned: it may be no list, hold no documents, and change later on."""

import types
from collections import UserList

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from small_chains import Echo, Fixed, by_ainvoke, by_invoke, told

from ctxeval import text_id


def generated():
    yield Document("t", id="d1")


ODD = {
    "generator": (generated, "iterator"),
    "None": (lambda: None, "NoneType"),
    "text": (lambda: "a text", "str"),
    "dict": (lambda: {"documents": []}, "dict"),
    "set": (lambda: {1, 2}, "set"),
}


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
@pytest.mark.parametrize(("make", "named"), ODD.values(), ids=ODD)
def test_a_result_that_is_no_list_is_unknown_and_not_empty(make_handler, make, named, way):
    handler = make_handler(references=[{"user_input": "q", "reference_context_ids": ["d1"]}])

    class Odd(Echo):
        def _get_relevant_documents(self, query, *, run_manager):
            return make()

    (found,) = way(Odd(), ["q"], {"callbacks": [handler]})
    if isinstance(found, types.GeneratorType):
        assert [one.id for one in found] == ["d1"], "the handler must not consume it"
    (record,) = handler.records
    assert named in record.retrievals[0].error
    score = record.scores["id_based_context_recall"]
    assert (score.value, score.status) == (None, "failed")
    assert named in score.reason


def test_an_empty_list_is_an_empty_retrieval(make_handler):
    handler = make_handler(references=[{"user_input": "q", "reference_context_ids": ["d1"]}])
    Fixed(documents=[]).invoke("q", config={"callbacks": [handler]})
    assert handler.records[0].chunks() == ()
    assert handler.records[0].scores["id_based_context_recall"].value == 0


@pytest.mark.parametrize(
    "items",
    [
        pytest.param(("t",), id="texts in a tuple"),
        pytest.param(UserList(["t"]), id="another kind of list"),
        pytest.param([{"page_content": "t"}], id="dict"),
        pytest.param([{"text": "t", "id": None, "metadata": None}], id="dict with text"),
        pytest.param([types.SimpleNamespace(page_content="t")], id="something like a document"),
    ],
)
def test_items_that_are_no_documents(handler, items):
    class Odd(Echo):
        def _get_relevant_documents(self, query, *, run_manager):
            return items

    Odd().invoke("q", config={"callbacks": [handler]})
    (record,) = handler.records
    assert [(c.id, c.text) for c in record.chunks()] == [(text_id("t"), "t")]


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke])
def test_what_the_chain_does_to_the_documents_later_changes_no_record(handler, way):
    def spoils(question):
        found = Echo().invoke(question)
        found[0].page_content = "changed"
        found[1].metadata["added"] = True
        found[1].id = "changed"
        found.reverse()
        found.pop()
        return "A"

    way(RunnableLambda(spoils), ["q"], {"callbacks": [handler]})
    (record,) = handler.records
    assert told(record)[3] == [("Echo", "q", ["d1-q", "d2-q"])]
    assert [(c.text, dict(c.metadata)) for c in record.chunks()] == [
        ("fact d1-q", {}),
        ("fact d2-q", {}),
    ]
