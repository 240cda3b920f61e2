"""Small real retrievers, models and chains, and every way to call one.

The retrievers need no index: what they find is made of what they are asked, so that a record
that got hold of another query's documents shows.
"""

import asyncio
import re
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

PROMPT = ChatPromptTemplate.from_template("{context}\nQuestion: {question}")


class Echo(BaseRetriever):
    """Finds two documents for any query, named by prefix and query."""

    prefix: str = "d"

    def _get_relevant_documents(self, query, *, run_manager):
        ids = [f"{self.prefix}1-{query}", f"{self.prefix}2-{query}"]
        return [Document(id=id, page_content=f"fact {id}") for id in ids]


class Fixed(BaseRetriever):
    """Finds the same documents for any query: of these ids, or these ones."""

    ids: tuple = ("d1", "d2")
    documents: Any = None

    def _get_relevant_documents(self, query, *, run_manager):
        if self.documents is not None:
            return self.documents
        return [Document(id=id, page_content=f"fact {id}") for id in self.ids]


class Broken(BaseRetriever):
    """Finds nothing but an error."""

    error: Any = ConnectionError("the index is away")

    def _get_relevant_documents(self, query, *, run_manager):
        raise self.error


class Scripted(BaseChatModel):
    """Answers the question that stands last in what it is shown, by `reply(question, turn)`.

    The turn counts its own messages since the question: an agent's first is turn 0.
    """

    reply: Any = lambda question, turn: f"answer to {question}"

    @property
    def _llm_type(self):
        return "scripted"

    def _message(self, messages):
        turn = 0
        for message in reversed(messages):
            if isinstance(message, HumanMessage):
                break
            turn += isinstance(message, AIMessage)
        question = re.split(r"Question: ", str(message.content))[-1]
        said = self.reply(question, turn)
        return said if isinstance(said, AIMessage) else AIMessage(said)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=self._message(messages))])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        message = self._message(messages)
        if message.tool_calls:
            chunk = AIMessageChunk(content="", tool_calls=message.tool_calls)
            yield ChatGenerationChunk(message=chunk)
            return
        for word in re.findall(r"\s*\S+", message.content):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))

    def bind_tools(self, tools, **kwargs):
        return self


def rag(retriever=None, model=None):
    """Make a chain from a question to an answer."""
    found = {"context": retriever or Echo(), "question": RunnablePassthrough()}
    return found | PROMPT | (model or Scripted()) | StrOutputParser()


def by_invoke(runnable, inputs, config):
    return [runnable.invoke(one, config) for one in inputs]


def by_batch(runnable, inputs, config):
    return runnable.batch(inputs, config)


def by_stream(runnable, inputs, config):
    return [list(runnable.stream(one, config)) for one in inputs]


def by_ainvoke(runnable, inputs, config):
    async def ask():
        return await asyncio.gather(*(runnable.ainvoke(one, config) for one in inputs))

    return asyncio.run(ask())


def by_abatch(runnable, inputs, config):
    return asyncio.run(runnable.abatch(inputs, config))


def by_astream(runnable, inputs, config):
    async def ask(one):
        return [chunk async for chunk in runnable.astream(one, config)]

    async def ask_all():
        return await asyncio.gather(*map(ask, inputs))

    return asyncio.run(ask_all())


def by_events(runnable, inputs, config):
    async def ask(one):
        return [event async for event in runnable.astream_events(one, config, version="v2")]

    async def ask_all():
        return await asyncio.gather(*map(ask, inputs))

    return asyncio.run(ask_all())


WAYS = [by_invoke, by_batch, by_stream, by_ainvoke, by_abatch, by_astream, by_events]


def told(record):
    """Sum a record up: question, answer, status, and each stage's name, query, and ids or error."""
    stages = [
        (one.name, one.query, one.error or [chunk.id for chunk in one.chunks])
        for one in record.retrievals
    ]
    return record.question, record.answer, record.status, stages


def echoed(query, prefix="d"):
    """Give the stage that `told` reports of an `Echo`."""
    return "Echo", query, [f"{prefix}1-{query}", f"{prefix}2-{query}"]
