"""Ids and texts of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from ctxeval import InvalidArgumentError, Metric, Span

IdFrom = str | Callable[[BaseNode], Any]
"""Where a node's id is taken from: "node_id", "source_id", "metadata:<key>", or a function."""

AnyNode = BaseNode | NodeWithScore


def checked_id_from(id_from: object) -> IdFrom:
    """Say at once if something is no place of an id.

    Raises:
        InvalidArgumentError: It is none.
    """
    if callable(id_from):
        return id_from
    if isinstance(id_from, str):
        plain = id_from in ("node_id", "source_id")
        if plain or (id_from.startswith("metadata:") and id_from != "metadata:"):
            return id_from
    raise InvalidArgumentError(
        f"id_from: {id_from!r} is no place of an id: give 'node_id', 'source_id', "
        "'metadata:<key>' or a function of the node"
    )


def found_id(node: AnyNode, id_from: IdFrom = "node_id") -> str | None:
    """Give the id from its place; None where there is none.

    Args:
        node: The node, with or without a score.
        id_from: Where its id is. "source_id" is that of the document or node that it was
            cut from; a function is given the node without its score.
    """
    plain = node.node if isinstance(node, NodeWithScore) else node
    if callable(id_from):
        value = id_from(plain)
    elif id_from == "source_id":
        source = plain.source_node
        value = None if source is None else source.node_id
    elif id_from == "node_id":
        value = plain.node_id
    else:
        value = plain.metadata.get(id_from.removeprefix("metadata:"))
    holds_more = isinstance(value, (bool, dict, list, tuple, set))
    return None if value is None or value == "" or holds_more else str(value)


def node_id_of(node: AnyNode, id_from: IdFrom = "node_id") -> str:
    """Give the id from its place, or else the node's own id; see `found_id`."""
    return found_id(node, id_from) or node.node_id


def text_of(node: AnyNode, mode: str = "llm") -> str:
    """Give the node's text.

    Args:
        node: The node, with or without a score.
        mode: What LlamaIndex calls the metadata mode: "llm", with the metadata that a model
            is shown; "none", without; "embed", as it was embedded; "all".

    Returns:
        The text; "" for an image.
    """
    return node.get_content(metadata_mode=MetadataMode(mode)) or ""


def place_of(node: AnyNode) -> Span | None:
    """Say where in its document the node stands; None where that is not known."""
    plain = node.node if isinstance(node, NodeWithScore) else node
    start, end = (getattr(plain, name, None) for name in ("start_char_idx", "end_char_idx"))
    source = plain.source_node
    if source is None or start is None or end is None or not 0 <= start <= end:
        return None
    return Span(source.node_id, start, end)


def retrieved(nodes: Sequence[AnyNode], id_from: IdFrom, mode: str) -> dict[str, Any]:
    """Give the fields of a `Sample` that say what was retrieved."""
    places = [place_of(node) for node in nodes]
    return {
        "retrieved_contexts": [text_of(node, mode) for node in nodes],
        "retrieved_context_ids": [node_id_of(node, id_from) for node in nodes],
        "retrieved_spans": None if None in places else places,
    }


def mode_for(metric: Metric, asked: str | None) -> str:
    """Give the metadata mode that was asked for, or else what fits the metric.

    Texts that are compared with references are taken without metadata, since those have
    none; a model that judges is shown what the application's model was shown.
    """
    return asked or ("none" if metric.judge.name == "text" else "llm")


def checked_mode(mode: object) -> str | None:
    """Say at once if something is no metadata mode; None is left to `mode_for`.

    Raises:
        InvalidArgumentError: It is none.
    """
    modes = [one.value for one in MetadataMode]
    value = mode.value if isinstance(mode, MetadataMode) else mode
    if value is None or (isinstance(value, str) and value in modes):
        return value
    raise InvalidArgumentError(f"context_text: {mode!r} is unknown: it is one of {modes}")
