"""What a retriever returned, as chunks: texts, ids, scores and places."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from ctxeval import Chunk, Span, text_id
from ctxeval_langchain.notices import tell_once

Copies = Sequence[Any]
"""Id, text and metadata of each document, as they were when the retriever ended: one flat list,
which costs the application less than one of tuples."""

IdKey = str | Callable[[Document], Any] | None

TEXT_HASH = "text_hash"
"""The `id_source` of an id that is only a hash of the text."""

ID_KEYS = ("chunk_id", "_id", "id", "pk", "uuid", "result_id", "doc_id", "document_id")
"""Where vector stores that leave `Document.id` empty keep the id."""

SCORE_KEYS = (
    "score",
    "relevance_score",
    "similarity_score",
    "mmr_score",
    "_relevance_score",
    "_distance",
    "@search.score",
)
"""Where retrievers and rerankers keep the score."""


def snapshot(documents: Any) -> Copies | None:
    """Copy what a retriever returned, so that later changes don't reach it.

    Returns:
        The copies; None where it is no list: `unreadable` says why.
    """
    if not isinstance(documents, (list, tuple)):
        if isinstance(documents, (str, bytes)) or not isinstance(documents, Sequence):
            return None
        documents = list(documents)
    copies: list[Any] = []
    for one in documents:
        if type(one) is Document:
            copies += (one.id, one.page_content, one.metadata.copy())
        else:
            copies += _copy_of_another(one)
    return copies


def unreadable(documents: Any) -> str:
    """Say why nothing is known of what a retriever returned."""
    if isinstance(documents, Iterator):
        return "it returned an iterator, which only the chain may read: let it return a list"
    return f"it returned {type(documents).__name__}: let it return a list of documents"


def _copy_of_another(item: Any) -> tuple[Any, str, Mapping[str, Any]]:
    if isinstance(item, Mapping):
        text = item.get("page_content", item.get("text", ""))
        return item.get("id"), str(text), dict(item.get("metadata") or {})
    text = getattr(item, "page_content", None)
    if text is None:
        return None, str(item), {}
    return getattr(item, "id", None), str(text), dict(getattr(item, "metadata", None) or {})


def chunks_of(
    copies: Copies, id_key: IdKey, known: Mapping[str, tuple[str, str]]
) -> tuple[Chunk, ...]:
    """Make chunks of what was copied.

    Args:
        copies: The copies, best first.
        id_key: The user's own place of the id: a metadata key, or a function of the document.
        known: Ids with their sources by text, from the retrievals inside of this one.
    """
    chunks = []
    columns = zip(copies[::3], copies[1::3], copies[2::3], strict=True)
    for rank, (id, text, metadata) in enumerate(columns):
        name, source = _identify(id, text, metadata, id_key, known)
        chunks.append(
            Chunk(
                rank=rank,
                id=name,
                id_source=source,
                text=text,
                score=_score(metadata),
                span=_span(text, metadata),
                metadata=metadata,
            )
        )
    return tuple(chunks)


def _identify(
    id: str | None,
    text: str,
    metadata: Mapping[str, Any],
    id_key: IdKey,
    known: Mapping[str, tuple[str, str]],
) -> tuple[str, str]:
    """Give the id and where it came from, in the documented order."""
    if callable(id_key):
        document = Document(id=id, page_content=text, metadata=dict(metadata))
        try:
            own = id_key(document)
        except Exception as error:  # the user's code: its fault must not cost the record
            tell_once(f"id_key failed with {error!r}: the next source of ids is used")
            own = None
        if _is_id(own):
            return str(own), "id_key"
    elif id_key is not None and _is_id(metadata.get(id_key)):
        return str(metadata[id_key]), f"metadata:{id_key}"
    if _is_id(id):
        return str(id), "document_id"
    if text in known:
        return known[text]
    for key in ID_KEYS:
        if _is_id(metadata.get(key)):
            return str(metadata[key]), f"metadata:{key}"
    return text_id(text), TEXT_HASH


def _is_id(value: Any) -> bool:
    """Could this identify a chunk? Not what is empty or no number, nor what holds other things."""
    if value is None or value == "" or isinstance(value, (bool, dict, list, tuple, set)):
        return False
    return not (isinstance(value, float) and math.isnan(value))


def _score(metadata: Mapping[str, Any]) -> float | None:
    for key in SCORE_KEYS:
        value = metadata.get(key)
        if value is None or isinstance(value, (bool, str)):
            continue
        try:
            score = float(value)  # numpy's numbers too
        except (TypeError, ValueError):
            continue
        if math.isfinite(score):
            return score
    return None


def _span(text: str, metadata: Mapping[str, Any]) -> Span | None:
    """Read the place that a text splitter noted, of a document that is named by its source."""
    start, source = metadata.get("start_index"), metadata.get("source")
    if isinstance(start, bool) or not isinstance(start, int) or start < 0 or not _is_id(source):
        return None
    return Span(source, start, start + len(text))
