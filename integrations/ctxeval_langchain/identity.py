"""What distinguishes a chat model's answers from another's, and no secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel, BaseLanguageModel

_SECRET = re.compile("key|token|secret|passw|credential|auth|header|cookie", re.IGNORECASE)
_OPERATIONAL = re.compile("retr|timeout|stream", re.IGNORECASE)


def identity_of(model: BaseChatModel) -> dict[str, Any]:
    """Give class and parameters of a model, in plain values.

    Args:
        model: The model. Its own fields count, not those that every chat model has
            (callbacks, tags, …), nor retries, timeouts and streaming.

    Returns:
        The same in every process, and different for another model or temperature. What
        may be a key is left out: objects such as `SecretStr`, texts and tables under
        names such as `api_key`, `access_token` or `headers`, and of addresses all but
        host, port and path.
    """
    kind = type(model)
    named = f"{kind.__module__.split('.')[0]}.{kind.__qualname__}"
    return {"class": named, "parameters": _parameters(model)}


def _parameters(model: BaseLanguageModel[Any]) -> dict[str, Any]:
    return _table(
        {
            name: vars(model).get(name)
            for name in type(model).model_fields
            if name not in BaseChatModel.model_fields and not _OPERATIONAL.search(name)
        }
    )


def _table(items: Mapping[Any, Any]) -> dict[str, Any]:
    kept = {
        str(name): _plain(item)
        for name, item in items.items()
        # A number is no key, whatever it is named: max_tokens, budget_tokens.
        if isinstance(item, (int, float)) or not _SECRET.search(str(name))
    }
    return {name: item for name, item in kept.items() if item not in (None, {}, [])}


def _plain(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("http://", "https://")):
        parts = urlsplit(value)  # which may hold a password, or a key in its query
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return _table(value)
    # Some chat models wrap another model.
    return _parameters(value) if isinstance(value, BaseLanguageModel) else None
