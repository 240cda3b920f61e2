"""What an evaluator finds in each kind of response, and that it leaves streams alone."""

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import Document, ImageNode, NodeWithScore
from llama_index.core.tools import FunctionTool, QueryEngineTool, RetrieverTool, ToolOutput
from llamaindex_parts import Caller, Fixed, Judge, hits, node
from pydantic import BaseModel

from ctxeval import ContextUtilization
from ctxeval.testing import ScriptedLLM
from ctxeval_llamaindex.evaluator import ContextEvaluator
from ctxeval_llamaindex.llm import as_llm

WORKFLOWS_WARN = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SOURCES = hits(node("n1", "alpha", file="a.md"), node("n2", "beta"))
TEXTS = ["file: a.md\n\nalpha", "beta"]


class Structured(BaseModel):
    name: str = "Eiffel"


def tool_output(raw):
    return ToolOutput(tool_name="t", content="c", raw_input={}, raw_output=raw)


async def tokens():
    for token in ("an", "swer"):
        yield token


def stream():
    return StreamingResponse(response_gen=iter(["an", "swer"]), source_nodes=SOURCES)


RESPONSES = [
    pytest.param(lambda: Response("answer", SOURCES), "answer", id="Response"),
    pytest.param(lambda: Response(None, SOURCES), None, id="Response without text"),
    pytest.param(
        lambda: PydanticResponse(Structured(), SOURCES), '{"name":"Eiffel"}', id="PydanticResponse"
    ),
    pytest.param(lambda: PydanticResponse(None, SOURCES), None, id="PydanticResponse of None"),
    pytest.param(stream, None, id="StreamingResponse, unread"),
    pytest.param(
        lambda: AsyncStreamingResponse(tokens(), source_nodes=SOURCES),
        None,
        id="AsyncStreamingResponse, unread",
    ),
    pytest.param(
        lambda: AgentChatResponse("answer", source_nodes=SOURCES), "answer", id="AgentChatResponse"
    ),
    pytest.param(
        lambda: AgentChatResponse("answer", sources=[tool_output(Response("x", SOURCES))]),
        "answer",
        id="AgentChatResponse of a query engine's tool",
    ),
    pytest.param(
        lambda: AgentChatResponse("answer", sources=[tool_output(SOURCES)]),
        "answer",
        id="AgentChatResponse of a retriever's tool",
    ),
    pytest.param(
        lambda: StreamingAgentChatResponse(source_nodes=SOURCES),
        None,
        id="StreamingAgentChatResponse, unread",
    ),
    pytest.param(
        lambda: StreamingAgentChatResponse("answer", source_nodes=SOURCES),
        "answer",
        id="StreamingAgentChatResponse, read",
    ),
    pytest.param(lambda: SOURCES, None, id="what a retriever returned"),
]


@pytest.mark.parametrize(("response", "text"), RESPONSES)
@pytest.mark.parametrize("way", ["evaluate_response", "aevaluate_response"])
async def test_text_ids_scores_and_contexts_survive(response, text, way):
    evaluator = ContextEvaluator("id_based_context_recall")
    result = getattr(evaluator, way)("Q?", response(), reference_ids=["n2", "n3"])
    if way == "aevaluate_response":
        result = await result
    assert (result.query, result.response) == ("Q?", text)
    assert result.contexts == TEXTS
    assert result.context_ids == ["n1", "n2"]
    assert result.context_scores == [1.0, 0.5]
    assert (result.score, result.passing, result.invalid_result) == (0.5, True, False)
    assert [verdict.value for verdict in result.verdicts.units] == [True, False]


def test_a_stream_is_still_there_afterwards():
    response = stream()
    evaluator = ContextEvaluator("hit_rate@2")
    assert evaluator.evaluate_response("Q?", response, reference_ids=["n1"]).score == 1
    assert response.response_txt is None
    assert str(response) == "answer"


async def test_an_asynchronous_stream_is_still_there_afterwards():
    response = AsyncStreamingResponse(tokens(), source_nodes=SOURCES)
    evaluator = ContextEvaluator("hit_rate@2")
    result = await evaluator.aevaluate_response("Q?", response, reference_ids=["n1"])
    assert result.score == 1
    assert (await response.get_response()).response == "answer"


def test_the_stream_of_a_query_engine_is_still_there_afterwards():
    llm = MockLLM(max_tokens=3)
    engine = RetrieverQueryEngine.from_args(Fixed("a", "b"), llm=llm, streaming=True)
    response = engine.query("Q?")
    result = ContextEvaluator("mrr").evaluate_response("Q?", response, reference_ids=["b"])
    assert (result.score, result.response) == (0.5, None)
    assert "".join(response.response_gen).split() == ["text"] * 3


async def test_the_stream_of_a_chat_engine_is_still_there_afterwards():
    # The default memory leaves connections open.
    engine = ContextChatEngine.from_defaults(
        Fixed("a", "b"), llm=MockLLM(max_tokens=3), memory=ChatMemoryBuffer.from_defaults()
    )
    response = engine.stream_chat("Q?")
    result = ContextEvaluator("mrr").evaluate_response("Q?", response, reference_ids=["b"])
    assert (result.score, result.context_ids) == (0.5, ["a", "b"])
    assert "".join(response.response_gen).split() == ["text"] * 3
    after = ContextEvaluator("mrr").evaluate_response("Q?", response, reference_ids=["b"])
    assert after.response.split() == ["text"] * 3


def test_what_needs_the_answer_waits_for_the_stream():
    script = ScriptedLLM(relevant={"beta"})
    evaluator = ContextEvaluator(ContextUtilization(as_llm(Judge(script))))
    response = stream()
    before = evaluator.evaluate_response("Q?", response)
    assert before.invalid_result
    assert "response" in before.invalid_reason
    assert "stream has not been read" in before.invalid_reason
    assert str(response) == "answer"
    after = evaluator.evaluate_response("Q?", response)
    assert (after.score, after.response) == (0.5, "answer")


def test_a_stream_of_which_nobody_kept_the_text():
    evaluator = ContextEvaluator("context_utilization", llm=Judge(ScriptedLLM()))
    response = stream()
    assert list(response.response_gen)
    result = evaluator.evaluate_response("Q?", response)
    assert "its reader kept no text: evaluate after get_response()" in result.invalid_reason


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        pytest.param(None, "is None: give what the query engine returned", id="None"),
        pytest.param("plain text", "a string holds no nodes", id="a string"),
        pytest.param(7, "a int is no response", id="an int"),
        pytest.param(["a"], "holds a str", id="a list of strings"),
        pytest.param({"answer": "x"}, "a dict is no response", id="a dict"),
        pytest.param(hits("a")[0], "one node is no response: give a list", id="one node"),
        pytest.param(Response("x", source_nodes=None), "its source_nodes are None", id="no list"),
    ],
)
async def test_what_is_no_response_is_an_invalid_result(response, reason):
    evaluator = ContextEvaluator("id_based_context_recall")
    for result in (
        evaluator.evaluate_response("Q?", response, reference_ids=["n1"]),
        await evaluator.aevaluate_response("Q?", response, reference_ids=["n1"]),
    ):
        assert result.invalid_result
        assert result.score is None
        assert result.passing is False
        assert reason in result.invalid_reason
        assert reason in result.feedback
        assert "context_ids" in result.invalid_reason


async def test_a_coroutine_is_to_be_awaited():
    forgotten = tokens_of_nothing()
    result = ContextEvaluator("hit_rate@2").evaluate_response("Q?", forgotten, reference_ids=["a"])
    forgotten.close()
    assert "await it" in result.invalid_reason


async def tokens_of_nothing():
    return None


def test_a_string_is_fine_with_contexts_and_ids():
    evaluator = ContextEvaluator("id_based_context_recall")
    result = evaluator.evaluate_response(
        "Q?", "answer", contexts=["x"], context_ids=["n1"], reference_ids=["n1"]
    )
    assert (result.score, result.response, result.contexts) == (1.0, "answer", ["x"])


def test_documents_and_images_among_the_nodes():
    nodes = [NodeWithScore(node=Document(id_="d", text="doc")), ImageNode(id_="i", image="abc")]
    result = ContextEvaluator("hit_rate@2").evaluate_response("Q?", nodes, reference_ids=["i"])
    assert result.contexts == ["doc", ""]
    assert result.context_ids == ["d", "i"]
    assert result.context_scores == [None, None]


def tools():
    """A query engine's tool, a retriever's, and a function that gives text."""
    engine = RetrieverQueryEngine.from_args(Fixed("a", "b"), llm=MockLLM(max_tokens=2))
    return [
        QueryEngineTool.from_defaults(engine, name="engine", description="d"),
        RetrieverTool.from_defaults(Fixed("b", "c"), name="retriever", description="d"),
        FunctionTool.from_defaults(lambda input: f"text for {input}", name="function"),
    ]


@WORKFLOWS_WARN
@pytest.mark.parametrize(
    ("called", "ids"),
    [
        pytest.param(["engine"], ["a", "b"], id="a query engine"),
        pytest.param(["retriever"], ["b", "c"], id="a retriever"),
        pytest.param(["function", "retriever"], ["b", "c"], id="one of two gives nodes"),
        pytest.param(["engine", "retriever"], ["a", "b", "c"], id="two, pooled without repeats"),
        pytest.param([], [], id="none, so nothing was retrieved"),
    ],
)
async def test_an_agents_output(called, ids):
    turns = [(name, {"input": "x"}) for name in called]
    agent = FunctionAgent(tools=tools(), llm=Caller(turns=turns))
    output = await agent.run(user_msg="Q?")
    evaluator = ContextEvaluator("id_based_context_recall")
    result = await evaluator.aevaluate_response("Q?", output, reference_ids=["b", "z"])
    assert result.context_ids == ids
    assert result.response == "the answer"
    assert result.score == (0.5 if ids else 0)
    ranked = await ContextEvaluator("mrr").aevaluate_response("Q?", output, reference_ids=["b"])
    if len(called) == 2 and "function" not in called:
        assert ranked.invalid_reason == "several tool calls gave nodes, so there is no one order"
    else:
        assert ranked.score == (1 / (ids.index("b") + 1) if ids else 0)


@WORKFLOWS_WARN
async def test_an_agent_whose_tools_give_text_alone():
    agent = FunctionAgent(tools=tools(), llm=Caller(turns=[("function", {"input": "x"})]))
    output = await agent.run(user_msg="Q?")
    result = ContextEvaluator("hit_rate@2").evaluate_response("Q?", output, reference_ids=["b"])
    assert result.invalid_result
    assert "no tool call of the agent's gave nodes" in result.invalid_reason
