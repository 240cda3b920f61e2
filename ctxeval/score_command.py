"""The command that scores a file of samples."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ctxeval
from ctxeval.errors import InvalidArgumentError, InvalidSampleError, near
from ctxeval.extras import load
from ctxeval.naming import MetricSet
from ctxeval.terminal import AsJson, console, errors, print_json

if TYPE_CHECKING:
    from ctxeval.calibration.calibration import Calibration
    from ctxeval.judges.llm import LLMJudge

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics",
        "--metric",
        "-m",
        help="A metric's name; repeat it for more, or part them by commas. Default: auto.",
    ),
]


def score(
    file: Annotated[str, typer.Argument(help="Samples: .jsonl, .json, .csv or .parquet.")],
    metrics: Metrics = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where the run goes: .jsonl, or .parquet."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model that judges.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Its endpoint; default: OpenAI.")] = None,
    mode: Annotated[
        str | None, typer.Option(help="How it is asked: joint, pointwise or logprob.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="With logprob: from which probability on a yes is one.")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(help="How often each is asked: 3, for a majority.")
    ] = None,
    calibration: Annotated[
        list[Path] | None,
        typer.Option(
            help="How the judge did on people's labels, as `ctxeval judge check -o` writes it: "
            "sets the threshold, and corrects means. Repeat it for more."
        ),
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="Where a model's verdicts are kept: a file or a URL.")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Calls under way at most.")] = 16,
    dry_run: Annotated[bool, typer.Option(help="Only say what a model would be asked.")] = False,
    skip_bad: Annotated[bool, typer.Option(help="Leave bad rows out, and count them.")] = False,
    metadata_columns: Annotated[
        list[str] | None,
        typer.Option(
            help="A further column, for the samples' metadata; repeat it, or part them by commas."
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="ray: FILE is a pattern for files of Parquet, the output a folder."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score a file of samples. The key for a model comes from OPENAI_API_KEY.

    Example: ctxeval score samples.jsonl -m ndcg@10 -m id_based_context_recall -o run.jsonl
    """
    with errors():
        from ctxeval.evaluation.trusting import metrics_about

        bad: list[InvalidSampleError] = []
        on_bad = bad.append if skip_bad else None
        names = _parted(metrics) or "auto"
        judge = _judge(model, base_url, mode, threshold, repeats)
        if engine is not None:
            given = {
                "--mode": mode,
                "--threshold": threshold,
                "--repeats": repeats,
                "--calibration": calibration,
            }
            for option, value in given.items():
                if value is not None:
                    raise InvalidArgumentError(
                        f"{option}: --engine asks a model as it is by default: leave it out, or "
                        "give ctxeval_ray.score_dataset metrics with a judge"
                    )
            if dry_run:
                raise InvalidArgumentError("--dry-run: no engine rehearses: leave out --engine")
            if metadata_columns:
                raise InvalidArgumentError(
                    "--metadata-columns: an engine keeps every column: leave it out"
                )
            evaluation = _engine(engine).score_files(
                file,
                names,
                llm=judge and judge.llm,
                concurrency=concurrency,
                store=store,
                output=output,
                errors="status" if skip_bad else "raise",
            )
            if as_json:
                print_json({"samples": len(evaluation), **summary_data(evaluation)})
            else:
                _show_summary(evaluation, [])
            return
        calibrations = _calibrations(calibration, judge, threshold)
        chosen = MetricSet(names, judge).calibrated(calibrations)
        samples: Any = file
        if metadata_columns:
            samples = ctxeval.read_samples(file, metadata_columns=_parted(metadata_columns))
        if dry_run:
            cost = ctxeval.evaluate(samples, chosen, store=store, on_bad=on_bad, dry_run=True)
            print_json(asdict(cost)) if as_json else print(
                f"{cost.requests} requests, about {cost.prompt_tokens} tokens sent and "
                f"{cost.completion_tokens} received"
            )
            return
        evaluation = ctxeval.evaluate(
            samples,
            chosen,
            concurrency=concurrency,
            store=store,
            output=output,
            on_bad=on_bad,
        )
        if bad and not len(evaluation):
            raise InvalidSampleError(f"no sample is left: {bad[0]}")
        for error in bad[:5]:
            print(f"ctxeval: left out: {error}", file=sys.stderr)
        for one in list(calibrations):
            if not metrics_about(evaluation, one):  # of "auto", which no sample was fit for
                print(
                    f"ctxeval: the calibration for {one.purpose!r} says nothing here: no metric "
                    "that reads such verdicts was scored",
                    file=sys.stderr,
                )
                calibrations.remove(one)
        if as_json:
            print_json(
                {
                    "samples": len(evaluation),
                    "bad": len(bad),
                    **summary_data(evaluation, calibrations),
                }
            )
            return
        _show_summary(evaluation, calibrations)
        if bad:
            what = "1 bad row was" if len(bad) == 1 else f"{len(bad)} bad rows were"
            print(f"{what} left out")
        if output is not None:
            more = f": ctxeval worst {output} METRIC" if evaluation.readable else " (values alone)"
            print(f"The run is in {output}{more}")


def _parted(given: list[str] | None) -> list[str]:
    return [name.strip() for names in given or () for name in names.split(",")]


def _engine(name: str) -> Any:
    """Load an engine's adapter, by its name: the core knows none."""
    if name != "ray":
        raise InvalidArgumentError(f"--engine: {name!r} is unknown: there is ray")
    load("ray", "--engine ray", "ray")
    return import_module("ctxeval_ray.files")


def _judge(
    model: str | None,
    base_url: str | None,
    mode: str | None,
    threshold: float | None,
    repeats: int | None,
) -> LLMJudge | None:
    """Make the judge of the metrics that need a model."""
    if model is None:
        for option, value in (("--mode", mode), ("--threshold", threshold), ("--repeats", repeats)):
            if value is not None:
                raise InvalidArgumentError(f"{option}: it says how a model is asked: give --model")
        return None
    from ctxeval.judges.llm import MODES

    how = mode or "joint"
    if how not in MODES:
        raise InvalidArgumentError(f"--mode: {how!r} is unknown: {near(how, MODES)}")
    llm = ctxeval.llm_factory(model, base_url=base_url)
    return ctxeval.LLMJudge(llm, how, 1 if repeats is None else repeats, threshold=threshold)


def _calibrations(
    files: list[Path] | None, judge: LLMJudge | None, threshold: float | None
) -> list[Calibration]:
    if not files:
        return []
    if judge is None:
        raise InvalidArgumentError("--calibration: it is of a model as a judge: give --model")
    if threshold is not None:
        raise InvalidArgumentError("--threshold: the calibration has the fitted one: leave it out")
    return [ctxeval.Calibration.load(file) for file in files]


def summary_data(
    evaluation: ctxeval.Evaluation, calibrations: Sequence[Calibration] = ()
) -> dict[str, Any]:
    """Say of each metric what there is to say, as plain data."""
    from ctxeval.evaluation.trusting import trust_of

    trust = trust_of(evaluation, calibrations)
    return {
        "metrics": [
            {
                **one.to_dict(),
                **({"trust": asdict(trust[one.metric])} if one.metric in trust else {}),
            }
            for one in evaluation.summary()
        ]
    }


def _show_summary(evaluation: ctxeval.Evaluation, calibrations: Sequence[Calibration]) -> None:
    from ctxeval.evaluation.reporting import reasons_of, scores_of
    from ctxeval.report.terminal import show_cost, show_missing, show_scores

    scores, to = scores_of(evaluation, calibrations=calibrations), console()
    to.print("1 sample" if len(evaluation) == 1 else f"{len(evaluation):,} samples", style="bold")
    show_scores(scores, to)
    show_missing(scores, reasons_of(evaluation, scores), to)
    show_cost(evaluation.usage, to)
