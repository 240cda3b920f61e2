"""Read question, answer and chunks out of what LangChain passes around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from ctxeval import Chunk, text_id

_QUESTION_KEYS = ("question", "query", "input", "user_input", "user_query", "prompt", "text")
_ANSWER_KEYS = (
    "answer",
    "output",
    "result",
    "response",
    "final_answer",
    "generation",
    "text",
    "output_text",
)
_HUMAN = ("human", "user")
_AI = ("ai", "assistant")


def question_of(value: Any) -> str | None:
    """Find the question in a chain's input: a text, the last human message, or a known key."""
    if isinstance(value, str):
        return value or None
    if (said := _last_said(value, _HUMAN)) is not None:
        return said
    found = _by_key(value, _QUESTION_KEYS, question_of)
    if found is None:
        found = _last_said(_get(value, "messages"), _HUMAN)
    if found is None and isinstance(value, Mapping):
        texts = [text for text in value.values() if isinstance(text, str) and text]
        found = texts[0] if len(texts) == 1 else None
    return found


def answer_of(value: Any) -> str | None:
    """Find the answer in a chain's output: a text, a message, or a known key."""
    if isinstance(value, str):
        return value
    if isinstance(value, BaseMessage):
        return _text(value)
    if (said := _last_said(value, _AI)) is not None:
        return said
    found = _by_key(value, _ANSWER_KEYS, answer_of)
    return _last_said(_get(value, "messages"), _AI) if found is None else found


def _by_key(value: Any, keys: Sequence[str], read: Any) -> str | None:
    for key in keys:
        inner = _get(value, key)
        if isinstance(inner, (str, BaseMessage, list)) and (found := read(inner)) is not None:
            return str(found)
    return None


def _get(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(key)
    if value is None or isinstance(value, (list, tuple, Document, BaseMessage)):
        return None
    return getattr(value, key, None)


def _last_said(messages: Any, roles: Sequence[str]) -> str | None:
    """Give the last message of one side, whichever way messages are written."""
    if isinstance(messages, BaseMessage):
        messages = [messages]
    if not isinstance(messages, (list, tuple)):
        return None
    for message in reversed(messages):
        if isinstance(message, BaseMessage):
            if message.type in roles and not getattr(message, "tool_calls", None):
                return _text(message)
        elif isinstance(message, Mapping):
            if message.get("role") in roles and isinstance(message.get("content"), str):
                return str(message["content"])
        elif isinstance(message, tuple) and len(message) == 2 and message[0] in roles:
            return str(message[1])
    return None


def _text(message: BaseMessage) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)


def snapshot(documents: Any) -> list[tuple[str | None, str, dict[str, Any]]]:
    """Copy what a retriever returned, so that later changes don't reach it.

    A generator is left alone: to look into it would empty it for the chain.
    """
    if not isinstance(documents, (list, tuple)):
        return []
    return [
        (getattr(one, "id", None), one.page_content, dict(one.metadata))
        if isinstance(one, Document)
        else (None, str(one), {})
        for one in documents
    ]


def chunks_of(copies: Sequence[tuple[str | None, str, dict[str, Any]]]) -> tuple[Chunk, ...]:
    """Make chunks of what was copied."""
    return tuple(
        Chunk(
            rank,
            id or text_id(text),
            "document_id" if id else "text_hash",
            text,
            metadata=metadata,
        )
        for rank, (id, text, metadata) in enumerate(copies)
    )
