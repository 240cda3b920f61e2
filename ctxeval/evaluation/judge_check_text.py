"""How judges did on labels, as a table of text with what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxeval.calibration.calibration import Calibration
from ctxeval.report.wording import count, line, number

if TYPE_CHECKING:
    from ctxeval.evaluation.judge_check import Checked, PurposeCheck

HEAD = (
    "", "threshold", "balanced accuracy", "AUC", "kappa", "sensitivity", "specificity", "unread",
    "requests", "tokens", "seconds",
)  # fmt: skip
"""The columns: what each way agrees with people, and what it costs."""

FEW_LABELS = 100


def written(check: PurposeCheck) -> str:
    """Write the table of one purpose, and what it means."""
    rows: list[tuple[str, ...]] = [HEAD]
    rows += [_judge_row(one) for one in check.judges]
    rows += [(name, *_figures(c), "0", "0", "") for name, c in check.baselines.items()]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEAD))]
    table = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    noes = check.pairs - check.yes
    head = f"{count(check.pairs)} labelled pairs for {check.purpose!r}: {check.yes} yes, {noes} no"
    return "\n".join([head, "", *table, "", *_meaning(check)])


def name_of(one: Checked, among: tuple[Checked, ...] = ()) -> str:
    """Name a judge by its mode, and by its model where there are several."""
    models = {str(other.judge.llm.identity.get("model", "")) for other in among}
    model = str(one.judge.llm.identity.get("model", ""))
    return f"{one.judge.mode} by {line(model, 40)}" if len(models) > 1 else one.judge.mode


def _judge_row(one: Checked) -> tuple[str, ...]:
    name = one.judge.mode if one.judge.repeats == 1 else f"{one.judge.mode} × {one.judge.repeats}"
    figures = ("–",) * 7 if one.calibration is None else _figures(one.calibration)
    tokens = f"{count(one.usage.prompt_tokens)} + {count(one.usage.completion_tokens)}"
    return name, *figures, count(one.usage.requests), tokens, f"{one.seconds:.1f}"


def _figures(c: Calibration) -> tuple[str, ...]:
    interval = c.balanced_accuracy_interval
    accuracy = number(c.balanced_accuracy)
    if interval is not None:
        accuracy += f" ({interval[0]:.3f}–{interval[1]:.3f})"
    return (
        number(c.threshold),
        accuracy,
        *map(number, (c.auc, c.kappa, c.sensitivity, c.specificity)),
        count(c.unread),
    )


def _meaning(check: PurposeCheck) -> list[str]:
    told = []
    if check.disputed:
        told.append(
            f"{count(check.disputed)} of the pairs are labelled both yes and no: no judge agrees "
            "with both, so settle them or leave them out"
        )
    for one in check.judges:
        name = name_of(one, check.judges)
        if one.calibration is None:
            told.append(f"{name} could not judge: {line(one.failure, 300)}")
            continue
        if one.failure:
            told.append(f"{name}: some calls failed: {line(one.failure, 300)}")
        if one.flips is not None:
            told.append(f"{name}: {one.flips:.1%} of the verdicts flip between repeats")
        told += [f"{name} {beside}" for beside in one.beside]
    best = check.recommended
    if best is None:
        return [*told, "No mode can be recommended."]
    threshold = f", threshold={best.judge.threshold:.3f}" if best.judge.mode == "logprob" else ""
    by = name_of(best, check.judges).removeprefix(best.judge.mode)
    repeats = f", repeats={best.judge.repeats}" if best.judge.repeats > 1 else ""
    say = f"Recommended{by}: mode={best.judge.mode!r}{repeats}{threshold}"
    if not all(one.better for one in best.beside):
        say += ", which no label shows to be better than a baseline"
    told.append(say)
    if check.pairs < FEW_LABELS:
        told.append(f"{check.pairs} labels are few: twenty mislead, a hundred or more serve")
    return told
