"""The commands that look after judges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ctxeval.errors import CtxEvalError, InvalidArgumentError, describe, near, short
from ctxeval.import_by_name import imported
from ctxeval.keys import as_cause, said_by_others
from ctxeval.terminal import AsJson, errors, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxeval.evaluation.judge_check import JudgeCheck
    from ctxeval.judges.embedding import EmbedFunction

judge_app = typer.Typer(help="See whether a judge can be trusted.", no_args_is_help=True)


@judge_app.callback()
def judges() -> None:
    """See whether a judge can be trusted."""


@judge_app.command("check")
def judge_check(
    labels: Annotated[Path, typer.Argument(help="Labelled pairs: .jsonl or .csv.")],
    model: Annotated[str, typer.Option(help="The model that judges.")],
    base_url: Annotated[str | None, typer.Option(help="Its endpoint; default: OpenAI.")] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(help="joint, pointwise or logprob; repeat it for more. Default: all."),
    ] = None,
    repeats: Annotated[
        int, typer.Option(help="How often each is asked: 3, for a majority, and for its flips.")
    ] = 1,
    embed: Annotated[
        str | None,
        typer.Option(
            help="Your function from a list of texts to a list of vectors, as MODULE:NAME, for a "
            "second baseline."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where the recommended mode's calibration goes."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare a judge with people, and with baselines that cost nothing.

    Example: ctxeval judge check labels.jsonl --model gpt-4.1-mini --mode joint --mode logprob
    """
    with errors():
        import ctxeval
        from ctxeval.judges.llm import MODES, Mode

        modes: list[Mode] = []
        for given in mode or MODES:
            if given not in MODES:
                raise InvalidArgumentError(f"--mode: {given!r} is unknown: {near(given, MODES)}")
            modes.append(given)
        if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
            raise InvalidArgumentError(f"--output: {output} cannot be written: give a file")
        llm = ctxeval.llm_factory(model, base_url=base_url)
        judges = [ctxeval.LLMJudge(llm, one, repeats) for one in dict.fromkeys(modes)]
        function = None if embed is None else _embedding(embed)
        found = ctxeval.check_judge(judges, labels, embed=function)
        if as_json:
            print_json(found.to_dict())
        else:
            print(found)
        saved = [] if output is None else _save(found, output)
        if not as_json:
            for path in saved:
                print(f"The calibration is in {path}")
        if not any(one.recommended for one in found.purposes):
            raise typer.Exit(1)


def _embedding(given: str) -> EmbedFunction:
    """Import the user's function, and have what it raises told as one line."""
    from ctxeval.judges.embedding import batch_function

    embed = batch_function(imported(given, "--embed", "myapp.models:embed"))

    def embed_or_say(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        try:
            return embed(texts)
        except CtxEvalError:
            raise
        except Exception as error:  # whatever the user's own function raises
            why = said_by_others(describe(error))
            raise InvalidArgumentError(
                f"--embed: {given} failed on {len(texts)} texts, such as {short(texts[0])}: {why}: "
                "give a function from a list of texts to a list of vectors"
            ) from as_cause(error)

    return embed_or_say


def _save(found: JudgeCheck, output: Path) -> list[Path]:
    """Save the recommended mode's calibration, of several purposes each by its name."""
    saved = []
    for one in found.purposes:
        best = one.recommended
        if best is None or best.calibration is None:
            continue
        several = len(found.purposes) > 1
        path = output.with_stem(f"{output.stem}-{one.purpose}") if several else output
        saved.append(best.calibration.save(path))
    return saved
