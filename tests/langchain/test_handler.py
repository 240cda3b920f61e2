"""The first capture: retrievers and LCEL chains by invoke, ainvoke and batch."""

import asyncio
import copy
import logging

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from ctxeval import InvalidArgumentError, Recorder
from ctxeval.testing import ScriptedLLM
from ctxeval_langchain import CtxEvalCallbackHandler

REFERENCES = [{"user_input": "Q?", "reference_context_ids": ["d2"], "reference": "Fact two."}]


class Kb(BaseRetriever):
    ids: tuple = ("d1", "d2")

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(id=id, page_content=f"fact {id}", metadata={"source": "kb"}) for id in self.ids
        ]


class Broken(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        raise ConnectionError("the index is away")


def chain(retriever=None):
    return (
        {"context": retriever or Kb(), "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template("{context} {question}")
        | FakeListChatModel(responses=["the answer"])
        | StrOutputParser()
    )


@pytest.fixture
def handler():
    made = CtxEvalCallbackHandler(references=REFERENCES)
    made.raise_error = True
    yield made
    assert len(made._open) == 0


def by_invoke(runnable, config):
    return [runnable.invoke("Q?", config)]


def by_ainvoke(runnable, config):
    return [asyncio.run(runnable.ainvoke("Q?", config))]


def by_batch(runnable, config):
    return runnable.batch(["Q?", "R?"], config)


def by_abatch(runnable, config):
    return asyncio.run(runnable.abatch(["Q?", "R?"], config))


WAYS = [by_invoke, by_ainvoke, by_batch, by_abatch]


@pytest.mark.parametrize("way", WAYS)
def test_a_chain(handler, way):
    answers = way(chain(), {"callbacks": [handler]})
    records = handler.records
    assert [record.question for record in records] == ["Q?", "R?"][: len(answers)]
    for record in records:
        assert record.answer == "the answer"
        assert record.status == "ok"
        assert [(c.id, c.id_source, c.text) for c in record.chunks()] == [
            ("d1", "document_id", "fact d1"),
            ("d2", "document_id", "fact d2"),
        ]
        assert record.chunks()[0].metadata == {"source": "kb"}
    assert records[0].scores["reciprocal_rank"].value == 0.5
    assert records[0].retrievals[0].name == "Kb"
    assert records[0].retrievals[0].latency > 0


@pytest.mark.parametrize("way", WAYS)
def test_a_bare_retriever(handler, way):
    way(Kb(), {"callbacks": [handler]})
    record = handler.records[0]
    assert (record.question, record.answer, record.status) == ("Q?", None, "ok")
    assert record.scores["id_based_context_recall"].value == 1


def test_a_handler_bound_to_the_chain(handler):
    chain().with_config(callbacks=[handler]).invoke("Q?")
    assert len(handler.records) == 1


def test_a_handler_given_twice_counts_once(handler):
    chain().with_config(callbacks=[handler]).invoke("Q?", {"callbacks": [handler]})
    assert len(handler.records) == 1


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        pytest.param({"question": "Q?", "lang": "en"}, {"answer": "A"}, id="dict to dict"),
        pytest.param({"input": "Q?"}, AIMessage("A"), id="dict to message"),
        pytest.param(
            [HumanMessage("old"), AIMessage("x"), HumanMessage("Q?")], "A", id="messages to text"
        ),
        pytest.param(
            {"messages": [{"role": "user", "content": "Q?"}]},
            {"messages": [("user", "Q?"), ("assistant", "A")]},
            id="messages in a dict",
        ),
        pytest.param({"frage": "Q?"}, {"result": "A"}, id="the only text there is"),
    ],
)
def test_where_question_and_answer_stand(handler, question, answer):
    def answers(given):
        Kb().invoke("rewritten")
        return answer

    RunnableLambda(answers).invoke(question, {"callbacks": [handler]})
    record = handler.records[0]
    assert (record.question, record.answer) == ("Q?", "A")
    assert record.retrievals[0].query == "rewritten"


def test_a_chain_that_retrieves_nothing_leaves_no_record(handler):
    RunnableLambda(lambda question: "A").invoke("Q?", {"callbacks": [handler]})
    assert handler.records == []


def test_a_retriever_inside_a_retriever(handler):
    class Outer(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            found = Kb(ids=("d1", "d2", "d3")).invoke(
                query, config={"callbacks": run_manager.get_child()}
            )
            return found[1:]

    chain(Outer()).invoke("Q?", {"callbacks": [handler]})
    (record,) = handler.records
    inner, outer = record.stages()
    assert (inner.name, outer.name) == ("Kb", "Outer")
    assert (inner.outermost, outer.outermost) == (False, True)
    assert [c.id for c in record.chunks()] == ["d2", "d3"]
    assert inner.scores["reciprocal_rank"].value == 0.5
    assert outer.scores["reciprocal_rank"].value == 1
    assert record.scores["reciprocal_rank"].value == 1


def test_a_failing_retriever(handler):
    with pytest.raises(ConnectionError):
        chain(Broken()).invoke("Q?", {"callbacks": [handler]})
    (record,) = handler.records
    assert record.status == "error"
    assert record.retrievals[0].error == "ConnectionError: the index is away"
    assert record.scores["reciprocal_rank"].status == "failed"
    assert "the index is away" in record.scores["reciprocal_rank"].reason


def test_a_failed_attempt_does_not_count(handler):
    flaky = (chain(Broken())).with_fallbacks([chain()])
    RunnableLambda(lambda question: flaky.invoke(question)).invoke("Q?", {"callbacks": [handler]})
    answered = [record for record in handler.records if record.status == "ok"]
    assert [len(record.retrievals) for record in answered] == [1]


def test_the_snapshot_is_taken_when_the_retriever_ends(handler):
    def answers(question):
        documents = Kb().invoke(question)
        documents[0].metadata["source"] = "changed"
        documents.clear()
        return "A"

    RunnableLambda(answers).invoke("Q?", {"callbacks": [handler]})
    assert handler.records[0].chunks()[0].metadata == {"source": "kb"}


def test_documents_without_ids_are_named_by_their_text():
    handler = CtxEvalCallbackHandler(references=REFERENCES)
    Kb(ids=(None, None)).invoke("Q?", config={"callbacks": [handler]})
    (record,) = handler.records
    assert {c.id_source for c in record.chunks()} == {"text_hash"}
    assert record.scores["id_based_context_recall"].status == "skipped"


def test_only_its_own_metadata_is_kept(handler):
    Kb().invoke("Q?", config={"callbacks": [handler], "metadata": {"ctxeval_id": "7", "user": "x"}})
    assert handler.records[0].metadata == {"ctxeval_id": "7"}


def test_a_model_judges_what_was_captured():
    llm = ScriptedLLM(relevant={"fact d2"}, supported={"Fact two.": {"fact d2"}})
    handler = CtxEvalCallbackHandler(references=REFERENCES, llm=llm)
    chain().invoke("Q?", {"callbacks": [handler]})
    assert handler.flush(10)
    scores = {name: result.value for name, result in handler.records[0].scores.items()}
    assert scores["context_precision"] == 0.5
    assert scores["context_recall"] == 1
    assert scores["context_relevance"] == 0.5
    assert scores["context_utilization"] == 0.5


def test_the_chain_survives_a_broken_hook(caplog):
    class Odd(Recorder):
        def submit(self, order, trace_id, make, *, traced=False):
            raise KeyError("broken")

    handler = CtxEvalCallbackHandler(Odd())
    with caplog.at_level(logging.WARNING):
        assert chain().invoke("Q?", {"callbacks": [handler]}) == "the answer"
    assert handler.errors == {"KeyError": 1}
    assert caplog.records == []


def test_it_is_never_copied_and_never_falsy(handler):
    assert copy.copy(handler) is handler
    assert copy.deepcopy(handler) is handler
    assert bool(handler)


def test_a_recorder_and_its_options_exclude_each_other():
    with pytest.raises(InvalidArgumentError, match="references"):
        CtxEvalCallbackHandler(Recorder(), references=REFERENCES)


def test_references_in_the_place_of_a_recorder_are_told():
    with pytest.raises(InvalidArgumentError, match="is no Recorder: give references="):
        CtxEvalCallbackHandler(REFERENCES)


def test_two_handlers_may_share_a_recorder():
    recorder = Recorder(references=REFERENCES)
    for _ in range(2):
        Kb().invoke("Q?", config={"callbacks": [CtxEvalCallbackHandler(recorder)]})
    assert len(recorder.records) == 2


def test_many_at_once_do_not_mix():
    class Echo(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(id=query, page_content=query)]

    handler = CtxEvalCallbackHandler()

    async def ask():
        runnable = chain(Echo())
        await asyncio.gather(
            *(runnable.ainvoke(f"q{n}", {"callbacks": [handler]}) for n in range(100))
        )

    asyncio.run(ask())
    assert len(handler.records) == 100
    assert all(record.chunks()[0].id == record.question for record in handler.records)
    assert len(handler._open) == 0
