"""The chains of langchain-classic, and message histories."""

import pytest

pytest.importorskip("langchain_classic.chains")

from langchain_classic.chains import (
    ConversationalRetrievalChain,
    RetrievalQA,
    create_history_aware_retriever,
    create_retrieval_chain,
)
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables.history import RunnableWithMessageHistory
from small_chains import WAYS, Echo, Scripted, echoed, told

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

QUESTIONS = ["what is 1?", "what is 2?"]
HISTORY = [("human", "hello"), ("ai", "hello to you")]


def rewriting():
    return Scripted(reply=lambda question, turn: f"rewritten {question}")


def stuff():
    prompt = ChatPromptTemplate.from_template("{context}\nQuestion: {input}")
    return create_stuff_documents_chain(Scripted(), prompt)


def aware():
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("chat_history"), "{input}"])
    return create_retrieval_chain(
        create_history_aware_retriever(rewriting(), Echo(), prompt), stuff()
    )


def retrieval_qa():
    return RetrievalQA.from_chain_type(Scripted(), retriever=Echo(), return_source_documents=True)


def conversational():
    return ConversationalRetrievalChain.from_llm(
        Scripted(),
        Echo(),
        condense_question_llm=rewriting(),
        condense_question_prompt=PromptTemplate.from_template(
            "{chat_history} Question: {question}"
        ),
    )


def same(question):
    return question


def rewritten(question):
    return f"rewritten {question}"


CHAINS = {
    "create_retrieval_chain": (
        lambda: create_retrieval_chain(Echo(), stuff()),
        lambda question: {"input": question},
        same,
    ),
    "history aware, first turn": (
        aware,
        lambda question: {"input": question, "chat_history": []},
        same,
    ),
    "history aware": (
        aware,
        lambda question: {"input": question, "chat_history": HISTORY},
        rewritten,
    ),
    "RetrievalQA": (retrieval_qa, lambda question: {"query": question}, same),
    "ConversationalRetrievalChain": (
        conversational,
        lambda question: {"question": question, "chat_history": HISTORY},
        rewritten,
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("make", "given", "query"), CHAINS.values(), ids=CHAINS)
def test_one_record_a_question(handler, make, given, query, way):
    way(make(), [given(question) for question in QUESTIONS], {"callbacks": [handler]})
    records = sorted(map(told, handler.records))
    assert [(question, status, stages) for question, _, status, stages in records] == [
        (question, "ok", [echoed(query(question))]) for question in QUESTIONS
    ]
    for question, answer, _, _ in records:
        assert question in answer


@pytest.mark.parametrize("way", WAYS)
def test_a_message_history(handler, way):
    histories = {}

    def history(session_id):
        return histories.setdefault(session_id, InMemoryChatMessageHistory())

    chain = RunnableWithMessageHistory(
        create_retrieval_chain(Echo(), stuff()),
        history,
        input_messages_key="input",
        history_messages_key="chat_history",
        output_messages_key="answer",
    )
    config = {"callbacks": [handler], "configurable": {"session_id": "1"}}
    way(chain, [{"input": question} for question in QUESTIONS], config)
    assert sorted(map(told, handler.records)) == [
        (question, f"answer to {question}", "ok", [echoed(question)]) for question in QUESTIONS
    ]
    assert histories["1"].messages
