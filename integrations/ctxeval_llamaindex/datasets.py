"""The queries of a data set, of LlamaIndex's form or of ctxeval's, as samples."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ctxeval import InvalidArgumentError, InvalidSampleError, References, Sample


def dataset_samples(dataset: Any) -> list[Sample]:
    """Read the queries and what is expected of each.

    Args:
        dataset: One of

            - an object, a mapping or the path of a JSON file with `queries` (question by
              id), `relevant_docs` (expected ids, or grades by id, by the query's id) and
              maybe `corpus` (text by id), as LlamaIndex's data sets have them;
            - `References`, or whatever `References.of` takes.

    Raises:
        InvalidArgumentError: It is none of these, or holds no query.
        InvalidSampleError: A query of it is malformed.
    """
    if isinstance(dataset, (str, PathLike)):
        dataset = _of_file(Path(dataset))
    queries, relevant = _part(dataset, "queries"), _part(dataset, "relevant_docs")
    if isinstance(dataset, Mapping) and (queries is None) != (relevant is None):
        lacking = "queries" if queries is None else "relevant_docs"
        raise InvalidArgumentError(f"dataset: it has no {lacking}: give them by the query's id")
    if queries is None or relevant is None:
        samples = list(References.of(dataset))
    else:
        corpus = _part(dataset, "corpus") or {}
        samples = [_sample(id, text, relevant, corpus) for id, text in queries.items()]
    if not samples:
        raise InvalidArgumentError("dataset: it holds no query: give one with at least one")
    return samples


def _of_file(path: Path) -> Any:
    """Give the mapping that a JSON file holds; the path where it holds something else."""
    if path.suffix.lower() != ".json":
        return path
    try:
        held = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return path  # References says what is wrong, and where
    return held if isinstance(held, dict) and "queries" in held else path


def _part(dataset: Any, name: str) -> Mapping[Any, Any] | None:
    part = dataset.get(name) if isinstance(dataset, Mapping) else getattr(dataset, name, None)
    if part is not None and not isinstance(part, Mapping):
        raise InvalidArgumentError(
            f"dataset: its {name} are a {type(part).__name__}: give a dict by id"
        )
    return part


def _sample(
    id: object, text: Any, relevant: Mapping[Any, Any], corpus: Mapping[Any, Any]
) -> Sample:
    expected = relevant.get(id)
    texts = None
    if isinstance(expected, (list, tuple)):
        found = [corpus.get(one, corpus.get(str(one))) for one in expected]
        texts = found if all(isinstance(one, str) for one in found) else None
    try:
        return Sample(
            id=id, user_input=text, reference_context_ids=expected, reference_contexts=texts
        )
    except InvalidSampleError as error:
        raise InvalidSampleError(f"dataset: the query {id!r}: {error}") from None
