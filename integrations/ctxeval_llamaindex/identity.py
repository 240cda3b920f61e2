"""What distinguishes a model's answers from another's: class, name, parameters; no secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.llms import LLM

_SECRET = re.compile("key|token|secret|passw|credential|auth|header|cookie", re.IGNORECASE)
_OPERATIONAL = re.compile("retr|timeout|stream|verbose|reuse|batch|keep_alive", re.IGNORECASE)
_SHARED = set(LLM.model_fields) - {"system_prompt"}


def identity_of(model: BaseLLM) -> dict[str, Any]:
    """Give class, name and parameters in plain values, the same in every process."""
    kind = type(model)
    try:
        name = model.metadata.model_name
    except Exception:  # some packages know no other models than their own
        name = None
    fields = {name: vars(model).get(name) for name in kind.model_fields}
    kept = {
        name: value
        for name, value in fields.items()
        if name not in _SHARED and not _OPERATIONAL.search(name)
    }
    named = f"{kind.__module__.split('.')[0]}.{kind.__qualname__}"
    return {"class": named, "model": name, "parameters": _plain(kept)}


def _plain(value: Any) -> Any:
    """Reduce to what is the same in every process, without what may be secret."""
    if isinstance(value, str) and value.startswith(("http://", "https://")):
        parts = urlsplit(value)  # which may hold a password, or a key in its query
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, BaseLLM):  # some models wrap another one
        return identity_of(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if not isinstance(value, Mapping):
        return None
    kept = {
        str(name): _plain(item)
        for name, item in value.items()
        if isinstance(item, (int, float)) or not _SECRET.search(str(name))
    }
    return {name: item for name, item in kept.items() if item not in (None, {}, [])}
