"""Hand an evaluation to the report, as plain data."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ctxeval.calibration.calibration import Calibration
from ctxeval.evaluation.beside_words import BesideWords
from ctxeval.evaluation.compare import compare
from ctxeval.evaluation.rows import run_path, unfinished_of
from ctxeval.evaluation.statistics import Difference
from ctxeval.evaluation.trusting import Calibrations, calibrations_of, trust_of
from ctxeval.report.collecting import Collector
from ctxeval.report.content import Change, Report, Score, histogram
from ctxeval.report.document import render_report
from ctxeval.report.missing import MissingCollector
from ctxeval.report.reasons import Reason, gathered
from ctxeval.report.shown import Shown
from ctxeval.report.view import QueryView
from ctxeval.report.viewing import view_of_sample

if TYPE_CHECKING:
    from ctxeval.evaluation.evaluation import Evaluation
    from ctxeval.evaluation.rows import Row

OF_EACH = 5
"""So many queries stand out by a metric."""

LOOKED_AT = 5_000
"""Where each row must be scored to be looked at, stages and ranks are those of so many."""

LACKING = 200
"""So many queries without a value are looked at there, besides."""

SEED = 20240229

OPENED = 15
"""So many queries are opened at most."""


def report_of(
    evaluation: Evaluation,
    baseline: Evaluation | None = None,
    calibrations: Iterable[Calibration] = (),
) -> Report:
    """Say everything that a report says.

    Args:
        evaluation: What it is about.
        baseline: What it is compared with.
        calibrations: What people's labels say of its judges.

    Raises:
        InvalidArgumentError: The two can't be compared, or a calibration is another judge's.
        MissingExtraError: scipy is not installed.
    """
    scores = scores_of(evaluation, baseline, calibrations)
    worst = _worst(evaluation) if evaluation.readable else {}
    fallen = _fallen(evaluation, baseline) if baseline is not None and evaluation.readable else {}
    looked_at, notes = _looked_at(evaluation)
    lacking = _lacking(evaluation)
    collector, missing, words = Collector(), MissingCollector(evaluation.metrics), BesideWords()
    opened: dict[int, QueryView] = {}
    wanted = sorted({*looked_at, *worst, *fallen, *lacking[:LACKING]})
    for place, row in zip(wanted, evaluation.at(wanted), strict=True):
        view = view_of_row(row)
        if place in looked_at:
            collector.add(view)
            words.add(row)
        missing.add(view)
        if place in worst or place in fallen:
            opened[place] = view
    before: dict[str, QueryView] = {}
    if baseline is not None and baseline.readable:
        before = _views(baseline, [evaluation.ids[n] for n in fallen])
    return Report(
        evaluation.name,
        None if baseline is None else baseline.name or "the baseline",
        len(evaluation),
        0 if baseline is None else len(baseline),
        scores,
        () if baseline is None else changes_of(evaluation, baseline),
        collector.funnel(),
        collector.ranking(),
        tuple(Shown(opened[n], tuple(values)) for n, values in worst.items()),
        tuple(
            Shown(opened[n], tuple(values), before.get(evaluation.ids[n]))
            for n, values in fallen.items()
        ),
        reasons_of(evaluation, scores),
        missing.summed(len(lacking)),
        collector.agreements(),
        evaluation.usage,
        None if baseline is None else baseline.usage,
        words.odd(),
        notes,
    )


def _looked_at(evaluation: Evaluation) -> tuple[Collection[int], tuple[str, ...]]:
    """Choose the rows that stages and ranks are of, and say so where these are not all."""
    size = len(evaluation)
    if not evaluation.readable:
        return (), (evaluation.unreadable,)
    if not evaluation.late or size <= LOOKED_AT:
        return range(size), ()
    drawn = random.Random(SEED).sample(range(size), LOOKED_AT)
    told = (
        f"Stages and ranks are those of {LOOKED_AT:,} queries, drawn at random from {size:,}; "
        "everything else is of all"
    )
    return set(drawn), (told,)


def _lacking(evaluation: Evaluation) -> list[int]:
    """Find the queries that lack a value of any metric."""
    if not evaluation.readable:
        return []
    metrics = evaluation.metrics
    scored = Counter(place for metric in metrics for place, _ in evaluation.places(metric))
    return [place for place in range(len(evaluation)) if scored[place] < len(metrics)]


def view_of_row(row: Row) -> QueryView:
    """Make the view of a row."""
    return view_of_sample(row.sample, row.results, row.stages, row.id)


def _views(evaluation: Evaluation, ids: Sequence[str]) -> dict[str, QueryView]:
    return {row.id: view_of_row(row) for row in evaluation.of_ids(ids)} if ids else {}


Values = list[tuple[str, float, float | None]]


def _worst(evaluation: Evaluation) -> dict[int, Values]:
    """Find the queries with the lowest values of each metric, those lowest in the mean first."""
    scored = {metric: evaluation.places(metric) for metric in evaluation.metrics}
    sums: dict[int, float] = {}
    counts: dict[int, int] = {}
    for of_metric in scored.values():
        for place, value in of_metric:
            sums[place] = sums.get(place, 0.0) + value
            counts[place] = counts.get(place, 0) + 1
    means = {place: sums[place] / counts[place] for place in sums}
    found: dict[int, Values] = {}
    for metric, of_metric in scored.items():
        lowest = sorted(of_metric, key=lambda one: (one[1], means[one[0]], one[0]))
        for place, value in lowest[:OF_EACH]:
            if value < 1:
                found.setdefault(place, []).append((metric, value, None))
    order = sorted(found, key=lambda place: (means[place], place))
    return {place: found[place] for place in order[:OPENED]}


def _fallen(evaluation: Evaluation, baseline: Evaluation) -> dict[int, Values]:
    """Find the queries that lost most by each metric, those with the greatest fall first."""
    found: dict[int, Values] = {}
    for metric in evaluation.metrics:
        if metric not in baseline.metrics:
            continue
        before = baseline.values(metric)
        falls = [
            (value - before[name], place, value)
            for place, value in evaluation.places(metric)
            if (name := evaluation.ids[place]) in before and value < before[name]
        ]
        for fall, place, value in sorted(falls)[:OF_EACH]:
            found.setdefault(place, []).append((metric, value, value - fall))
    order = sorted(found, key=lambda n: (min(now - (was or 0) for _, now, was in found[n]), n))
    return {place: found[place] for place in order[:OPENED]}


def scores_of(
    evaluation: Evaluation,
    baseline: Evaluation | None = None,
    calibrations: Iterable[Calibration] = (),
) -> tuple[Score, ...]:
    """Say of each metric its mean, interval, distribution and coverage, and how far to trust it."""
    trust = trust_of(evaluation, calibrations)
    scores = []
    for one in evaluation.summary():
        interval = one.interval
        counts = histogram([value for _, value in evaluation.places(one.metric)])
        before = None
        if baseline is not None and one.metric in baseline.metrics:
            before = histogram([value for _, value in baseline.places(one.metric)])
        scores.append(
            Score(
                one.metric,
                interval and interval.mean,
                interval and interval.low,
                interval and interval.high,
                "no value" if interval is None else interval.method,
                one.scored,
                one.undefined,
                one.failed,
                one.skipped,
                one.bounds,
                one.signature,
                counts,
                before,
                one.flips,
                trust.get(one.metric),
            )
        )
    return tuple(scores)


def changes_of(evaluation: Evaluation, baseline: Evaluation) -> tuple[Change, ...]:
    """Say what became of each metric that both have."""
    changes = []
    for one in compare(baseline, evaluation).changes:
        interval = one.difference and one.difference.interval
        before, now = baseline.values(one.metric), evaluation.values(one.metric)
        both = [(before[name], now[name]) for name in before if name in now]
        changes.append(
            Change(
                one.metric,
                one.baseline,
                one.candidate,
                interval and interval.mean,
                interval and interval.low,
                interval and interval.high,
                "no pairs" if interval is None else interval.method,
                one.p_shown,
                sum(b > a for a, b in both),
                sum(b < a for a, b in both),
                one.pairs,
                one.dropped,
                one.difference and one.difference.detectable,
                one.verdict,
                "; ".join(filter(None, (one.note, _not_estimable(one.difference)))),
            )
        )
    return tuple(changes)


def _not_estimable(difference: Difference | None) -> str:
    why = difference.not_estimable if difference is not None else ""
    return why and f"the smallest change that could show is not estimable ({why})"


def reasons_of(evaluation: Evaluation, scores: Sequence[Score]) -> tuple[Reason, ...]:
    """Say why values are missing."""
    return gathered(evaluation.failures(), {one.metric: one.skipped for one in scores})


def write_report(
    evaluation: Evaluation,
    path: str | PathLike[str],
    baseline: Evaluation | str | PathLike[str] | None,
    calibration: Calibrations | None,
) -> Path:
    """Write the report; see `Evaluation.report`."""
    from ctxeval.evaluation.evaluation import Evaluation as Loaded

    # The suffix keeps a report from replacing a run, or the samples of one.
    path = run_path(path, "path", (".html", ".htm"), "report")
    before = None if baseline is None else Loaded.of(baseline)
    page = render_report(report_of(evaluation, before, calibrations_of(calibration)))
    unfinished = unfinished_of(path)
    unfinished.write_text(page, encoding="utf-8")
    unfinished.replace(path)
    return path
