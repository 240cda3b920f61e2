"""What the code that runs now is a part of, where the start of a run does not tell it.

Retrievers nest by their parents' ids; but one may call another without passing its run
manager on. And a run may name no parent, or one that this handler never saw: fallbacks hand
the caller's configuration to what they try, a call may be given callbacks of its own, or be
in a function that LangSmith traces.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from types import FrameType

from langchain_core.runnables.config import var_child_runnable_config

from ctxeval_langchain.queries import Query

# The retrievals that the code which runs now may be inside of, outermost first. Ids only, so
# that a context which lives on keeps nothing alive.
_retrievals: ContextVar[tuple[int, ...]] = ContextVar("ctxeval_retrievals", default=())


def enter(run_id: int, query: Query) -> tuple[int | None, int]:
    """Note that a retrieval begins, which is a run of this query already.

    Returns:
        The retrieval that it runs inside of without being told so, if any, and its place.
    """
    around, place = None, _place()
    inside = [one for one in _retrievals.get() if _is_open(one, query)]
    if inside and inside[-1] not in query.ancestors(run_id):
        around = next((one for one in reversed(inside) if _runs(one, query, place)), None)
    _retrievals.set((*inside, run_id))
    return around, place


def called_from(query_of: Mapping[int | None, Query]) -> tuple[int | None, Query | None]:
    """Find the run that the code which runs now is a part of.

    Args:
        query_of: The queries under way, by each of their runs.

    Returns:
        The run and its query; twice None where it is a part of none.
    """
    for one in reversed(_retrievals.get()):
        query = query_of.get(one)
        if query is not None and _is_open(one, query) and _runs(one, query, _place()):
            return one, query
    config = var_child_runnable_config.get()  # LangChain's own note, of chains, tools and graphs
    around = getattr(config.get("callbacks"), "parent_run_id", None) if config else None
    if around is not None:
        query = query_of.get(around.int)
        if query is not None and around.int in query.open:
            return around.int, query
    return None, None


def _is_open(run_id: int, query: Query) -> bool:
    run = query.retrievals.get(run_id)
    return run is not None and run.seconds is None


def _place() -> int:
    """Name the task, or else the thread, that runs now."""
    loop = asyncio._get_running_loop()
    return threading.get_ident() if loop is None else id(asyncio.current_task(loop))


def _runs(run_id: int, query: Query, place: int) -> bool:
    """Does the code that runs now run inside of this open retrieval?

    It may have been cancelled, which nothing tells, and its task may be doing something
    else by now: then it isn't on the stack any more. Other tasks and threads have their
    context from the retrieval's.
    """
    if query.retrievals[run_id].place != place:
        return True
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if "run_manager" in frame.f_code.co_varnames:
            told = getattr(frame.f_locals.get("run_manager"), "run_id", None)
            if told is not None and told.int == run_id:
                return True
        frame = frame.f_back
    return False
