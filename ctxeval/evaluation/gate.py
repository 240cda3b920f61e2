"""A gate for continuous integration: fails only on what the numbers really show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from typing import NamedTuple

from ctxeval.errors import CtxEvalError, InvalidArgumentError, near, short
from ctxeval.evaluation.compare import compare
from ctxeval.evaluation.evaluation import Evaluation
from ctxeval.evaluation.tally import Summary


class GateFailure(CtxEvalError, AssertionError):
    """The gate is shut; the message is a table of what failed."""


class Check(NamedTuple):
    """One thing that the gate looked at.

    Attributes:
        metric: The metric.
        what: What was asked.
        found: What was found.
        passed: Is it well?
    """

    metric: str
    what: str
    found: str
    passed: bool


def gate(
    candidate: Evaluation | str | PathLike[str],
    baseline: Evaluation | str | PathLike[str] | None = None,
    *,
    minimum: Mapping[str, float] | None = None,
    max_drop: Mapping[str, float] | None = None,
    min_coverage: float = 0.95,
) -> list[Check]:
    """Let an evaluation pass, or raise.

    Args:
        candidate: What is to pass, or the file that it was saved to.
        baseline: What it is compared with, likewise.
        minimum: Floors by metric. One fails where the interval of the mean lies wholly below
            it (where there is no interval: the mean).
        max_drop: How far a metric's mean may fall below the baseline's. It fails where it
            fell further and the fall is significant at the 5 % level, adjusted for the
            number of metrics. Metrics that are not named may not fall at all.
        min_coverage: The least share of samples that must have a value, of all of which
            something was expected; and of the baseline's samples that must be there.

    Returns:
        What was looked at.

    Raises:
        GateFailure: Something failed; also: there is no sample, or a metric of the baseline
            was not scored.
        InvalidArgumentError: A metric is unknown, a number is not from 0 to 1, or `max_drop`
            has no baseline.
    """
    checks = check(
        candidate,
        baseline,
        minimum=minimum,
        max_drop=max_drop,
        min_coverage=min_coverage,
    )
    if not all(one.passed for one in checks):
        raise GateFailure(as_table(checks))
    return checks


def check(
    candidate: Evaluation | str | PathLike[str],
    baseline: Evaluation | str | PathLike[str] | None = None,
    *,
    minimum: Mapping[str, float] | None = None,
    max_drop: Mapping[str, float] | None = None,
    min_coverage: float = 0.95,
) -> list[Check]:
    """Look at an evaluation without raising where something failed; see `gate`."""
    candidate = Evaluation.of(candidate)
    baseline = None if baseline is None else Evaluation.of(baseline)
    _known_numbers("min_coverage", {"": min_coverage})
    _known_numbers("minimum", minimum or {})
    _known_numbers("max_drop", max_drop or {})
    summaries = {one.metric: one for one in candidate.summary()}
    if not summaries:
        return [Check("samples", "at least 1", f"{len(candidate)}, none of them scored", False)]
    for name in (*(minimum or {}), *(max_drop or {})):
        if name not in summaries:
            raise InvalidArgumentError(f"gate: {name!r} was not scored: {near(name, summaries)}")
    if max_drop and baseline is None:
        raise InvalidArgumentError("max_drop: it needs a baseline to fall from: give baseline=")
    checks = [_coverage(one, min_coverage) for one in summaries.values()]
    checks += [_floor(summaries[name], floor) for name, floor in (minimum or {}).items()]
    if baseline is not None:
        checks.append(_kept(baseline, candidate, min_coverage))
        checks += [
            Check(name, "scored as in the baseline", "not scored", False)
            for name in baseline.metrics
            if name not in summaries
        ]
        checks += _drops(baseline, candidate, max_drop or {})
    return checks


def _known_numbers(argument: str, numbers: Mapping[str, float]) -> None:
    if not isinstance(numbers, Mapping):
        raise InvalidArgumentError(
            f"{argument}: {short(numbers)} is no mapping: give a number per metric"
        )
    for name, number in numbers.items():
        real = isinstance(number, (int, float)) and not isinstance(number, bool)
        if not real or not math.isfinite(number) or not 0 <= number <= 1:
            place = f"{argument}[{name!r}]" if name else argument
            raise InvalidArgumentError(f"{place}: {short(number)} is no number from 0 to 1")


def as_table(checks: list[Check]) -> str:
    """Write checks for a terminal, the failed ones first."""
    ordered = sorted(checks, key=lambda check: check.passed)
    marks = {True: "ok  ", False: "FAIL"}
    return "\n".join(
        f"{marks[one.passed]} {one.metric:42} {one.what}: {one.found}" for one in ordered
    )


def _coverage(one: Summary, least: float) -> Check:
    possible = one.scored + one.failed + one.skipped
    found = f"{one.scored} of {possible} scored ({one.failed} failed, {one.skipped} skipped)"
    passed = possible == 0 or one.coverage >= least
    return Check(one.metric, f"coverage >= {least:g}", found, passed)


def _kept(baseline: Evaluation, candidate: Evaluation, least: float) -> Check:
    before = set(baseline.ids)
    there = len(before.intersection(candidate.ids))
    passed = there >= least * len(before)
    return Check(
        "samples",
        f"of the baseline's >= {least:g}",
        f"{there} of {len(before)} are there",
        passed,
    )


def _floor(one: Summary, floor: float) -> Check:
    what = f"mean >= {floor:g}"
    if one.interval is None:
        return Check(one.metric, what, "no sample has a value", False)
    mean, low, high, method, n = one.interval
    if low is None or high is None:
        return Check(one.metric, what, f"{mean:.3f} (n={n}, {method})", mean >= floor)
    found = f"{mean:.3f} ({low:.3f} to {high:.3f}, n={n})"
    return Check(one.metric, what, found, high >= floor)


def _drops(
    baseline: Evaluation, candidate: Evaluation, max_drop: Mapping[str, float]
) -> list[Check]:
    checks = []
    for change in compare(baseline, candidate).changes:
        allowed = max_drop.get(change.metric, 0.0)
        what = f"drop <= {allowed:g}"
        if change.difference is None:
            checks.append(Check(change.metric, what, "no sample has a value in both", False))
            continue
        mean = change.difference.interval.mean
        found = f"{mean:+.3f} (p {change.p_shown}, {change.pairs} pairs)"
        shut = change.verdict == "worse" and -mean > allowed
        checks.append(Check(change.metric, what, found, not shut))
    return checks
