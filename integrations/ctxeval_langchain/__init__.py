"""ctxeval for LangChain: capture what a chain retrieves, and score it."""

from __future__ import annotations

try:
    from ctxeval_langchain.handler import CtxEvalCallbackHandler
except ModuleNotFoundError as error:
    if error.name != "langchain_core":
        raise
    raise ModuleNotFoundError(
        "ctxeval_langchain needs langchain-core: pip install 'ctxeval[langchain]'",
        name="langchain_core",
    ) from error

__all__ = ["CtxEvalCallbackHandler"]
