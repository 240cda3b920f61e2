"""How many queries a run is: itself, or one for each of the questions that it was given.

A run with a question of its own is one query, however often it retrieves and whatever it asks
for that: rewritten, split into parts, by an agent. A run that was given several questions, or
nothing at all, or but documents and tables, is as many queries as the runs inside of it that
have one each.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from ctxeval_langchain.queries import Query
from ctxeval_langchain.reading import fields_of

Ask = Callable[[Any], str | None]
Answer = Callable[[Query], str | None]


def queries_in(query: Query, ask: Ask, answer: Answer) -> list[Query]:
    """Give the queries that a run turned out to be, in the order of its questions.

    What was retrieved for none of them is left to the run itself.

    Args:
        query: The run, which is over.
        ask: Finds the question in an input.
        answer: Finds what a query was answered.
    """
    if query.parts is None or ask(query.input) is not None:
        return [query]
    given = _given(query.input, ask)
    if not given and (not _asks_nothing(query.input) or _is_untold(query.input)):
        return [query]  # its question may stand where no rule finds it
    asked = _asked(query, ask, given)
    runs_of = _runs_of(query, asked)
    place = {question: order for order, question in enumerate(given)}
    made = [
        (asked[run_id], _part(query, runs_of[run_id]))
        for run_id in sorted(asked, key=lambda one: place.get(asked[one], 0))
    ]
    found = _without_attempts(query, [one for one in made if one[1].retrievals])
    if not found or (not given and len({question for question, _ in found}) == 1):
        return [query]
    _complete(found, [one for one in made if not one[1].retrievals], answer)
    for run_id in itertools.chain.from_iterable(runs_of.values()):
        query.retrievals.pop(run_id, None)
    parts = [part for _, part in found]
    return [*parts, query] if query.retrievals else parts


def _given(value: Any, ask: Ask) -> dict[str, None]:
    """Find the questions in a list, or in the lists that an input holds."""
    lists = [value] if isinstance(value, (list, tuple)) else list(fields_of(value).values())
    items = [item for one in lists if isinstance(one, (list, tuple)) for item in one]
    return {_normal(text): None for item in items if (text := ask(item)) is not None}


def _asks_nothing(value: Any) -> bool:
    """Is it sure that no question stands in it? It is empty, or holds but documents and tables."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, (Mapping, list, tuple)):
        return all(map(_asks_nothing, value.values() if isinstance(value, Mapping) else value))
    table = hasattr(value, "itertuples") or hasattr(value, "iter_rows")  # pandas', polars'
    return value is None or isinstance(value, Document) or table


def _is_untold(value: Any) -> bool:
    """Is it what LangChain says that a stream was asked, until its end?"""
    # Compared piece by piece: what stands in it may be a table, which compares cell by cell.
    if not isinstance(value, Mapping) or list(value) != ["input"]:
        return False
    asked = value["input"]
    return isinstance(asked, str) and not asked


def _normal(question: str) -> str:
    return " ".join(question.casefold().split())


def _asked(query: Query, ask: Ask, given: Mapping[str, None]) -> dict[int, str]:
    """Find the outermost runs with a question, among those given if any were."""
    asked: dict[int, str] = {}
    inside: set[int] = set()
    parts = query.parts or {}
    for run_id, parent in query.parents.items():  # in order of starting: outer ones first
        if parent in inside:
            inside.add(run_id)
            continue
        question = None
        if run_id in parts:
            question = ask(parts[run_id].input)
        elif given and run_id in query.retrievals:
            question = str(query.retrievals[run_id].query)
        if question is not None and (not given or _normal(question) in given):
            asked[run_id] = _normal(question)
            inside.add(run_id)
    return asked


def _without_attempts(query: Query, found: list[tuple[str, Query]]) -> list[tuple[str, Query]]:
    """Leave out attempts that failed and after which the same was asked again."""
    last = dict(found)
    given_up = {
        part.root_id
        for _, part in found
        if query.given_up(part.root_id, *query.ancestors(part.root_id))
    }
    for question, part in found:
        if part.root_id not in given_up:
            last[question] = part
    return [
        (question, part)
        for question, part in found
        if part.root_id not in given_up or last[question] is part
    ]


def _runs_of(query: Query, asked: Mapping[int, str]) -> dict[int, list[int]]:
    """Give the runs inside of each run with a question, itself among them, in order of starting."""
    owners = {run_id: run_id for run_id in asked}
    runs: dict[int, list[int]] = {run_id: [run_id] for run_id in asked}
    for run_id, parent in query.parents.items():  # in order of starting
        if run_id not in owners and parent in owners:
            owners[run_id] = owners[parent]
            runs[owners[run_id]].append(run_id)
    return runs


def _part(query: Query, run_ids: Sequence[int]) -> Query:
    """Make a query of a run and everything below it."""

    def mine(known: Mapping[int, Any]) -> dict[int, Any]:
        return {one: known[one] for one in run_ids if one in known}

    run_id = run_ids[0]
    part = (query.parts or {}).get(run_id)
    if part is None:
        run = query.retrievals[run_id]
        made = Query(run_id, run.name, run.query, {}, chain=False, one_of_many=False)
        made.started, made.ended = query.started, query.ended
    else:
        made = Query(run_id, part.name, part.input, part.metadata, chain=True, one_of_many=False)
        made.started, made.ended = part.started, part.ended or query.ended
        made.output = part.output
    made.order = query.order
    made.parents = {one: query.parents[one] for one in run_ids[1:]}
    made.retrievals, made.prompts = mine(query.retrievals), mine(query.prompts)
    made.open = query.open.intersection(run_ids)
    failed = mine(query.failed)
    if run_id in query.open and query.root_id in query.failed:
        failed[run_id] = query.failed[query.root_id]
    if (at_root := failed.get(run_id)) is not None:
        same = at_root[:2]
        failed = {one: other._replace(fatal=other[:2] == same) for one, other in failed.items()}
    made.failed = failed
    return made


def _complete(
    found: list[tuple[str, Query]], others: list[tuple[str, Query]], answer: Answer
) -> None:
    """Complete what retrieved by the runs that were asked the same and did not retrieve.

    They may have answered it; or they are what a graph began before it stopped and began
    anew, and the query was known by their id.
    """
    answers: defaultdict[str, list[Query]] = defaultdict(list)
    earlier: defaultdict[str, list[Query]] = defaultdict(list)
    for question, other in others:
        kind = earlier if answer(other) is None else answers
        kind[question].append(other)
    for question, part in found:
        if answers[question] and not part.failed and answer(part) is None:
            other = answers[question].pop(0)
            part.output, part.ended, part.chain = other.output, other.ended, True
            part.prompts = {**part.prompts, **other.prompts}
        if earlier[question] and part.chain:
            part.rename(earlier[question].pop(0).root_id)
