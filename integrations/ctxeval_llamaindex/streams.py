"""Answers that come piece by piece: seen as their reader reads them, never read by us."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any

Done = Callable[[str, BaseException | None], None]
"""Is told, once a stream is over, the text so far, and why it ended before its end, if so."""


def watch(response: Any, done: Done) -> bool:
    """Have a response's stream tell when it has been read.

    Args:
        response: What an engine returned.
        done: Is told. A stream that nobody begins to read tells nothing.

    Returns:
        False where there is no stream.
    """
    held = getattr(response, "__dict__", {})
    name = next(
        (name for name in ("response_gen", "chat_stream", "achat_stream") if held.get(name)), ""
    )
    stream = held.get(name)
    if stream is None or held.get("response_txt") is not None:
        return False
    setattr(
        response, name, _tokens_later(stream, done) if _is_async(stream) else _tokens(stream, done)
    )
    return True


def _is_async(stream: object) -> bool:
    return hasattr(stream, "__aiter__")


def _tokens(stream: Iterator[Any], done: Done) -> Generator[Any, None, None]:
    read: list[str] = []
    cause: BaseException | None = None
    try:
        for token in stream:
            read.append(_text(token))
            yield token
    except BaseException as error:
        cause = error
        raise
    finally:
        close = getattr(stream, "close", None)
        if isinstance(cause, GeneratorExit) and close is not None:
            close()
        done("".join(read), cause)


async def _tokens_later(stream: AsyncIterator[Any], done: Done) -> AsyncGenerator[Any, None]:
    read: list[str] = []
    cause: BaseException | None = None
    try:
        async for token in stream:
            read.append(_text(token))
            yield token
    except BaseException as error:
        cause = error
        raise
    finally:
        close = getattr(stream, "aclose", None)
        if isinstance(cause, GeneratorExit) and close is not None:
            await close()
        done("".join(read), cause)


def _text(token: Any) -> str:
    text = token if isinstance(token, str) else getattr(token, "delta", None)
    return text if isinstance(text, str) else ""
