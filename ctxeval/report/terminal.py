"""The report in a terminal, by rich: what the HTML file says, without its pictures.

Chunks, questions and answers are hostile text: they are printed without markup and
without control characters, so that no escape sequence reaches the terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ctxeval.report import wording
from ctxeval.report.agreement import Agreement
from ctxeval.report.content import Change, Report, Score
from ctxeval.report.funnel import Funnel
from ctxeval.report.missing import Missing
from ctxeval.report.ranking import Ranking
from ctxeval.report.reasons import Reason
from ctxeval.report.shown import Shown
from ctxeval.report.text import show_queries
from ctxeval.verdicts import Usage

REASONS = 10
CHUNKS = 5
WORST = 3


def table(*headings: str, left: int = 1) -> Table:
    """Make a plain table; where it is too wide, its texts wrap and its numbers stay whole.

    Args:
        *headings: The columns.
        left: How many of them hold text; the others hold numbers.
    """
    made = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    for place, heading in enumerate(headings):
        if place < left:
            made.add_column(heading, overflow="fold")
        else:
            made.add_column(heading, no_wrap=True, justify="right")
    return made


def show_report(report: Report, console: Console) -> None:
    """Print everything that a report says."""
    than = "" if report.baseline is None else f", compared with {wording.line(report.baseline, 80)}"
    console.print(Text(f"{_counted(report.queries)}{than}", style="bold"))
    show_scores(report.scores, console)
    for said in report.odd:
        console.print(Text(wording.line(said, 400), style="yellow"))
    for said in report.notes:
        console.print(Text(wording.line(said, 400)))
    if report.changes:
        _title("What changed", console)
        show_changes(report.changes, console)
    if report.funnel is not None:
        _title("Where relevant chunks get lost", console)
        _show_funnel(report.funnel, console)
    if report.ranking is not None:
        _title("Rank by rank", console)
        _show_ranking(report.ranking, console)
    for title, shown in (
        ("Queries that lost most", report.fallen),
        ("Worst queries", report.worst),
    ):
        if shown:
            _title(title, console)
            _show_opened(shown, console)
    _title("Missing values", console)
    show_missing(report.scores, report.reasons, console)
    if report.missing.opened:
        _title("Queries without a value", console)
        _show_lacking(report.missing, console)
    if report.agreements:
        _title("Agreement of the judge", console)
        _show_agreements(report.agreements, console)
    _title("Cost", console)
    show_cost(report.usage, console)


def _text(value: str, limit: int) -> Text:
    """Give a text as it stands: rich would take its brackets for markup."""
    return Text(wording.line(value, limit))


def _title(title: str, console: Console) -> None:
    console.print(Text(f"\n{title}", style="bold"))


def _counted(queries: int) -> str:
    return f"{wording.count(queries)} {'query' if queries == 1 else 'queries'}"


def show_scores(scores: Sequence[Score], console: Console) -> None:
    """Print each metric's mean, interval, distribution and coverage."""
    if not scores:
        console.print("No metric has a result.")
        return
    made = table("metric", "0 to 1", "mean", "95 % interval", "scored", left=2)
    for one in scores:
        made.add_row(
            _text(one.metric, 80),
            wording.spark(one.counts),
            wording.number(one.mean),
            wording.span(one.low, one.high, one.method),
            wording.percent(one.scored, one.scored + one.failed + one.skipped),
        )
        if one.trust is not None and one.trust.mean is not None:
            made.add_row(
                Text(f"  corrected, by {wording.count(one.trust.labels)} labels"),
                "",
                wording.number(one.trust.mean),
                wording.span(one.trust.low, one.trust.high, ""),
                "",
            )
    console.print(made)
    for one in scores:
        if one.trust is not None:
            for style, told in (("", one.trust.told), ("yellow", one.trust.doubts)):
                for said in told:
                    said = f"{wording.line(one.metric, 80)}: {wording.line(said, 400)}"
                    console.print(Text(said, style=style), soft_wrap=True)
        if one.flips is not None:
            share = wording.percent(one.flips, 1)
            said = f"{share} of its verdicts flip between repeats, which the interval includes"
            console.print(Text(f"{wording.line(one.metric, 80)}: {said}"))


def show_changes(changes: Sequence[Change], console: Console) -> None:
    """Print what became of each metric."""
    made = table(
        "metric", "", "before", "now", "change", "95 % interval", "p", "up", "down", left=2
    )
    made.add_column("pairs", justify="right")
    for one in changes:
        made.add_row(
            _text(one.metric, 80),
            Text(one.verdict, style={"better": "green", "worse": "red"}.get(one.verdict, "")),
            wording.number(one.before),
            wording.number(one.now),
            wording.change(one.change),
            wording.span(one.low, one.high, one.method, signed=True),
            one.p,
            *map(wording.count, (one.better, one.worse, one.pairs)),
        )
    console.print(made)
    for one in changes:
        told = [f"{_counted(one.dropped)} without a pair"] if one.dropped else []
        told += [one.note] if one.note else []
        if one.detectable is not None:
            told.append(f"so many pairs could show a change of {one.detectable:.3f}")
        if told:
            console.print(Text(f"{wording.line(one.metric, 80)}: {'; '.join(told)}"))


def _show_funnel(funnel: Funnel, console: Console) -> None:
    console.print(Text(f"Relevant by {wording.line(funnel.judge, 80)}."))
    headings = ("queries", "found", "lost", "chunks", "relevant", "with any", "median time")
    made = table("stage", "expected", *headings, left=2)
    for stage in funnel.stages:
        share = stage.covered / stage.known if stage.known else 0
        made.add_row(
            Text(f"{stage.kind} {wording.line(stage.name, 40)}".strip()),
            wording.bar(share, 12) if stage.known else "",
            wording.count(stage.queries),
            wording.percent(stage.covered, stage.known),
            "–" if stage.lost is None else wording.count(stage.lost),
            f"{stage.chunks / stage.queries:.1f}",
            f"{stage.relevant / stage.judged:.2f}" if stage.judged else "–",
            wording.percent(stage.hits, stage.judged),
            wording.seconds(stage.seconds) or "–",
        )
    console.print(made)
    for stage in funnel.stages:
        name = f"{stage.kind} {wording.line(stage.name, 40)}".strip()
        if stage.remarks:
            console.print(Text(f"{name}: {', '.join(stage.remarks)}"))
    if funnel.left:
        console.print(f"{wording.count(funnel.left)} more stages, each of fewer queries")


def _show_ranking(ranking: Ranking, console: Console) -> None:
    made = table("rank", "chunks", left=0)
    for judge in ranking.judges:
        made.add_column(_text(f"by {judge}", 40), no_wrap=True)
    for one in ranking.ranks:
        cells = [_share(relevant, judged) for relevant, judged in one.relevant]
        made.add_row(str(one.rank), wording.count(one.chunks), *cells)
    console.print(made)
    if ranking.left:
        console.print(f"{wording.count(ranking.left)} more chunks stand behind these ranks")


def _share(part: int, whole: int) -> str:
    return f"{wording.bar(part / whole, 12)} {wording.percent(part, whole)}" if whole else "–"


def _show_opened(opened: Sequence[Shown], console: Console) -> None:
    for shown in opened[:WORST]:
        values = ", ".join(
            f"{wording.line(name, 80)} "
            + (f"{before:.3f} → " if before is not None else "")
            + f"{value:.3f}"
            for name, value, before in shown.values
        )
        console.print(Text(f"\n{values}; {wording.line(wording.missed(shown.view), 200)}"))
        show_queries([shown.view], console, chunks=CHUNKS)
    _print_more(len(opened) - WORST, console)


def _show_lacking(missing: Missing, console: Console) -> None:
    for one in missing.opened[:WORST]:
        said = ", ".join(f"{wording.line(lack.name, 80)} {lack.status}" for lack in one.lacking)
        console.print(Text(f"\n{said}"))
        show_queries([one.view], console, chunks=CHUNKS)
    _print_more(len(missing.opened) - WORST + len(missing.named) + missing.left, console)


def _print_more(left: int, console: Console) -> None:
    if left > 0:
        console.print(f"{wording.count(left)} more: ctxeval report shows them")


def show_missing(scores: Sequence[Score], reasons: Sequence[Reason], console: Console) -> None:
    """Print how many queries have no value, and why."""
    if not any(one.undefined or one.failed or one.skipped for one in scores):
        every = "Every query has a value of every metric."
        console.print(every if scores else "There was nothing to score.")
        return
    made = table("metric", "scored", "undefined", "failed", "skipped", "bounds of the mean")
    for one in scores:
        bounds = one.bounds if one.failed else None
        made.add_row(
            _text(one.metric, 80),
            *map(wording.count, (one.scored, one.undefined, one.failed, one.skipped)),
            "–" if bounds is None else wording.span(*bounds, ""),
        )
    console.print(made)
    for reason in reasons[:REASONS]:
        all_of_them = len(reason.metrics) == len(scores) > 1
        names = wording.line(", ".join(reason.metrics), 200)
        metrics = f"all {len(scores)} metrics" if all_of_them else names
        said = wording.line(reason.reason, 300)
        console.print(
            Text(f"{wording.count(reason.queries)} × {metrics} {reason.status}: {said}"),
            soft_wrap=True,
        )
    if len(reasons) > REASONS:
        console.print(f"{len(reasons) - REASONS} more reasons")


def _show_agreements(agreements: Sequence[Agreement], console: Console) -> None:
    made = table("judge", "of", "verdicts", "unanimous", "pairs agree", "kappa", "unread", left=2)
    for one in agreements:
        made.add_row(
            _text(one.judge, 80),
            one.what,
            wording.count(one.verdicts),
            wording.percent(one.unanimous, one.verdicts),
            wording.number(one.agreement),
            wording.number(one.kappa),
            f"{wording.count(one.unread)} of {wording.count(one.votes)}",
        )
    console.print(made)


def show_cost(usage: Usage, console: Console) -> None:
    """Print what the judging cost."""
    if not usage.requests:
        console.print("No model was asked.")
        return
    told = [
        f"{wording.count(usage.requests)} requests",
        f"{wording.count(usage.prompt_tokens)} tokens sent"
        + (f" ({wording.count(usage.cached_tokens)} cached)" if usage.cached_tokens else ""),
        f"{wording.count(usage.completion_tokens)} received",
    ]
    told += [f"{wording.count(usage.unreported)} without figures"] if usage.unreported else []
    console.print(", ".join(told))
