"""Answers that come piece by piece: seen as their reader reads them, never read by us."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

Done = Callable[[str, BaseException | None], None]
"""Is told, once a stream is over, the text so far, and why it ended before its end, if so."""

_STREAMS = ("response_gen", "chat_stream", "achat_stream")


def watch(response: Any, done: Done) -> bool:
    """Have a response's stream tell when it has been read.

    Args:
        response: What an engine returned.
        done: Is told. A stream that nobody begins to read tells nothing.

    Returns:
        False where there is no stream.
    """
    held = getattr(response, "__dict__", {})
    name = next((name for name in _STREAMS if held.get(name) is not None), None)
    if name is None or held.get("response_txt") is not None:
        return False
    stream = held[name]
    watched = _tokens_later if _is_awaited(response, name, stream) else _tokens
    setattr(response, name, watched(stream, done))
    return True


def _is_awaited(response: Any, name: str, stream: Any) -> bool:
    """Ask the response rather than the stream: tracers' proxies can be read in both ways."""
    if name != "response_gen":
        return name == "achat_stream"
    return hasattr(response, "async_response_gen") or not hasattr(stream, "__iter__")


@contextmanager
def _reading(done: Done) -> Iterator[list[str]]:
    """Give a list for what is read, and tell of it once the reading is over."""
    read: list[str] = []
    try:
        yield read
    except BaseException as error:
        done("".join(read), error)
        raise
    done("".join(read), None)


def _tokens(stream: Iterator[Any], done: Done) -> Generator[Any, None, None]:
    try:
        with _reading(done) as read:
            for token in stream:
                read.append(_text(token))
                yield token
    except GeneratorExit:
        if (close := getattr(stream, "close", None)) is not None:
            close()
        raise


async def _tokens_later(stream: AsyncIterator[Any], done: Done) -> AsyncGenerator[Any, None]:
    try:
        with _reading(done) as read:
            async for token in stream:
                read.append(_text(token))
                yield token
    except GeneratorExit:
        if (close := getattr(stream, "aclose", None)) is not None:
            await close()
        raise


def _text(token: Any) -> str:
    text = token if isinstance(token, str) else getattr(token, "delta", None)
    return text if isinstance(text, str) else ""
