"""What a span of LlamaIndex is to us, told by the class that it belongs to and by its name."""

from __future__ import annotations

import sys
from functools import lru_cache
from types import FrameType, NoneType

QUERY, CHAT, RUN = "query", "chat", "run"
RETRIEVE, RERANK, PROMPT = "retrieve", "rerank", "prompt"
STEP, WRITE, IGNORED = "step", "write", "ignored"

ASKED = frozenset({QUERY, RETRIEVE})
"""What others than the application may ask, too."""

PASSED_BY = frozenset({STEP, WRITE})
"""What only tells where others belong."""

DOCUMENTS, OTHERS, JUDGING = "documents", "others", "judging"
"""What is looked for: documents; tools, tables or messages; or what a judge looks up."""

ROOTS = frozenset({QUERY, CHAT, RUN, RETRIEVE})
"""What may be a query by itself, if it runs inside of no other one."""

SCOPES = frozenset({QUERY, CHAT, RUN})
"""What puts stages together: they retrieve, rerank and answer one after the other."""

STAGES = frozenset({RETRIEVE, RERANK, PROMPT})
"""What is a stage of the record. A prompt is what a response synthesizer is given."""

UUID_LENGTH = 37
"""A span's id is its name, a hyphen, and a UUID."""

_WORKFLOW = "Workflow"

_METHODS = {
    "query": ("BaseQueryEngine", QUERY),
    "aquery": ("BaseQueryEngine", QUERY),
    "chat": ("BaseChatEngine", CHAT),
    "achat": ("BaseChatEngine", CHAT),
    "stream_chat": ("BaseChatEngine", CHAT),
    "astream_chat": ("BaseChatEngine", CHAT),
    "run": (_WORKFLOW, RUN),
    "retrieve": ("BaseRetriever", RETRIEVE),
    "aretrieve": ("BaseRetriever", RETRIEVE),
    "_postprocess_nodes": ("BaseNodePostprocessor", RERANK),
    "_apostprocess_nodes": ("BaseNodePostprocessor", RERANK),
    "synthesize": ("BaseSynthesizer", PROMPT),
    "asynthesize": ("BaseSynthesizer", PROMPT),
    "write_response_to_history": ("StreamingAgentChatResponse", WRITE),
    "awrite_response_to_history": ("StreamingAgentChatResponse", WRITE),
}

_PACKAGES = ("llama_index.", "workflows.")

_BETWEEN = (
    "ctxeval_llamaindex.",
    "wrapt.",
    "llama_index_instrumentation.",
    "llama_index.core.instrumentation.",
)
"""The modules that stand between a call and the hooks that are told of it."""

_EVALUATORS = "llama_index.core.evaluation."

_ASK_THE_APPLICATION = tuple(_EVALUATORS + name for name in ("batch_runner", "eval_utils"))
"""The modules among the evaluators' that put questions to the application's own engine."""

_ASKS_ITSELF_AGAIN = "llama_index.core.query_engine.retry_source_query_engine"
"""Its engine looks through an index of its own, of what was found, whose nodes have new ids."""

_NO_DOCUMENTS = ("llama_index.core.objects.", "llama_index.core.memory.")
"""The modules that look for tools, tables or messages in an index."""


@lru_cache(maxsize=4096)
def kind_of(cls: type, name: str) -> str | None:
    """Tell what a span is; None where it doesn't matter.

    Args:
        cls: The class of the object that it belongs to.
        name: Its name.
    """
    if cls is NoneType:
        return STEP  # or any function of the user's, which the parent tells apart
    base, kind = _METHODS.get(name.rpartition(".")[2], (_WORKFLOW, STEP))
    bases = {one.__name__ for one in cls.__mro__ if one.__module__.startswith(_PACKAGES)}
    if base in bases:
        return kind
    return STEP if _WORKFLOW in bases else None


def asker() -> str:
    """Name the module that made the call which the hooks are being told of.

    To be called by the function that the hooks call: the frames from there to the span's own
    are passed over, since looking at a frame costs more than anything else here.
    """
    frame: FrameType | None = sys._getframe(5)
    while frame is not None:
        module: str = frame.f_globals.get("__name__", "")
        if not module.startswith(_BETWEEN):
            return module
        frame = frame.f_back
    return ""


def purpose_of(module: str, instance: object) -> str:
    """Tell what is looked for. What a judge asks is none of the application's questions.

    Args:
        module: Which module asks.
        instance: What it asks.
    """
    if module == _ASKS_ITSELF_AGAIN and type(instance).__module__ == module:
        return JUDGING
    return _purpose_of(module)


@lru_cache(maxsize=1024)
def _purpose_of(module: str) -> str:
    if module.startswith(_EVALUATORS) and module not in _ASK_THE_APPLICATION:
        return JUDGING
    return OTHERS if module.startswith(_NO_DOCUMENTS) else DOCUMENTS
