"""LlamaIndex applications in small, whose answers tell what they were asked."""

import re
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.tools import QueryEngineTool
from llamaindex_parts import Fixed

CORE = tuple(int(part) for part in version("llama-index-core").split(".")[:3])


class Model(CustomLLM):
    """Answers "answer to <question>"; condenses a question to "condensed <question>"."""

    fails_after: int = -1

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=reply_to(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        def pieces() -> Any:
            text = ""
            for number, piece in enumerate(re.findall(r"\S+\s*", reply_to(prompt))):
                if number == self.fails_after:
                    raise ConnectionError("the line is cut")
                text += piece
                yield CompletionResponse(text=text, delta=piece)

        return pieces()


def reply_to(prompt: str) -> str:
    asked = re.findall(r"(?:Query|user|Follow Up Input|Input): (.*)", prompt)
    if "tandalone" in prompt:
        found = re.findall(
            r"(?:Follow Up Message:|Follow Up Input:|<Follow Up Message>)\s*(.*)", prompt
        )
        return f"condensed {found[-1].strip()}" if found else "condensed"
    return f"answer to {asked[-1].strip()}" if asked else "answer"


class Keep(BaseNodePostprocessor):
    """Keeps the nodes with these ids, in this order."""

    ids: tuple[str, ...]

    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        by_id = {one.node_id: one for one in nodes}
        return [by_id[id] for id in self.ids if id in by_id]


def engine(
    *nodes: Any, keep: tuple[str, ...] | None = None, **options: Any
) -> RetrieverQueryEngine:
    given = nodes[0] if nodes and not isinstance(nodes[0], str) else Fixed(*(nodes or ("a", "b")))
    after = [] if keep is None else [Keep(ids=keep)]
    return RetrieverQueryEngine.from_args(
        given, **{"llm": Model(), "node_postprocessors": after, **options}
    )


def synthesizer(**options: Any) -> Any:
    return get_response_synthesizer(**{"llm": Model(), **options})


def tool(name: str, *nodes: Any, **options: Any) -> QueryEngineTool:
    return QueryEngineTool.from_defaults(engine(*nodes, **options), name=name, description=name)


class SubQuestions(BaseQuestionGenerator):
    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass

    def generate(self, tools, query):
        return [
            SubQuestion(sub_question=f"{one.name}: {query.query_str}", tool_name=one.name)
            for one in tools
        ]

    async def agenerate(self, tools, query):
        return self.generate(tools, query)


def sub_questions_about(*engines: Any, **options: Any) -> SubQuestionQueryEngine:
    """Ask each engine "<its number>: <the question>", and put the answers together."""
    named = enumerate(engines)
    return SubQuestionQueryEngine(
        question_gen=SubQuestions(),
        response_synthesizer=synthesizer(),
        query_engine_tools=[
            QueryEngineTool.from_defaults(one, name=str(n), description=str(n)) for n, one in named
        ],
        **{"verbose": False, "use_async": False, **options},
    )


@contextmanager
def capturing(*args: Any, **options: Any) -> Any:
    """Capture by a handler whose hooks must not fail, and must forget all at the end."""
    from ctxeval_llamaindex.handler import CtxEvalEventHandler
    from ctxeval_llamaindex.hooks import tracker

    handler = CtxEvalEventHandler(*args, **options).install()
    try:
        yield handler
        assert handler.errors == {}
        assert len(handler.taker) == 0
        assert len(tracker) == 0
    finally:
        handler.close(10)


def ids(stage: Any) -> list[str]:
    return [chunk.id for chunk in stage.chunks]


def stages(record: Any) -> list[tuple[Any, ...]]:
    """Tell of each stage: kind, name, ids, and what it ran inside of or took on."""
    return [
        (one.kind, one.name, ids(one), *(() if one.parent is None else (f"in {one.parent}",)))
        if one.kind == "retrieve"
        else (one.kind, one.name, ids(one), *(f"of {order}" for order in one.inputs))
        for one in record.retrievals
    ]
