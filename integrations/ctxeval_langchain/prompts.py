"""Which of the retrieved chunks a model was really shown."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from ctxeval import Chunk, Retrieval
from ctxeval_langchain.queries import Query
from ctxeval_langchain.reading import prompt_text


def prompt_stage(query: Query, retrievals: list[Retrieval]) -> Retrieval | None:
    """Find the chunks whose text stands in the last prompt that holds any, in that order.

    Later prompts may hold none: a model that checks the answer, or names the conversation.

    Returns:
        The stage "prompt"; None where no prompt was captured, or nothing was retrieved. It is
        empty where no prompt holds any chunk.
    """
    outermost = [one for one in retrievals if one.outermost and not one.error]
    if not query.prompts or not any(one.chunks for one in outermost):
        return None
    retrieved = [chunk for one in outermost for chunk in one.chunks]
    shown = (_shown(retrieved, prompt_text(prompt)) for prompt in reversed(query.prompts.values()))
    found = next(filter(None, shown), [])
    return Retrieval(
        query=outermost[0].query,
        chunks=tuple(replace(chunk, rank=rank) for rank, chunk in enumerate(found)),
        name="prompt",
        kind="prompt",
        order=len(retrievals),
    )


def _shown(chunks: Iterable[Chunk], prompt: str) -> list[Chunk]:
    shown = _plain(prompt)
    pool: dict[str, Chunk] = {}
    for chunk in chunks:
        pool.setdefault(chunk.id, chunk)
    places = {}
    for chunk in sorted(pool.values(), key=lambda one: -len(one.text)):
        for text in _written(chunk.text):
            at = shown.find(text)
            if at >= 0:  # blot it out: a shorter chunk may be a part of it that was not shown
                shown = shown[:at] + "\0" * len(text) + shown[at + len(text) :]
                places[chunk.id] = at
                break
    return [pool[id] for id in sorted(places, key=places.__getitem__)]


def _written(text: str) -> list[str]:
    """Give the ways in which a text may stand in a prompt: as it is, or inside of a literal."""
    quoted = (repr(text), json.dumps(text), json.dumps(text, ensure_ascii=False))
    ways = (text, *(literal[1:-1] for literal in quoted))
    return [plain for way in ways if (plain := _plain(way))]


def _plain(text: str) -> str:
    return " ".join(text.split())
