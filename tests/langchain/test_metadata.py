"""What the application passes along: per query, kept from its start, and nothing else of it."""

import uuid

import pytest

pytest.importorskip("langchain_core")

from langchain_core.runnables import RunnableLambda
from small_chains import WAYS, Echo, by_invoke, by_stream, echoed, rag, told

REFERENCES = [
    {"id": "1", "user_input": "same", "reference_context_ids": ["d1-same"]},
    {"id": "2", "user_input": "same", "reference_context_ids": ["d2-same"]},
]


def ranks(handler):
    found = {}
    for record in handler.records:
        found[record.metadata["ctxeval_id"]] = record.scores["reciprocal_rank"].value
    return found


@pytest.mark.parametrize("make", [rag, Echo])
def test_each_item_of_a_batch_has_its_own_id(make_handler, make):
    handler = make_handler(references=REFERENCES)
    configs = [{"callbacks": [handler], "metadata": {"ctxeval_id": id}} for id in ("1", "2")]
    make().batch(["same", "same"], configs)
    assert ranks(handler) == {"1": 1, "2": 0.5}


def test_an_inner_call_with_an_id_of_its_own_is_a_query(make_handler):
    handler = make_handler(references=REFERENCES)

    def asks_each(given):
        return [rag().invoke("same", {"metadata": {"ctxeval_id": id}}) for id in given]

    config = {"callbacks": [handler], "metadata": {"ctxeval_id": "both"}}
    RunnableLambda(asks_each).invoke(["1", "2"], config)
    assert ranks(handler) == {"1": 1, "2": 0.5}
    assert [told(one)[:3] for one in handler.records] == [("same", "answer to same", "ok")] * 2


def test_an_inner_call_with_an_id_and_the_handler_again_is_a_query(make_handler):
    handler = make_handler(references=REFERENCES)

    def asks_each(given):
        config = {"callbacks": [handler]}
        for id in given:
            rag().invoke("same", {**config, "metadata": {"ctxeval_id": id}})
        return "done"

    RunnableLambda(asks_each).invoke(["1", "2"], {"callbacks": [handler]})
    assert ranks(handler) == {"1": 1, "2": 0.5}


@pytest.mark.parametrize(
    "retriever",
    [
        pytest.param(lambda: Echo().with_config(metadata={"ctxeval_id": "2"}), id="bound"),
        pytest.param(lambda: Echo(metadata={"ctxeval_id": "2"}), id="constructor"),
    ],
)
def test_a_retriever_brings_its_metadata_where_it_is_the_query(make_handler, retriever):
    handler = make_handler(references=REFERENCES)
    retriever().invoke("same", config={"callbacks": [handler]})
    assert ranks(handler) == {"2": 0.5}
    rag(retriever()).invoke("same", {"callbacks": [handler]})
    assert told(handler.records[1])[:2] == ("same", "answer to same")
    assert handler.records[1].metadata == {}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_expected_may_come_along(handler, way):
    metadata = {"ctxeval_reference_ids": ["d2-q"], "ctxeval_reference": "A.", "user": "u"}
    way(rag(), ["q"], {"callbacks": [handler], "metadata": metadata})
    (record,) = handler.records
    assert record.metadata == {"ctxeval_reference_ids": ["d2-q"], "ctxeval_reference": "A."}
    assert record.reference.reference == "A."
    assert record.scores["reciprocal_rank"].value == 0.5


@pytest.mark.parametrize("way", [by_invoke, by_stream])
def test_metadata_that_is_none_of_ours_is_left_alone(handler, way):
    config = {
        "callbacks": [handler],
        "metadata": {"payload": object(), "thread_id": "7"},
        "tags": ["t"],
        "configurable": {"tenant": "x", "ctxeval": "y"},
    }
    way(rag(), ["q"], config)
    assert [told(record)[:3] for record in handler.records] == [("q", "answer to q", "ok")]
    assert handler.records[0].metadata.keys() <= {"ctxeval"}  # older cores pass these on


def test_the_run_id_names_the_record(handler):
    run_id = uuid.uuid4()
    rag().invoke("q", {"callbacks": [handler], "run_id": run_id})
    assert [record.id for record in handler.records] == [str(run_id)]


def test_a_checkpoint_holds_the_id_and_not_what_is_expected(make_handler):
    pytest.importorskip("langgraph.graph")
    from langgraph.checkpoint.memory import InMemorySaver
    from small_graphs import State, answer, graph, retrieve

    handler, saver = make_handler(references=REFERENCES), InMemorySaver()
    app = graph(State, retrieve, answer, checkpointer=saver)
    thread = {"configurable": {"thread_id": "T"}}
    app.invoke(
        {"question": "same"}, {**thread, "callbacks": [handler], "metadata": {"ctxeval_id": "2"}}
    )
    assert ranks(handler) == {"2": 0.5}
    kept = [checkpoint.metadata for checkpoint in saver.list(thread)]
    assert {one["ctxeval_id"] for one in kept} == {"2"}
    assert not any("reference" in str(one) for one in kept)
    assert told(handler.records[0])[3] == [echoed("same")]
