"""What an index holds: asked of whatever stands for it, known by its methods alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ctxeval.errors import InvalidArgumentError, short
from ctxeval.fields import as_id
from ctxeval.record.query import QueryRecord
from ctxeval.sample import Sample

Texts = dict[str, str | None]
"""Ids with their texts, where they are known."""


def look_up(index: Any, samples: Sequence[Sample]) -> tuple[Texts, bool]:
    """Ask an index for what samples expect.

    Args:
        index: As of `References.check`.
        samples: What is expected.

    Returns:
        The ids that it has, with their texts; and whether an id that is not among them is
        certainly not in the index.

    Raises:
        InvalidArgumentError: It is no index.
    """
    read: Callable[[], Iterable[QueryRecord]] | None = getattr(index, "records", None)
    if callable(read):
        stages = (stage for record in read() for stage in record.retrievals)
        return {chunk.id: chunk.text for stage in stages for chunk in stage.chunks}, True
    if callable(getattr(index, "get_by_ids", None)):
        return _of_vector_store(index, samples), True
    documents = getattr(getattr(index, "docstore", index), "docs", None)
    if isinstance(documents, Mapping):
        return {as_id(name): _text(node) for name, node in documents.items()}, True
    if (ask := _question(index)) is not None:
        return _of_retriever(ask, samples), False
    if isinstance(index, Mapping):
        return {as_id(name): text for name, text in index.items()}, True
    if isinstance(index, str) or not isinstance(index, Iterable):
        raise InvalidArgumentError(
            f"index: {short(index)} is none: give its ids, a mapping from id to text, its chunks, "
            "a vector store or a retriever"
        )
    return _of_items(index), True


def _question(index: Any) -> Callable[[str], Any] | None:
    """Give what a retriever is asked by."""
    for name in ("invoke", "retrieve"):
        if callable(ask := getattr(index, name, None)):
            return ask  # type: ignore[no-any-return]  # known by its name alone
    return index if callable(index) and not isinstance(index, type) else None


def _of_retriever(ask: Callable[[str], Any], samples: Sequence[Sample]) -> Texts:
    asked: dict[str, None] = {}
    for one in samples:
        for text in (*(one.reference_contexts or ()), one.user_input or ""):
            if text.strip():
                asked[text] = None
    found: Texts = {}
    for text in asked:
        found.update(_of_items(ask(text)))
    return found


def _of_vector_store(store: Any, samples: Sequence[Sample]) -> Texts:
    expected = dict.fromkeys(name for one in samples for name in one.reference_context_ids or ())
    found = _of_items(store.get_by_ids(list(expected)))
    search = getattr(store, "similarity_search", None)
    if search is not None:
        for one in samples:
            names = list(one.reference_context_ids or ())
            for name, text in zip(names, one.reference_contexts or (), strict=False):
                if name not in found and text.strip():
                    found = {**_of_items(search(text)), **found}
    return found


def _of_items(items: Iterable[Any]) -> Texts:
    found: Texts = {}
    for item in items:
        name, text = _id_and_text(item)
        try:
            found[as_id(name)] = text
        except ValueError as error:
            raise InvalidArgumentError(f"index: {error}") from None
    return found


def _id_and_text(item: Any) -> tuple[Any, str | None]:
    for name in ("id", "node_id", "id_"):
        if hasattr(item, name):
            return getattr(item, name), _text(item)
    return item, None


def _text(item: Any) -> str | None:
    text = getattr(item, "text", None) or getattr(item, "page_content", None)
    return text if isinstance(text, str) else None
