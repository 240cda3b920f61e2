"""What a model must have to judge."""

from __future__ import annotations

from collections.abc import Mapping

from ctxeval.errors import InvalidArgumentError, short
from ctxeval.llm.protocol import LLM


def check_llm(llm: object) -> LLM:
    """Say at once if something is given that can't judge.

    Raises:
        InvalidArgumentError: It has no `complete` and `identity`.
    """
    if isinstance(llm, LLM) and not isinstance(llm, type):
        identity = llm.identity
        if not isinstance(identity, Mapping) or not all(isinstance(n, str) for n in identity):
            raise InvalidArgumentError(
                f"llm: its identity is {short(identity)}: make it a property that gives a dict "
                "with str keys: endpoint, model, parameters"
            )
        return llm
    if llm is None:
        hint = "give llm=ctxeval.llm_factory('…')"
    elif isinstance(llm, str):
        hint = f"for a model by name, give ctxeval.llm_factory({llm!r})"
    elif hasattr(llm, "chat"):
        hint = "for a client, give ctxeval.llm_factory('model', client=…)"
    else:
        hint = "give ctxeval.llm_factory('…') or an object with complete() and identity"
    raise InvalidArgumentError(f"llm: {short(llm)} cannot judge: {hint}")
