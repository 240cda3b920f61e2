"""ctxeval for LangChain: capture what an application retrieves, and score it."""

from __future__ import annotations

try:
    from ctxeval_langchain.handler import CtxEvalCallbackHandler
    from ctxeval_langchain.langsmith import as_langsmith_evaluator
    from ctxeval_langchain.llm import as_llm
    from ctxeval_langchain.search import traced_search
except ModuleNotFoundError as error:
    if error.name != "langchain_core":
        raise
    raise ModuleNotFoundError(
        "ctxeval_langchain needs langchain-core: pip install 'ctxeval[langchain]'",
        name="langchain_core",
    ) from error

__all__ = ["CtxEvalCallbackHandler", "as_langsmith_evaluator", "as_llm", "traced_search"]
