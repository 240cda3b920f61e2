"""Find question and answer in what LangChain passes around."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from ctxeval_langchain.notices import tell_once

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
        return value if value.strip() else None
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
        return _text(value.content)
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
    if value is None or isinstance(value, (str, list, tuple, Document, BaseMessage)):
        return None
    try:
        found = getattr(value, key, None)
    except Exception:  # an application's property may do what it likes
        return None
    return None if isinstance(found, MethodType) else found


def fields_of(value: Any) -> dict[str, Any]:
    """Give what a state or a table holds, by name; nothing of a text or a list."""
    if isinstance(value, BaseModel):
        return dict(value)
    fields = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
    return {str(name): item for name, item in fields.items()}


def _last_said(messages: Any, roles: Sequence[str]) -> str | None:
    """Give the last message of one side, whichever way messages are written.

    What was said before the last question is no answer to it.
    """
    if isinstance(messages, str):
        return messages if "user" in roles else None
    if isinstance(messages, BaseMessage) or (isinstance(messages, Mapping) and "role" in messages):
        messages = [messages]
    if not isinstance(messages, (list, tuple)):
        return None
    for message in reversed(messages):
        role, content = _role_and_content(message)
        if role in roles:
            return _text(content)
        if role in _HUMAN:
            return None
    return None


def _role_and_content(message: Any) -> tuple[str | None, Any]:
    """Take a message apart; one that only calls tools says nothing."""
    content: Any
    if isinstance(message, BaseMessage):
        role, content, calls = message.type, message.content, getattr(message, "tool_calls", None)
    elif isinstance(message, Mapping):
        role, content = message.get("role", message.get("type")), message.get("content")
        calls = message.get("tool_calls")
    elif isinstance(message, tuple) and len(message) == 2 and isinstance(message[0], str):
        role, content, calls = message[0], message[1], None
    else:
        return None, None
    return None if calls else role, content


def _text(content: Any) -> str:
    """Join the texts of a message's content, which may be a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "".join(
        block if isinstance(block, str) else str(block.get("text") or "")
        for block in blocks
        if isinstance(block, (str, Mapping))
    )


def prompt_text(prompt: Any) -> str:
    """Join what a model was shown: strings of a completion model, or lists of messages."""
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, BaseMessage):
        return _text(prompt.content)
    return "\n".join(prompt_text(part) for part in prompt)


def by_key(
    option: str,
    value: Any,
    key: str | Callable[[Any], Any],
    read: Callable[[Any], str | None],
) -> str | None:
    """Take question or answer from where the user says it stands.

    Args:
        option: What the user calls it.
        value: A chain's input or output.
        key: A key or an attribute, or a function of the value.
        read: Finds the text in what stands there, which may be a message, or a list of them.
    """
    try:
        found = key(value) if callable(key) else _get(value, key)
    except Exception as error:  # the user's code: its fault must not cost the record
        tell_once(f"{option} failed with {error!r}")
        return None
    if found is None or isinstance(found, str):
        return found
    text = read(found)
    if text is None and not (isinstance(found, (list, tuple, Mapping)) and not found):
        text = str(found)
    return text
