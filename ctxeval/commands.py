"""The commands of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import ctxeval
from ctxeval.errors import InvalidArgumentError
from ctxeval.judge_commands import judge_app
from ctxeval.label_command import label
from ctxeval.score_command import score, summary_data
from ctxeval.store_commands import store_app
from ctxeval.terminal import AsJson, console, errors, print_json

app = typer.Typer(
    name="ctxeval",
    help="Measure how good the retrieval of a RAG application is, query by query, and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Run = Annotated[Path, typer.Argument(help="A run, as `ctxeval score -o` writes it.")]
CalibrationFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--calibration",
        help="How the judge did on people's labels, as `ctxeval judge check -o` writes it; "
        "repeat it for more.",
    ),
]


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
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the run goes, a .jsonl.")
    ] = Path("ctxeval-demo.jsonl"),
    as_json: AsJson = False,
) -> None:
    """Evaluate a BM25 retriever over Python's own language reference, and keep the run.

    No key, no network. Example: ctxeval demo
    """
    with errors():
        from ctxeval.demo.run import run_demo
        from ctxeval.demo.show import show, to_data
        from ctxeval.evaluation.rows import run_path

        run_path(output, "--output", (".jsonl",))
        found = run_demo()
        path = found.evaluation.save(output)
        if as_json:
            print_json({"run": str(path), **to_data(found)})
        else:
            show(found, path, console())


@app.command()
def show(
    run: Run,
    baseline: Annotated[Path | None, typer.Option(help="The run to compare with.")] = None,
    calibration: CalibrationFiles = None,
    as_json: AsJson = False,
) -> None:
    """Show a run: what `ctxeval report` writes, in the terminal.

    Example: ctxeval show run.jsonl --baseline main.jsonl
    """
    with errors():
        from ctxeval.evaluation.reporting import report_of
        from ctxeval.evaluation.trusting import calibrations_of

        evaluation = ctxeval.Evaluation.load(run, keep=False)
        before = None if baseline is None else ctxeval.Evaluation.load(baseline, keep=False)
        calibrations = calibrations_of(calibration)
        if as_json:
            changes = () if before is None else ctxeval.compare(before, evaluation).changes
            more = {"changes": [one.to_dict() for one in changes]} if before is not None else {}
            print_json(
                {"samples": len(evaluation), **summary_data(evaluation, calibrations), **more}
            )
            return
        from ctxeval.report.terminal import show_report

        show_report(report_of(evaluation, before, calibrations), console())


@app.command()
def report(
    run: Run,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the report goes.")],
    baseline: Annotated[Path | None, typer.Option(help="The run to compare with.")] = None,
    calibration: CalibrationFiles = None,
) -> None:
    """Write a report to look at: one HTML file that needs no network and no script.

    Example: ctxeval report run.jsonl --baseline main.jsonl -o report.html
    """
    with errors():
        ctxeval.Evaluation.load(run, keep=False).report(output, baseline, calibration=calibration)
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
    with errors():
        from ctxeval.evaluation.reporting import view_of_row
        from ctxeval.report.text import show_queries

        rows = ctxeval.Evaluation.load(run, keep=False).worst(metric, n)
        if as_json:
            print_json([row.to_dict() for row in rows])
        else:
            show_queries([view_of_row(row) for row in rows], console(), queries=n)


@app.command()
def compare(
    baseline: Annotated[Path, typer.Argument(help="The run to compare with.")],
    candidate: Annotated[Path, typer.Argument(help="The run in question.")],
    as_json: AsJson = False,
) -> None:
    """Compare two runs by the samples that both have.

    Example: ctxeval compare yesterday.jsonl today.jsonl
    """
    with errors():
        from ctxeval.evaluation.reporting import changes_of
        from ctxeval.report.terminal import show_changes

        before, now = ctxeval.Evaluation.of(baseline), ctxeval.Evaluation.of(candidate)
        found = ctxeval.compare(before, now)
        if all(one.pairs == 0 for one in found.changes):
            raise InvalidArgumentError(f"nothing to compare: {found.changes[0].note}")
        if as_json:
            print_json([one.to_dict() for one in found.changes])
        else:
            show_changes(changes_of(now, before), console())


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
    with errors():
        from ctxeval.evaluation.gate import as_table, check

        checks = check(
            run,
            baseline,
            minimum=_numbers("--minimum", minimum),
            max_drop=_numbers("--max-drop", max_drop),
            min_coverage=min_coverage,
        )
        if as_json:
            print_json([one._asdict() for one in checks])
        else:
            print(as_table(checks))
        if not all(one.passed for one in checks):
            raise typer.Exit(1)


def _numbers(option: str, given: list[str] | None) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for item in given or []:
        name, _, number = item.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            name, value = "", 0.0
        if not name:
            raise InvalidArgumentError(f"{option}: {item!r} is not METRIC=NUMBER: ndcg@10=0.6")
        if name in numbers:
            raise InvalidArgumentError(f"{option}: {name} is given twice: leave one")
        numbers[name] = value
    return numbers


app.command()(score)
app.command()(label)
app.add_typer(judge_app, name="judge")
app.add_typer(store_app, name="store")
