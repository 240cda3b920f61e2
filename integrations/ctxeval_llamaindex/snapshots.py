"""What was retrieved, copied at once: the nodes themselves are changed by whoever comes next."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ctxeval import Chunk, Span, text_id

IdKey = str | Callable[[Any], Any] | None

Fields = Sequence[tuple[Any, ...]]
"""What copies are made of, in their order: the application waits for it."""


class Copy(NamedTuple):
    """A node as it was. It has what `found_id` looks for in a node.

    Attributes:
        node_id: Its id.
        text: Its text, without metadata.
        score: Its score.
        metadata: Its metadata.
        relationships: Which nodes and documents it belongs to.
        start: Where in its document it begins.
        end: Where it ends.
        node: A copy of the node itself, where the user's function has to see it.
    """

    node_id: str
    text: str
    score: Any
    metadata: Mapping[str, Any]
    relationships: Mapping[Any, Any]
    start: Any
    end: Any
    node: Any = None

    @property
    def source_node(self) -> Any:
        """The document, or larger node, that it was cut from."""
        for relation, other in self.relationships.items():
            if getattr(relation, "name", relation) == "SOURCE":
                return other
        return None

    @property
    def span(self) -> Span | None:
        """Where in that document it stands, where that is known."""
        source, start, end = self.source_node, self.start, self.end
        if source is None or type(start) is not int or type(end) is not int:
            return None
        return Span(source.node_id, start, end) if 0 <= start <= end else None


def ids_of(nodes: Any) -> frozenset[str]:
    """Give the ids of nodes, with or without scores."""
    return frozenset(_plain(one).id_ for one in nodes or ())


def snapshot(nodes: Any, *, whole: bool = False) -> Fields:
    """Copy nodes; `copies` makes something of it.

    Args:
        nodes: The nodes, with their scores.
        whole: Keep copies of the nodes themselves too?
    """
    fields: list[tuple[Any, ...]] = []
    for one in nodes:
        try:  # quicker by far than by the attributes
            scored = one.__dict__
            node = scored["node"].__dict__
            fields.append(
                (
                    node["id_"],
                    node["text"],
                    scored["score"],
                    node["metadata"].copy(),
                    node["relationships"],
                    node["start_char_idx"],
                    node["end_char_idx"],
                    _kept(one) if whole else None,
                )
            )
        except (AttributeError, KeyError):  # no TextNode
            fields.append(_fields(one, whole))
    return fields


def copies(fields: Fields) -> list[Copy]:
    """Make copies of what a snapshot holds."""
    return [Copy(*one) for one in fields]


def _plain(one: Any) -> Any:
    return getattr(one, "node", one)


def _kept(one: Any) -> Any:
    node = copy.copy(_plain(one))
    node.metadata = dict(node.metadata)
    return node


def _fields(one: Any, whole: bool) -> tuple[Any, ...]:
    node = _plain(one)
    text = vars(node).get("text")
    return (
        node.id_,
        text if isinstance(text, str) else node.get_content() or "",
        getattr(one, "score", None),
        dict(node.metadata),
        node.relationships,
        getattr(node, "start_char_idx", None),
        getattr(node, "end_char_idx", None),
        _kept(one) if whole else None,
    )


Failed = Callable[[str, Exception], object]


def chunks_of(nodes: Iterable[Copy], id_key: IdKey, failed: Failed) -> tuple[Chunk, ...]:
    """Make chunks of what was copied.

    Args:
        nodes: The copies, best first.
        id_key: Where the ids stand: "node_id", "source_id", a metadata key with or without
            "metadata:" before it, or a function of the node. None: the node's own.
        failed: Is told where the function raises: the node's own id counts then.
    """
    return tuple(_chunk(rank, one, id_key, failed) for rank, one in enumerate(nodes))


def _chunk(rank: int, one: Copy, id_key: IdKey, failed: Failed) -> Chunk:
    name, place = _identify(one, id_key, failed)
    metadata = dict(one.metadata)
    if (source := one.source_node) is not None:
        metadata.setdefault("source_id", source.node_id)
    if place != "node_id" and one.node_id:
        metadata.setdefault("node_id", one.node_id)
    return Chunk(
        rank=rank,
        id=name,
        id_source=place,
        text=one.text,
        score=_score(one.score),
        span=one.span,
        metadata=metadata,
    )


def _identify(one: Copy, id_key: IdKey, failed: Failed) -> tuple[str, str]:
    """Give the id and where it came from."""
    from ctxeval_llamaindex.nodes import found_id  # whoever has nodes has loaded llama_index.core

    place = id_key
    if isinstance(id_key, str) and id_key not in ("node_id", "source_id"):
        place = f"metadata:{id_key.removeprefix('metadata:')}"
    if place is not None:
        found = None
        try:
            found = found_id(one.node if callable(place) else one, place)  # type: ignore[arg-type]  # see Copy
        except Exception as error:  # the user's code: its fault must not cost the record
            failed("id_key", error)
        if found is not None:
            return found, "id_key" if callable(place) else place
    if one.node_id:
        return str(one.node_id), "node_id"
    return text_id(one.text), "text_hash"


def _score(score: Any) -> float | None:
    if score is None or isinstance(score, (bool, str)):
        return None
    try:
        number = float(score)  # numpy's numbers too
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
