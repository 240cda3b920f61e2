"""A chat's turn is a record: the user's message, the question it was condensed to, the answer."""

import asyncio

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.memory import ChatMemoryBuffer
from llamaindex_captures import Keep, Model, capturing, engine, stages
from llamaindex_parts import Fixed


def context():
    return ContextChatEngine.from_defaults(
        retriever=Fixed("a", "b"),
        llm=Model(),
        node_postprocessors=[Keep(ids=("b",))],
        memory=ChatMemoryBuffer.from_defaults(llm=Model()),
    )


def condense_plus_context():
    return CondensePlusContextChatEngine.from_defaults(
        retriever=Fixed("a", "b"),
        llm=Model(),
        node_postprocessors=[Keep(ids=("b",))],
        memory=ChatMemoryBuffer.from_defaults(llm=Model()),
    )


def condense_question():
    return CondenseQuestionChatEngine.from_defaults(
        query_engine=engine("a", "b", keep=("b",)),
        llm=Model(),
        memory=ChatMemoryBuffer.from_defaults(llm=Model()),
    )


def chat(chats, message):
    return chats.chat(message).response


def achat(chats, message):
    return asyncio.run(chats.achat(message)).response


def stream_chat(chats, message):
    return "".join(chats.stream_chat(message).response_gen)


def astream_chat(chats, message):
    async def read():
        response = await chats.astream_chat(message)
        return "".join([token async for token in response.async_response_gen()])

    return asyncio.run(read())


CHATS = [context, condense_plus_context, condense_question]


@pytest.mark.parametrize("way", [chat, achat, stream_chat, astream_chat])
@pytest.mark.parametrize("make", CHATS)
def test_a_turn(make, way):
    chats = make()
    with capturing() as handler:
        first = way(chats, "first?")
        second = way(chats, "and then?")
    records = handler.records
    assert [record.question for record in records] == ["first?", "and then?"]
    assert [record.answer for record in records] == [first.strip(), second.strip()]
    assert [record.status for record in records] == ["ok", "ok"]
    condenses = make is not context
    asked = [record.retrievals[0].query for record in records]
    assert asked == ["first?", "condensed and then?" if condenses else "and then?"]
    for record in records:
        assert stages(record) == [
            ("retrieve", "Fixed", ["a", "b"]),
            ("rerank", "Keep", ["b"], "of 0"),
            ("prompt", "synthesizer", ["b"], "of 1"),
        ]
        assert [chunk.id for chunk in record.chunks()] == ["b"]


def test_what_is_expected_is_found_by_the_condensed_question():
    references = [
        {"user_input": "first?", "reference_context_ids": ["a"]},
        {"user_input": "condensed and then?", "reference_context_ids": ["b"]},
    ]
    chats = condense_plus_context()
    with capturing(references=references) as handler:
        chats.chat("first?")
        chats.chat("and then?")
    recall = [one.scores["id_based_context_recall"].value for one in handler.records]
    assert recall == [0, 1]


def test_a_chat_without_retrieval_leaves_no_record(caplog):
    chats = SimpleChatEngine.from_defaults(
        llm=Model(), memory=ChatMemoryBuffer.from_defaults(llm=Model())
    )
    with capturing() as handler:
        chats.chat("hello")
        list(chats.stream_chat("again").response_gen)
    assert handler.records == []
    assert "without any retrieval" not in caplog.text


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_stream_that_fails():
    chats = ContextChatEngine.from_defaults(
        retriever=Fixed("a"),
        llm=Model(fails_after=1),
        memory=ChatMemoryBuffer.from_defaults(llm=Model()),
    )
    with capturing() as handler, pytest.raises(ConnectionError):
        list(chats.stream_chat("Who?").response_gen)
    (record,) = handler.records
    assert (record.status, record.answer.strip()) == ("error", "answer")
