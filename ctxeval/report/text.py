"""Queries as text, by rich: for a terminal, and for whoever shows no HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ctxeval.report import wording
from ctxeval.report.view import ChunkView, MetricView, QueryView, StageView, UnitView


def queries_as_text(
    views: Sequence[QueryView],
    *,
    queries: int = 20,
    chunks: int = 10,
    size: int = 50_000,
    width: int = 110,
) -> str:
    """Write queries as plain text, without colours.

    Args:
        views: The queries.
        queries: How many are shown at most; the rest is counted.
        chunks: How many chunks of a stage are shown, besides relevant ones behind them; the rest
            is counted.
        size: From how many characters on no further query is begun; the rest is counted.
        width: How many columns it has.
    """

    def show(console: Console) -> None:
        shown = 0
        for view in views[:queries]:
            if console.file.tell() >= size:
                break
            _show_query(view, console, chunks)
            shown += 1
        _print_more(console, len(views) - shown, "queries")

    return as_text(show, width)


def as_text(show: Callable[[Console], None], width: int) -> str:
    """Write what is printed on a console, without colours."""
    written = StringIO()
    # In a notebook, rich would show it there instead.
    show(Console(file=written, width=width, color_system=None, force_jupyter=False))
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def show_queries(
    views: Sequence[QueryView], console: Console, *, queries: int = 20, chunks: int = 10
) -> None:
    """Print queries: what was asked, answered, expected and found, and each stage's chunks."""
    for view in views[:queries]:
        _show_query(view, console, chunks)
    _print_more(console, len(views) - queries, "queries")


def _show_query(view: QueryView, console: Console, chunks: int) -> None:
    console.print(Text(wording.title(view, 400), style="bold"))
    if view.status != "ok":
        console.print(Text(f"the query ended as {view.status}", style="red"))
    for name, said in (("answer", view.answer), ("expected", view.reference)):
        if said is not None:
            console.print(Text(f"{name}: {wording.line(said, 400)}"))
    if view.unreferenced:
        console.print(Text(f"nothing to compare with: {wording.line(view.unreferenced, 300)}"))
    console.print(_metrics(view))
    if view.units:
        console.print(_units(view.units[:chunks]))
        _print_more(console, len(view.units) - chunks, "expected")
    for stage in view.stages:
        console.print(_heading(stage, view))
        if stage.chunks:
            shown = wording.chosen(stage.chunks, chunks)
            console.print(_chunks(shown))
            _print_more(console, len(stage.chunks) - len(shown), "chunks")
    if not view.stages:
        console.print("nothing was retrieved")
    console.print()


def _print_more(console: Console, left: int, what: str) -> None:
    if left > 0:
        one = {"queries": "query", "chunks": "chunk"}.get(what, what)
        console.print(f"  {left} more {one if left == 1 else what}")


def _plain(*justified: str) -> Table:
    made = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for justify in justified:
        made.add_column(justify=justify, overflow="fold")  # type: ignore[arg-type]  # a literal
    return made


def _metrics(view: QueryView) -> Padding:
    made = _plain("left", "right", "left")
    for metric in view.metrics:
        made.add_row(
            Text(wording.line(metric.name, 120)),
            wording.number(metric.value),
            Text(_remark(metric)),
        )
    known = {metric.name for metric in view.metrics}
    for name in view.pending:
        if name not in known:
            made.add_row(Text(wording.line(name, 120)), "…", "is being judged")
    return Padding(made, (0, 0, 0, 2))


def _remark(metric: MetricView) -> str:
    status = "" if metric.status == "scored" else metric.status
    said = ": ".join(part for part in (status, wording.line(metric.reason, 300)) if part)
    return f"{said} {wording.remark(metric)}".strip()


def _units(units: Sequence[UnitView]) -> Padding:
    made = _plain("left", "left", "left", "left")
    for unit in units:
        where = ", ".join(
            f"rank {chunk.rank} {wording.line(chunk.id, 80)}".strip() for chunk in unit.chunks
        )
        why = (where or wording.lost(unit), wording.line(unit.reason, 200), wording.evidence(unit))
        made.add_row(
            _mark(unit.value, wording.coverage(unit.value)),
            unit.kind,
            Text(wording.line(unit.text, 200)),
            Text("; ".join(part for part in why if part)),
        )
    return Padding(made, (0, 0, 0, 2))


def _mark(value: bool | None, words: str) -> Text:
    return Text(words, style={True: "green", False: "red", None: "yellow"}[value])


def _heading(stage: StageView, view: QueryView) -> Text:
    n = len(stage.chunks)
    told = [f"{n} {'chunk' if n == 1 else 'chunks'}"]
    if stage.latency:
        told[0] += f" in {wording.seconds(stage.latency)}"
    told += [f"found {wording.holds(found)}" for found in stage.found]
    if len(view.stages) > 1:
        told += [
            f"{wording.line(metric.name, 120)} {wording.number(metric.value)}"
            for metric in stage.scores
            if metric.value is not None
        ]
    if stage.query and stage.query != view.question:
        told.append(f"asked: {wording.line(stage.query, 300)}")
    if stage.error:
        told.append(f"failed: {wording.line(stage.error, 300)}")
    name = "" if stage.name == stage.kind else wording.line(stage.name, 80)
    heading = Text(f"{stage.kind} {name}".strip(), style="bold")
    return heading.append(f": {', '.join(told)}", style="not bold")


def _chunks(chunks: Sequence[ChunkView]) -> Table:
    made = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    made.add_column("rank", justify="right")
    made.add_column("verdict", overflow="fold", max_width=48)
    made.add_column("id", overflow="fold", max_width=36)
    made.add_column("score", justify="right")
    made.add_column("text", ratio=1, no_wrap=True, overflow="ellipsis")
    for chunk in chunks:
        said = Text("\n").join(_verdicts(chunk)) if chunk.verdicts else Text("not judged")
        given = wording.given(chunk.score)
        text = Text(wording.line(chunk.text, 160))
        made.add_row(str(chunk.rank), said, Text(wording.line(chunk.id, 80) or "–"), given, text)
    return made


def _verdicts(chunk: ChunkView) -> list[Text]:
    lines = []
    for verdict in wording.grouped(chunk.verdicts):
        line = _mark(verdict.value, wording.relevance(verdict.value))
        line.append(f" by {wording.line(verdict.judge, 120)}", style="dim")
        matched = [wording.line(text, 80) for text in verdict.matched if text != chunk.id]
        told = (
            "matches " + "; ".join(matched) if matched else "",
            wording.line(verdict.reason, 120),
            wording.evidence(verdict),
        )
        if any(told):
            line.append(f": {', '.join(part for part in told if part)}", style="dim")
        lines.append(line)
    return lines
