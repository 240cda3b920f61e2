"""The commands of the command line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import ctxeval
from ctxeval.errors import CtxEvalError, InvalidArgumentError, InvalidSampleError

app = typer.Typer(
    name="ctxeval",
    help="Measure how good the retrieval of a RAG application is, query by query, and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Run = Annotated[Path, typer.Argument(help="A run, as `ctxeval score -o` writes it.")]
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", "-m", help="A metric's name; repeat it for more. Default: auto."),
]


@contextmanager
def _errors() -> Iterator[None]:
    """Turn our errors into one line and exit code 2."""
    try:
        yield
    except CtxEvalError as error:
        print(f"ctxeval: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


def _console() -> Console:
    # Piped output is for reading elsewhere: it is not cut to a terminal's width.
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160)


def _print_json(data: Any) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False))


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ctxeval {ctxeval.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure how good the retrieval of a RAG application is, query by query, and why."""


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Evaluate a BM25 retriever over Python's own language reference.

    No key, no network. Example: ctxeval demo
    """
    with _errors():
        from ctxeval.demo.run import run_demo
        from ctxeval.demo.show import show, to_data

        found = run_demo()
        if as_json:
            _print_json(to_data(found))
        else:
            show(found, _console())


@app.command()
def score(
    file: Annotated[Path, typer.Argument(help="Samples: .jsonl, .json, .csv or .parquet.")],
    metric: Metrics = None,
    output: Annotated[Path | None, typer.Option("-o", help="Where the run goes.")] = None,
    model: Annotated[str | None, typer.Option(help="The model that judges.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Its endpoint; default: OpenAI.")] = None,
    store: Annotated[
        str | None, typer.Option(help="Where a model's verdicts are kept: a file or a URL.")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Calls under way at most.")] = 16,
    dry_run: Annotated[bool, typer.Option(help="Only say what a model would be asked.")] = False,
    skip_bad: Annotated[bool, typer.Option(help="Leave bad rows out, and count them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Score a file of samples. The key for a model comes from OPENAI_API_KEY.

    Example: ctxeval score samples.jsonl -m ndcg@10 -m id_based_context_recall -o run.jsonl
    """
    with _errors():
        bad: list[InvalidSampleError] = []
        llm = None if model is None else ctxeval.llm_factory(model, base_url=base_url)
        kept = _store(store)
        on_bad = bad.append if skip_bad else None
        metrics = metric or "auto"
        if dry_run:
            cost = ctxeval.evaluate(file, metrics, llm=llm, store=kept, on_bad=on_bad, dry_run=True)
            _print_json(asdict(cost)) if as_json else print(
                f"{cost.requests} requests, about {cost.prompt_tokens} tokens sent and "
                f"{cost.completion_tokens} received"
            )
            return
        evaluation = ctxeval.evaluate(
            file,
            metrics,
            llm=llm,
            concurrency=concurrency,
            store=kept,
            output=output,
            on_bad=on_bad,
        )
        for error in bad[:5]:
            print(f"ctxeval: left out: {error}", file=sys.stderr)
        if as_json:
            _print_json({"samples": len(evaluation), "bad": len(bad), **_summary(evaluation)})
            return
        _show_summary(evaluation)
        if bad:
            print(f"{len(bad)} bad rows were left out")
        if output is not None:
            more = f": ctxeval worst {output} METRIC" if evaluation.readable else " (values alone)"
            print(f"The run is in {output}{more}")


def _summary(evaluation: ctxeval.Evaluation) -> dict[str, Any]:
    return {"metrics": [one.to_dict() for one in evaluation.summary()]}


def _show_summary(evaluation: ctxeval.Evaluation) -> None:
    from ctxeval.evaluation.reporting import reasons_of, scores_of
    from ctxeval.report.terminal import show_cost, show_missing, show_scores

    scores, console = scores_of(evaluation), _console()
    console.print(f"{len(evaluation):,} samples", style="bold")
    show_scores(scores, console)
    show_missing(scores, reasons_of(evaluation, scores) if evaluation.readable else (), console)
    show_cost(evaluation.usage, console)


def _store(url: str | None) -> Any:
    if url is None:
        return None
    from ctxeval.store import Store

    return Store.of(url)


@app.command()
def show(
    run: Run,
    baseline: Annotated[Path | None, typer.Option(help="The run to compare with.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show a run: what `ctxeval report` writes, in the terminal.

    Example: ctxeval show run.jsonl --baseline main.jsonl
    """
    with _errors():
        evaluation = ctxeval.Evaluation.load(run, keep=False)
        before = None if baseline is None else ctxeval.Evaluation.load(baseline, keep=False)
        if as_json:
            changes = () if before is None else ctxeval.compare(before, evaluation).changes
            more = {"changes": [one.to_dict() for one in changes]} if before is not None else {}
            _print_json({"samples": len(evaluation), **_summary(evaluation), **more})
            return
        from ctxeval.evaluation.reporting import report_of
        from ctxeval.report.terminal import show_report

        show_report(report_of(evaluation, before), _console())


@app.command()
def report(
    run: Run,
    output: Annotated[Path, typer.Option("-o", help="Where the report goes.")],
    baseline: Annotated[Path | None, typer.Option(help="The run to compare with.")] = None,
) -> None:
    """Write a report to look at: one HTML file that needs no network and no script.

    Example: ctxeval report run.jsonl --baseline main.jsonl -o report.html
    """
    with _errors():
        ctxeval.Evaluation.load(run, keep=False).report(output, baseline)
        print(f"The report is in {output}")


@app.command()
def worst(
    run: Run,
    metric: Annotated[str, typer.Argument(help="The metric's name.")],
    n: Annotated[int, typer.Option("-n", help="How many.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show the worst samples of a metric, each with the chunk or claim that failed.

    Example: ctxeval worst run.jsonl ndcg@10 -n 10
    """
    with _errors():
        from ctxeval.evaluation.reporting import view_of_row
        from ctxeval.report.text import show_queries

        rows = ctxeval.Evaluation.load(run, keep=False).worst(metric, n)
        if as_json:
            _print_json([row.to_dict() for row in rows])
        else:
            show_queries([view_of_row(row) for row in rows], _console(), queries=n)


@app.command()
def compare(
    baseline: Annotated[Path, typer.Argument(help="The run to compare with.")],
    candidate: Annotated[Path, typer.Argument(help="The run in question.")],
    as_json: AsJson = False,
) -> None:
    """Compare two runs by the samples that both have.

    Example: ctxeval compare yesterday.jsonl today.jsonl
    """
    with _errors():
        from ctxeval.evaluation.reporting import changes_of
        from ctxeval.report.terminal import show_changes

        before = ctxeval.Evaluation.load(baseline, keep=False)
        now = ctxeval.Evaluation.load(candidate, keep=False)
        if as_json:
            _print_json([one.to_dict() for one in ctxeval.compare(before, now).changes])
        else:
            show_changes(changes_of(now, before), _console())


@app.command()
def gate(
    run: Run,
    baseline: Annotated[Path | None, typer.Option(help="The run to compare with.")] = None,
    minimum: Annotated[
        list[str] | None, typer.Option(help="A floor, as METRIC=NUMBER; repeat it for more.")
    ] = None,
    max_drop: Annotated[
        list[str] | None, typer.Option(help="How far a mean may fall, as METRIC=NUMBER.")
    ] = None,
    min_coverage: Annotated[float, typer.Option(help="The least share of scored samples.")] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Exit with 1 if a run is too bad: for continuous integration.

    Fails only on a drop that is significant, on a floor that the interval excludes, and on too
    little coverage. Example: ctxeval gate run.jsonl --baseline main.jsonl --minimum ndcg@10=0.6
    """
    with _errors():
        from ctxeval.evaluation.gate import as_table, check

        checks = check(
            ctxeval.Evaluation.load(run, keep=False),
            None if baseline is None else ctxeval.Evaluation.load(baseline, keep=False),
            minimum=_numbers("--minimum", minimum),
            max_drop=_numbers("--max-drop", max_drop),
            min_coverage=min_coverage,
        )
        if as_json:
            _print_json([one._asdict() for one in checks])
        else:
            print(as_table(checks))
        if not all(one.passed for one in checks):
            raise typer.Exit(1)


def _numbers(option: str, given: list[str] | None) -> dict[str, float]:
    numbers = {}
    for item in given or []:
        name, _, number = item.rpartition("=")
        try:
            numbers[name] = float(number)
        except ValueError:
            name = ""
        if not name:
            raise InvalidArgumentError(f"{option}: {item!r} is not METRIC=NUMBER: ndcg@10=0.6")
    return numbers


store_app = typer.Typer(help="Look after a store.", no_args_is_help=True)
app.add_typer(store_app, name="store")

StoreUrl = Annotated[str, typer.Argument(help="The store: a file or a URL.")]


@store_app.command("stats")
def store_stats(url: StoreUrl = "ctxeval.db", as_json: AsJson = False) -> None:
    """Say what a store holds. Example: ctxeval store stats ctxeval.db."""
    with _errors():
        stats = _store(url).stats()
        if as_json:
            _print_json(asdict(stats))
            return
        print(f"{stats.place}: {stats.size} bytes")
        for name, count in stats.tables.items():
            print(f"  {name}: {count.rows}")


@store_app.command("prune")
def store_prune(
    before: Annotated[datetime, typer.Argument(help="Everything older goes: 2026-01-31.")],
    url: StoreUrl = "ctxeval.db",
    as_json: AsJson = False,
) -> None:
    """Forget what is older than a day. Example: ctxeval store prune 2026-01-31."""
    with _errors():
        removed = _store(url).prune(before.astimezone())
        if as_json:
            _print_json(removed)
            return
        print(f"removed: {', '.join(f'{n} {name}' for name, n in removed.items())}")


@store_app.command("export")
def store_export(
    to: Annotated[Path, typer.Argument(help="The file: JSON, one object a line.")],
    url: StoreUrl = "ctxeval.db",
    as_json: AsJson = False,
) -> None:
    """Write everything to a file. Example: ctxeval store export all.jsonl."""
    with _errors():
        lines = _store(url).export(to)
        _print_json({"lines": lines}) if as_json else print(f"{lines} lines written to {to}")
