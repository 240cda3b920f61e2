"""The command by which a person labels chunks: one key each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from ctxeval.errors import InvalidArgumentError
from ctxeval.terminal import console, errors

if TYPE_CHECKING:
    from ctxeval.calibration.calibration import Purpose
    from ctxeval.evaluation.label_samples import Screen


def label(
    samples: Annotated[Path, typer.Argument(help="Samples: .jsonl, .json, .csv or .parquet.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The label file, a .jsonl; it grows.")
    ],
    purpose: Annotated[
        str,
        typer.Option(help="question, reference or response; support: for the reference_claims."),
    ] = "question",
) -> None:
    """Label retrieved chunks by hand: one key each, with undo; goes on where it ended.

    Example: ctxeval label samples.jsonl -o labels.jsonl
    """
    with errors():
        from ctxeval.calibration.labelling import Labelling
        from ctxeval.evaluation.label_samples import press, progress, screens
        from ctxeval.record.reading import read_samples

        labelling = Labelling(read_samples(samples), output, _purpose(purpose))
        to, told = console(), ""
        for shown in screens(labelling):
            _show(shown, told, to)
            answer = press(labelling, _key())
            if answer is None:
                break
            told = answer
        to.print(f"{progress(labelling)}: {output}", markup=False)


def _purpose(given: str) -> Purpose:
    return given  # type: ignore[return-value]  # Labelling says what is wrong with it


def _key() -> str:
    try:
        return typer.getchar()[:1]  # of keys that came at once the first
    except (KeyboardInterrupt, EOFError):
        return "q"
    except OSError as error:
        raise InvalidArgumentError(
            f"label: no terminal to read keys from ({error.strerror}): call "
            "ctxeval.label_samples(samples, path) instead"
        ) from None


def _show(shown: Screen, told: str, to: Console) -> None:
    from ctxeval.evaluation.label_samples import KEYS

    to.clear()
    to.print(Text(shown.head, style="dim"))
    for heading, text in shown.texts:
        to.print(Text.assemble("\n", (heading, "bold"), "\n", text))
    to.print(Text(f"\n{told or shown.asked}", style="yellow" if told else "bold"))
    to.print(Text(KEYS, style="dim"))
