"""Show what was found in a terminal, by rich.

Chunks, questions and answers are hostile text: they are printed without markup and
without control characters, so that no escape sequence reaches the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ctxeval.evaluation.compare import Comparison
    from ctxeval.evaluation.evaluation import Evaluation
    from ctxeval.evaluation.rows import Row
    from ctxeval.evaluation.statistics import Interval

SHOWN = 200
"""How many characters of a text are shown."""


def clean(text: str, limit: int = SHOWN) -> str:
    """Fold white space, take out what could steer a terminal, and cut."""
    folded = " ".join(text.split())
    printable = "".join(char if char.isprintable() else "�" for char in folded[: limit + 1])
    return printable if len(printable) <= limit else f"{printable[: limit - 1]}…"


def table(*headings: str) -> Table:
    """Make a plain table whose columns don't wrap."""
    made = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in headings:
        made.add_column(heading, no_wrap=True)
    return made


def ends(interval: Interval | None) -> str:
    """Write an interval, or why there is none."""
    if interval is None:
        return "no value"
    if interval.low is None or interval.high is None:
        return interval.method
    return f"{interval.low:.3f}–{interval.high:.3f}"


def show_evaluation(evaluation: Evaluation, console: Console) -> None:
    """Print each metric's mean, interval and coverage, and why values are missing."""
    console.print(f"[bold]{len(evaluation)} samples[/bold]")
    made = table("metric", "mean", "95 % interval", "scored", "undefined", "failed", "skipped")
    for one in evaluation.summary():
        mean = "–" if one.interval is None else f"{one.interval.mean:.3f}"
        counts = (one.scored, one.undefined, one.failed, one.skipped)
        made.add_row(one.metric, mean, ends(one.interval), *map(str, counts))
    console.print(made)
    usage = evaluation.usage
    if usage.requests:
        console.print(
            f"{usage.requests} requests, {usage.prompt_tokens} tokens sent, "
            f"{usage.completion_tokens} received"
            + (f", {usage.unreported} without figures" if usage.unreported else "")
        )
    if not evaluation.readable:
        return
    reasons = sorted(evaluation.failures().items(), key=lambda entry: -entry[1])
    for (metric, status, reason), n in reasons[:10]:
        console.print(Text(f"{n} × {metric} {status}: {clean(reason)}"))
    if len(reasons) > 10:
        console.print(f"{len(reasons) - 10} more reasons")


def show_worst(rows: list[Row], metric: str, console: Console) -> None:
    """Print the worst samples of a metric, each with the chunk or claim that failed."""
    for row in rows:
        result = row.results[metric]
        console.print()
        title = f"{metric} {result.value:.3f}  {clean(row.sample.user_input or row.id)}"
        console.print(Text(title, style="bold"))
        if result.verdicts is None:
            console.print("    nothing was retrieved")
            continue
        for heading, verdicts in (
            ("not covered", result.verdicts.units),
            ("not relevant", result.verdicts.chunks),
        ):
            for number, verdict in enumerate(verdicts, start=1):
                if not verdict.value:
                    said = f" ({clean(verdict.reason, 100)})" if verdict.reason else ""
                    text = f"    {heading} {number}: {clean(verdict.text, 80)}{said}"
                    console.print(Text(text), soft_wrap=True)


def show_comparison(comparison: Comparison, console: Console) -> None:
    """Print what became of each metric."""
    made = table("metric", "before", "now", "change", "95 % interval", "p", "pairs", "")
    for one in comparison.changes:
        if one.difference is None:
            made.add_row(one.metric, "–", "–", "–", "no pairs", "–", "0", one.note)
            continue
        made.add_row(
            one.metric,
            f"{one.baseline:.3f}",
            f"{one.candidate:.3f}",
            f"{one.difference.interval.mean:+.3f}",
            ends(one.difference.interval),
            one.p_shown,
            str(one.pairs),
            one.note or one.verdict,
        )
    console.print(made)
    for one in comparison.changes:
        if one.difference is not None and one.difference.detectable is not None:
            console.print(
                f"{one.metric}: {one.pairs} pairs could show a change of "
                f"{one.difference.detectable:.3f}; {one.dropped} samples were dropped"
            )


def summary_data(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Write the summary as plain data, for JSON."""
    return [
        {
            **one._asdict(),
            "interval": None if one.interval is None else one.interval._asdict(),
            "coverage": one.coverage,
        }
        for one in evaluation.summary()
    ]


def comparison_data(comparison: Comparison) -> list[dict[str, Any]]:
    """Write a comparison as plain data, for JSON."""
    return [
        {
            **one._asdict(),
            "verdict": one.verdict,
            "difference": None
            if one.difference is None
            else {
                **one.difference._asdict(),
                "interval": one.difference.interval._asdict(),
            },
        }
        for one in comparison.changes
    ]
