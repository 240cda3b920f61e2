"""Why no expected id is among the retrieved ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ctxeval_llamaindex.nodes import AnyNode, IdFrom, found_id

_UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def misplaced(nodes: Sequence[AnyNode], id_from: IdFrom, expected: Collection[str]) -> str:
    """Say where the expected ids are, where they are not in the place that was looked at.

    Args:
        nodes: What was retrieved.
        id_from: Where its ids were taken from.
        expected: The expected ids.

    Returns:
        What to do; "" where an expected id was found, or none is anywhere.
    """
    wanted = set(expected)
    ids = [found_id(node, id_from) for node in nodes]
    if not nodes or not wanted or wanted.intersection(ids):
        return ""
    lacking = [node.node_id for node, one in zip(nodes, ids, strict=True) if one is None]
    note = f"{len(lacking)} of {len(ids)} nodes lack {_a(id_from)}" if lacking else ""
    if wanted.intersection(lacking):
        return f"{note}: their node ids stand in"
    keys = dict.fromkeys(key for node in nodes for key in node.metadata)
    for place in ("node_id", "source_id", *(f"metadata:{key}" for key in keys)):
        found = wanted.intersection(found_id(node, place) for node in nodes)
        if found:
            return (
                f"no expected id is {_a(id_from)}, but {len(found)} of {len(wanted)} are "
                f"{_several(place)}: give id_from={place!r}"
            )
    return note


def _a(id_from: IdFrom) -> str:
    if not isinstance(id_from, str):
        return "an id by the function given as id_from"
    key = id_from.removeprefix("metadata:")
    return f"a {key!r} in the metadata" if key != id_from else f"a {id_from.replace('_', ' ')}"


def _several(place: str) -> str:
    key = place.removeprefix("metadata:")
    return f"{key!r} in the metadata" if key != place else f"{place.replace('_', ' ')}s"


def random_ids(ids: Collection[str], expected: Collection[str]) -> str:
    """Say so where the retrieved ids look drawn at random and none of them is expected."""
    if not ids or not expected or set(ids).intersection(expected):
        return ""
    if not all(_UUID4.fullmatch(one) for one in ids):
        return ""
    return (
        "no expected id was retrieved, and the retrieved ones are random: LlamaIndex draws new "
        "node ids each time it parses. Set them (id_func= of the node parser), keep the index "
        "that the expected ids are from, or match by id_from='source_id' or 'metadata:<key>'"
    )
