"""Real LlamaIndex parts, with scripts in the place of models."""

import itertools
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import ChatMessage, ChatResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from pydantic import Field, PrivateAttr

from ctxeval.testing import ScriptedLLM


def node(id: str, text: str = "", source: str = "", **metadata: Any) -> TextNode:
    made = TextNode(id_=id, text=text or f"text of {id}", metadata=metadata)
    if source:
        made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=source)
    return made


def hits(*nodes: Any) -> list[NodeWithScore]:
    """Score nodes 1, 1/2, 1/3, …; a string is made a node of that id."""
    made = [node(one) if isinstance(one, str) else one for one in nodes]
    return [NodeWithScore(node=one, score=1 / rank) for rank, one in enumerate(made, start=1)]


class Fixed(BaseRetriever):
    """Gives the same nodes for any question, or what is set for it; raises what is an exception."""

    def __init__(self, *nodes: Any, by_question: dict[str, Any] | None = None) -> None:
        self.nodes = nodes
        self.by_question = by_question or {}
        self.asked: list[str] = []
        super().__init__()

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        self.asked.append(query_bundle.query_str)
        given = self.by_question.get(query_bundle.query_str, self.nodes)
        if isinstance(given, Exception):
            raise given
        return hits(*given)


class Letters(BaseEmbedding):
    """Embeds a text by how often it has each of a few letters."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return [text.count(letter) + 0.01 for letter in "abcdefgh"]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def index(*nodes: TextNode) -> VectorStoreIndex:
    return VectorStoreIndex(nodes=list(nodes), embed_model=Letters())


_NUMBERS = itertools.count()


class Judge(CustomLLM):
    """A LlamaIndex model that judges by the rules of a `ScriptedLLM`, or as it is told.

    Of `replies` the first ones answer first: a `ChatResponse`, a text, or an exception.
    """

    temperature: float = 0.0
    model_name: str = "scripted"
    api_key: str = "sk-secret123"
    refuses: tuple[str, ...] = ()
    _script: ScriptedLLM = PrivateAttr()
    _replies: list[Any] = PrivateAttr()
    _calls: list[dict[str, Any]] = PrivateAttr(default_factory=list)

    def __init__(self, script: ScriptedLLM | None = None, replies: Any = (), **fields: Any) -> None:
        # A name of its own, so that none gets another's kept verdicts.
        super().__init__(**{"model_name": f"scripted-{next(_NUMBERS)}", **fields})
        self._script = script or ScriptedLLM()
        self._replies = list(replies)

    @property
    def calls(self) -> list[dict[str, Any]]:
        return self._calls

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self.model_name, is_chat_model=True)

    @llm_chat_callback()
    def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        self._calls.append(kwargs)
        for name in self.refuses:
            if name in kwargs:
                raise TypeError(f"chat() got an unexpected keyword argument '{name}'")
        if self._replies:
            reply = self._replies.pop(0)
            if isinstance(reply, Exception):
                raise reply
            return said(reply) if isinstance(reply, str) else reply
        plain = [{"role": m.role.value, "content": m.content} for m in messages]
        return said(self._script.answer(plain))

    def complete(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def stream_complete(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def said(text: str, raw: Any = None, **kwargs: Any) -> ChatResponse:
    return ChatResponse(message=ChatMessage(role="assistant", content=text), raw=raw, **kwargs)


class Caller(FunctionCallingLLM):
    """Calls the tools that it is told to, one per turn, and then answers."""

    turns: list[tuple[str, dict[str, Any]]] = Field(default=[])
    answer: str = "the answer"
    _turn: int = PrivateAttr(default=0)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        return {"messages": list(chat_history or [])}

    def get_tool_calls_from_response(
        self, response: Any, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        return response.message.additional_kwargs.get("chosen", [])

    def _next(self) -> ChatResponse:
        turn = self._turn
        self._turn += 1
        if turn >= len(self.turns):
            return said(self.answer)
        name, arguments = self.turns[turn]
        chosen = ToolSelection(tool_id=f"call-{turn}", tool_name=name, tool_kwargs=arguments)
        message = ChatMessage(role="assistant", content="", additional_kwargs={"chosen": [chosen]})
        return ChatResponse(message=message)

    def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        return self._next()

    async def achat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        return self._next()

    async def astream_chat(self, messages: Any, **kwargs: Any) -> Any:
        async def stream() -> Any:
            yield self._next()

        return stream()

    def _unused(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    complete = stream_chat = stream_complete = _unused
    acomplete = astream_complete = _unused
