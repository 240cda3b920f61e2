"""What a response holds: the answer's text and the nodes, whatever kind of response it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.schema import BaseNode, NodeWithScore

from ctxeval_llamaindex.nodes import AnyNode

_STREAM = (
    "the stream has not been read to its end, or its reader kept no text: evaluate after "
    "get_response() or print_response_stream(), or give the text to evaluate()"
)


class Reading(NamedTuple):
    """What was found in a response.

    Attributes:
        text: The answer; None where it is not known.
        nodes: The nodes, best first; None where none are known, which is not the same as
            none having been retrieved.
        no_text: Why there is no answer.
        no_nodes: Why there are no nodes.
        pooled: Are they of several retrievals, so that their order means little?
    """

    text: str | None = None
    nodes: tuple[AnyNode, ...] | None = None
    no_text: str = ""
    no_nodes: str = ""
    pooled: bool = False


def read_response(response: Any) -> Reading:
    """Find answer and nodes; a stream is not read, and a wrong thing raises nothing.

    Args:
        response: What a query engine, a chat engine, an agent or a retriever returned.
    """
    if response is None:
        why = "the response is None: give what the query engine returned"
        return Reading(no_text=why, no_nodes=why)
    if isinstance(response, str):
        why = "a string holds no nodes: give the response itself, or contexts and context_ids"
        return Reading(response, no_nodes=why)
    if isinstance(response, (list, tuple)):
        return _nodes_alone(response)
    if isinstance(response, PydanticResponse):  # which has None for any other attribute
        answer = response.response
        text = None if answer is None else answer.model_dump_json()
        return Reading(text, tuple(response.source_nodes))
    if isinstance(response, (StreamingResponse, AsyncStreamingResponse)):
        return Reading(response.response_txt, tuple(response.source_nodes), _STREAM)
    tool_calls = getattr(response, "tool_calls", None)
    if isinstance(tool_calls, list):
        outputs = [getattr(call, "tool_output", None) for call in tool_calls]
        return _of_tools(_text(response), outputs, "tool call")
    if isinstance(nodes := getattr(response, "source_nodes", None), (list, tuple)):
        text = _text(response)
        streams = isinstance(response, StreamingAgentChatResponse)
        reading = Reading(None if streams and not text else text, tuple(nodes), _STREAM)
        if not nodes and (sources := getattr(response, "sources", None)):
            from_tools = _of_tools(reading.text, sources, "source")
            return reading if from_tools.nodes is None else from_tools
        return reading
    if isinstance(response, (BaseNode, NodeWithScore)):
        why = "one node is no response: give a list of nodes"
        return Reading(no_text=why, no_nodes=why)
    if getattr(response, "source_nodes", response) is None:
        return Reading(_text(response), no_nodes="its source_nodes are None")
    why = f"a {type(response).__name__} is no response"
    hint = "await it" if hasattr(response, "__await__") else "give what the query engine returned"
    return Reading(no_text=f"{why}: {hint}", no_nodes=f"{why}: {hint}")


def _text(response: Any) -> str | None:
    """Give the text of a response whose `response` is a string or a chat message."""
    said = getattr(response, "response", None)
    text = getattr(said, "content", said)
    return text if isinstance(text, str) else None


def _nodes_alone(items: Iterable[Any]) -> Reading:
    nodes = tuple(items)
    wrong = [item for item in nodes if not isinstance(item, (BaseNode, NodeWithScore))]
    if wrong:
        why = f"a list that holds a {type(wrong[0]).__name__} is no response: give nodes"
        return Reading(no_text=why, no_nodes=why)
    return Reading(None, nodes, "a list of nodes has no answer: give it as the response")


def _of_tools(text: str | None, outputs: list[Any], what: str) -> Reading:
    """Pool the nodes that tools gave: in the order of the calls, each node once."""
    readings = [
        read_response(raw)
        for output in outputs
        if not isinstance(raw := getattr(output, "raw_output", None), str)
    ]
    found = [one.nodes for one in readings if one.nodes is not None]
    if outputs and not found:
        return Reading(text, no_nodes=f"no {what} of the agent's gave nodes")
    pool: dict[str, AnyNode] = {}
    for node in (node for nodes in found for node in nodes):
        pool.setdefault(node.node_id, node)
    return Reading(text, tuple(pool.values()), pooled=sum(map(bool, found)) > 1)
