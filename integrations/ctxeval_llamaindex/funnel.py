"""How the stages of a query hang together: what counts, what ran inside of what, who took what on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctxeval_llamaindex.queries import Query, Stage
from ctxeval_llamaindex.spans import PROMPT, RETRIEVE, RUN

_CONTROL_FLOW = ("WaitingForEvent", "WorkflowDone")


def counted(query: Query, stages: Iterable[Stage]) -> list[Stage]:
    """Leave out what was given up for another attempt, and prompts that hold no documents.

    What was given up counts after all where there is nothing else.
    """
    stages = list(stages)
    kept = [one for one in stages if not given_up(query, one)] or stages
    found = {fields[0] for one in kept if one.kind != PROMPT for fields in one.copies}
    found.update(*(one.given for one in kept if one.kind != PROMPT))
    for one in kept:
        if one.kind == PROMPT:
            documents = [fields for fields in one.copies if fields[0] in found]
            one.copies = documents
    return kept


def given_up(query: Query, stage: Stage) -> str:
    """Say why a span around a stage failed, so that something else was tried; "" if none did.

    What made the whole query fail ended it: there was nothing else.
    """
    at_root = query.failed
    frame = stage.frame.outer
    while frame is not None:
        failure = frame.failed
        if failure is not None and failure.kind not in _CONTROL_FLOW:
            if at_root is None or failure.identity != at_root.identity:
                return f"its attempt was given up: {failure.text}"
        frame = frame.outer
    return ""


def around(stage: Stage, stages: Sequence[Stage]) -> int | None:
    """Find the retrieval or postprocessing that a stage ran inside of: its place among them."""
    outer = stage.parent
    while outer is not None and outer not in stages:
        outer = outer.parent
    return None if outer is None else stages.index(outer)


def inputs(stage: Stage, stages: Sequence[Stage], taken: set[int]) -> tuple[int, ...]:
    """Find the stages whose nodes a postprocessor or synthesizer was given.

    Args:
        stage: The postprocessor's or synthesizer's.
        stages: All stages.
        taken: The places of those that another one took on before.

    Returns:
        Their places: those that some of its nodes were seen in last. Where it was given
        nothing, or a synthesizer ends an engine's work, those that belong together with it.
    """
    before = [
        (place, one)
        for place, one in enumerate(stages[: stages.index(stage)])
        if place not in taken and one.parent is stage.parent and not one.error
    ]
    near = [place for place, one in before if one.scope is stage.scope]
    shared = [place for place, one in before if one.ids & stage.given]
    ends = stage.kind == PROMPT and stage.scope is not None and stage.scope.kind != RUN
    return tuple(sorted({*near, *shared}) if ends else shared or near)
