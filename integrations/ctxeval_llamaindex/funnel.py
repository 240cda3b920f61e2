"""How a query's stages hang together: which count, and which was given what others found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxeval_llamaindex.queries import Query
from ctxeval_llamaindex.snapshots import Copy
from ctxeval_llamaindex.spans import PROMPT, RETRIEVE, RUN
from ctxeval_llamaindex.stages import Stage


class Place(NamedTuple):
    """A stage in its place.

    Attributes:
        stage: The stage.
        copies: Its nodes; of a synthesizer's, those that were retrieved in this query.
        parent: The place of the retrieval or postprocessing that it ran inside of.
        inputs: The places of the stages whose nodes it was given.
        error: Why it does not count, although there is nothing else; or its own error.
    """

    stage: Stage
    copies: list[Copy]
    parent: int | None
    inputs: tuple[int, ...]
    error: str

    @property
    def ids(self) -> set[str]:
        """The ids of its nodes."""
        return {one.node_id for one in self.copies}


def funnel(query: Query, stages: Sequence[Stage]) -> list[Place]:
    """Put the stages of a query in their places.

    Left out are those of an attempt that was given up for another one, and synthesizers that
    were given no node that was seen before: a sub-question engine puts its answers together so.
    """
    given_up = {one: _given_up(query, one) for one in stages}
    counted = [one for one in stages if not given_up[one] or all(given_up.values())]
    copies = {one: one.copies for one in counted}
    seen: set[str] = set()
    for one in counted:
        if one.kind != PROMPT:
            seen.update(one.given, (copy.node_id for copy in copies[one]))
    for one in [one for one in counted if one.kind == PROMPT]:
        documents = [copy for copy in copies[one] if copy.node_id in seen]
        if copies[one] and not documents:
            counted.remove(one)
        copies[one] = documents
    places: list[Place] = []
    for stage in counted:
        places.append(
            Place(
                stage,
                copies[stage],
                _parent(stage, counted),
                () if stage.kind == RETRIEVE else _inputs(stage, places),
                _error(stage) or ("" if query.failed else given_up[stage]),
            )
        )
    return places


def _error(stage: Stage) -> str:
    unended = stage.seconds is None and stage.kind != PROMPT
    return "it never ended" if unended else stage.error


def _given_up(query: Query, stage: Stage) -> str:
    """Say why a span around a stage failed, so that something else was tried; "" if none did.

    What made the whole query fail ended it: there was nothing else.
    """
    frame = stage.frame.outer
    while frame is not None:
        failure = frame.failed
        if failure is not None and not failure.is_control_flow:
            at_root = query.failed
            if at_root is None or failure.identity != at_root.identity:
                return f"its attempt was given up: {failure.text}"
        frame = frame.outer
    return ""


def _parent(stage: Stage, counted: Sequence[Stage]) -> int | None:
    outer = stage.parent
    while outer is not None and outer not in counted:
        outer = outer.parent
    return None if outer is None else counted.index(outer)


def _inputs(stage: Stage, before: Sequence[Place]) -> tuple[int, ...]:
    """Find the stages whose nodes a postprocessor or synthesizer was given.

    Those that gave some of them and were not taken on by another one yet; for a synthesizer
    of an engine, which ends what the engine does, and for one that was given nothing, also
    the others beside it.
    """
    taken = {place for one in before for place in one.inputs}
    free = [
        (place, one)
        for place, one in enumerate(before)
        if place not in taken and not one.error and _leads_to(one.stage, stage)
    ]
    beside = {place for place, one in free if one.stage.scope is stage.scope}
    shared = {place for place, one in free if not one.ids.isdisjoint(stage.given)}
    ends = stage.kind == PROMPT and stage.scope is not None and stage.scope.kind != RUN
    return tuple(sorted(beside | shared if ends else shared or beside))


def _leads_to(earlier: Stage, later: Stage) -> bool:
    """May one have been given what the other found? Not if that was in another branch."""
    scope = earlier.scope
    while scope is not None and scope is not later.scope:
        scope = scope.outer
    return earlier.parent is later.parent and scope is later.scope
