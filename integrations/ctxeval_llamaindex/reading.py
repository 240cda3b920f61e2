"""Find question and answer in what LlamaIndex passes around."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ctxeval_llamaindex.spans import RUN

_QUESTION_KEYS = ("question", "query", "input", "user_input", "user_query", "message", "prompt")
_ANSWER_KEYS = ("answer", "response", "output", "result", "final_answer", "message", "text")

_DEEPEST = 4
"""How deep an answer may be wrapped: the message of the output in a stop event, say."""


def input_of(kind: str, arguments: Mapping[str, Any]) -> Any:
    """Find the input of a root among its arguments.

    Returns:
        The question or message; of a workflow its start event, or the keywords for one.
    """
    if kind != RUN:
        return next(iter(arguments.values()), None)
    start = arguments.get("start_event")
    return arguments.get("kwargs", {}) if start is None else start


def text_of(query: Any) -> str | None:
    """Give the text of what was asked: a text, a query bundle, or a chat message."""
    if isinstance(query, str):
        return query or None
    text = _get(query, "query_str")
    return text if isinstance(text, str) else _said(query)


def question_of(value: Any) -> str | None:
    """Find the question in a root's input; see `input_of`."""
    if (text := text_of(value)) is not None:
        return text
    if (message := text_of(_get(value, "user_msg"))) is not None:
        return message
    if (message := _last_of_user(_get(value, "chat_history"))) is not None:
        return message
    for key in _QUESTION_KEYS:
        if (text := text_of(_get(value, key))) is not None:
            return text
    values: Callable[[], Iterable[Any]] | None = _get(value, "values")
    items = list(values()) if callable(values) else []
    texts = [one for one in items if one and isinstance(one, str)]
    return texts[0] if len(texts) == 1 else None


def answer_of(value: Any, depth: int = 0) -> str | None:
    """Find the answer in what a root returned, without touching any stream."""
    if value is None or isinstance(value, str):
        return value
    if (text := _said(value)) is not None:
        return text
    if depth == _DEEPEST or callable(value):
        return None
    if type(value).__name__ == "PydanticResponse":  # made in the shape that the user asked for
        return value.response.model_dump_json() if value.response is not None else None
    for key in _ANSWER_KEYS:
        if (text := answer_of(_get(value, key), depth + 1)) is not None:
            return text
    return None


def unwrapped(result: Any) -> Any:
    """Give what a workflow's caller is given: the result in a plain stop event."""
    return result.result if type(result).__name__ == "StopEvent" else result


def by_key(value: Any, key: str | Callable[[Any], Any]) -> str | None:
    """Take question or answer from where the user says it stands.

    Args:
        value: A root's input, or what it returned.
        key: A key or an attribute, or a function of the value.
    """
    found = key(value) if callable(key) else _get(value, key)
    return None if found is None else text_of(found) or str(found)


def fields_of(value: Any) -> list[str]:
    """Name what a start event, a table or a result holds; nothing of a text or a list."""
    if isinstance(value, (str, Sequence)):
        return []
    keys = value.keys if isinstance(value, Mapping) else _get(value, "keys")
    listed: Any = keys() if callable(keys) else ()
    names = [*listed, *getattr(value, "__dict__", {})]
    return [str(name) for name in names]


def _get(value: Any, key: str) -> Any:
    if isinstance(value, Mapping) and key != "values":
        return value.get(key)
    try:
        return getattr(value, key, None)
    except Exception:  # a property of the user's, perhaps
        return None


def _said(message: Any) -> str | None:
    """Give the text of a chat message; None where it is none."""
    if message is None or _get(message, "role") is None:
        return None
    content = _get(message, "content")
    return content if isinstance(content, str) else None


def _last_of_user(messages: Any) -> str | None:
    for message in reversed(messages if isinstance(messages, Sequence) else ()):
        role = _get(message, "role")
        if getattr(role, "value", role) == "user":
            return _said(message)
    return None
