"""Make a judge's model from a name, an address or a client."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from math import isfinite
from typing import Any

from ctxeval.errors import (
    AuthenticationError,
    InvalidArgumentError,
    short,
)
from ctxeval.extras import load
from ctxeval.llm.client import OpenAICompatible, origin

OPENAI = "https://api.openai.com/v1"


_ADDRESS = re.compile(r"https?://([^\s/@]+@)?[^\s/:@]+(:\d{1,5})?(/|$)")


def llm_factory(
    model: str,
    client: Any = None,
    base_url: str | None = None,
    *,
    api_key: str | None = None,
    temperature: float | None = 0,
    concurrency: int = 16,
    timeout: float = 120,
    max_retries: int = 5,
    max_wait: float = 60,
    **parameters: Any,
) -> OpenAICompatible:
    """Make a model that judges, behind any endpoint that speaks OpenAI's chat completions.

    Args:
        model: The model's name at the endpoint.
        client: Your own client instead of ours: anything with `.chat.completions.create`,
            synchronous or not, of any version, or a function that makes one (called here
            to learn the endpoint, and later for the client in use). Calls are
            made on ctxeval's own event loop: an OpenAI client with the default transport
            is copied for it; one with a transport of your own is used as it is, so make
            a separate one for ctxeval.
        base_url: The endpoint, `http://localhost:11434/v1` say; without one, the
            environment's OPENAI_BASE_URL, or else OpenAI.
        api_key: The key; without one, the environment's OPENAI_API_KEY. A local
            endpoint needs none.
        temperature: Sent unless None or refused.
        concurrency: How many calls are under way at most.
        timeout: Seconds until a call counts as unanswered (a client of yours has its own).
        max_retries: How often a call is tried again after 429, 5xx, a timeout or a
            connection error, with waits of 0.5, 1, 2, 4, 8, 8, … s, less up to half.
        max_wait: The longest wait in seconds that an endpoint may ask for.
        **parameters: Sent along with each call, and part of the model's identity:
            `seed`, `top_p`, `extra_body`, `reasoning_effort`, …

    Returns:
        A model to give to metrics and to `score` as `llm`.

    Raises:
        MissingExtraError: No client is given, and openai is not installed.
        AuthenticationError: No key is to be found for OpenAI itself.
        InvalidArgumentError: The client is none, or a number is out of range.
    """
    if not isinstance(model, str) or not model:
        raise InvalidArgumentError(f"model: {short(model)} is no name: give the endpoint's, a str")
    for name, value, least in (
        ("concurrency", concurrency, 1),
        ("max_retries", max_retries, 0),
        ("max_wait", max_wait, 0),
        ("timeout", timeout, 0),
    ):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not isfinite(value) or value < least:
            raise InvalidArgumentError(f"{name}: {short(value)} is no number >= {least}")
    for name in ("stream", "messages", "n", "response_format"):
        if name in parameters:
            raise InvalidArgumentError(f"{name}: the judge itself decides that: leave it out")
    if base_url is not None and not (isinstance(base_url, str) and _ADDRESS.match(base_url)):
        raise InvalidArgumentError(
            "base_url: it is no address that begins with http:// or https://, such as "
            "http://localhost:11434/v1"
        )
    if api_key is not None and not (isinstance(api_key, str) and api_key.isprintable()):
        raise InvalidArgumentError("api_key: it is no string of printable characters")
    if temperature is not None:
        parameters = {"temperature": temperature, **parameters}
    owns_client = True
    if client is None:
        address = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI
        secret = api_key or os.environ.get("OPENAI_API_KEY") or None
        make = _own_client(address, secret, timeout)
    else:
        if callable(client) and not hasattr(client, "chat"):
            make, client = _from_factory(client)
        else:
            make, owns_client = _users_client(client)
        address = base_url or str(getattr(client, "base_url", "") or type(client).__name__)
        secret = getattr(client, "api_key", None)
    return OpenAICompatible(
        model,
        make,
        endpoint=origin(address),
        parameters=parameters,
        concurrency=int(concurrency),
        max_retries=int(max_retries),
        max_wait=max_wait,
        timeout=timeout if client is None else None,
        secret=secret if isinstance(secret, str) else None,
        owns_client=owns_client,
    )


def _own_client(base_url: str, api_key: str | None, timeout: float) -> Callable[[], Any]:
    openai = load("openai", "llm_factory without a client", "openai")
    if api_key is None and base_url == OPENAI:
        raise AuthenticationError(
            "no key for OpenAI: set OPENAI_API_KEY, or give api_key=, client=, or the base_url= "
            "of another endpoint"
        )
    key = api_key or "not-needed"
    return lambda: openai.AsyncOpenAI(
        base_url=base_url, api_key=key, timeout=timeout, max_retries=0
    )


def _users_client(client: Any) -> tuple[Callable[[], Any], bool]:
    """Say how to make the client to call, and whether its connections are ours to close."""
    _checked_client(client)
    # The default transport: its pooled connections belong to the user's loop.
    copied = type(getattr(client, "_client", None)).__name__ == "AsyncHttpxClientWrapper"

    def adopt() -> Any:
        if not copied:
            return _without_retries(client)
        import openai

        return _without_retries(
            client, http_client=openai.DefaultAsyncHttpxClient(timeout=client.timeout)
        )

    return adopt, copied


def _from_factory(factory: Callable[[], Any]) -> tuple[Callable[[], Any], Any]:
    """Say how to make the client to call, and make one to look at: which endpoint is it?"""
    client = factory()
    _checked_client(client)
    return lambda: _without_retries(factory()), client


def _without_retries(client: Any, **options: Any) -> Any:
    """Copy an SDK's client so that it tries once: the retries are ours."""
    with_options = getattr(client, "with_options", None)
    return client if with_options is None else with_options(max_retries=0, **options)


def _checked_client(client: Any) -> None:
    if not hasattr(getattr(getattr(client, "chat", None), "completions", None), "create"):
        raise InvalidArgumentError(
            f"client: {short(client)} has no .chat.completions.create: give an OpenAI client"
        )
