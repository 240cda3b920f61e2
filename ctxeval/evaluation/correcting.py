"""Correct a mean of an evaluation by what people said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING

from ctxeval.calibration.calibration import Calibration
from ctxeval.calibration.correction import Corrected, corrected_mean, corrected_share
from ctxeval.errors import InvalidArgumentError, near, short

if TYPE_CHECKING:
    from ctxeval.evaluation.evaluation import Evaluation

SHARES = {"question": "context_relevance", "support": "context_recall"}
"""By what was labelled, the metric that is a plain share of such verdicts."""


def corrected_by_calibration(
    evaluation: Evaluation, calibration: Calibration, metric: str | None, confidence: float
) -> Corrected:
    """Correct a share of verdicts by the judge's error rates; see `Evaluation.corrected`."""
    if not isinstance(calibration, Calibration):
        raise InvalidArgumentError(
            f"calibration: {short(calibration)} is no Calibration: give what calibrate() gave, or "
            "Calibration.load(path)"
        )
    purpose = calibration.purpose
    name = metric or SHARES.get(purpose)
    if name is None or name != SHARES.get(purpose):
        named = name or f"a metric of verdicts for the {purpose}"
        about = SHARES.get(purpose)
        fits = f"only {about} is" if about else "none is"
        raise InvalidArgumentError(
            f"metric: {named} is no plain share of the verdicts that the calibration is about "
            f"(those for {purpose!r}: {fits}): give labels={{sample id: people's value}} instead"
        )
    signature = evaluation.signature(name)
    if signature != f"{name}/1 {calibration.judge}":
        raise InvalidArgumentError(
            f"calibration: it is of {calibration.judge or 'a judge that was not named'}, but "
            f"{name} was judged as {signature}: evaluate with "
            "judge.with_calibration(calibration), which asks nothing again, or calibrate this one"
        )
    values: list[float] = []
    judged: list[float] = []
    for row in evaluation.rows:
        value = row.results[name].value if name in row.results else None
        if value is not None:
            values.append(value)
            judged.append(_judged(row.sample.retrieved_contexts or (), purpose))
    if not values:
        raise InvalidArgumentError(f"metric: no sample has a value of {name}: nothing to correct")
    return corrected_share(values, calibration, confidence, judged=judged)


def _judged(chunks: Sequence[str], purpose: str) -> float:
    """Give the share of a sample's verdicts that the judge gave: blank texts need none."""
    asked = [bool(text.strip()) for text in chunks]
    if purpose == "support":
        return float(any(asked))
    return sum(asked) / len(asked) if asked else 0.0


def corrected_by_labels(
    evaluation: Evaluation, labels: Mapping[str, float], metric: str | None, confidence: float
) -> Corrected:
    """Correct any mean by people's value of some samples; see `Evaluation.corrected`."""
    if not isinstance(labels, Mapping):
        raise InvalidArgumentError(
            f"labels: {short(labels)} is no mapping: give {{sample id: people's value}}"
        )
    if metric is None:
        if len(evaluation.metrics) != 1:
            raise InvalidArgumentError(
                f"metric: of which are the labels? {near('', evaluation.metrics)}"
            )
        metric = evaluation.metrics[0]
    values = evaluation.values(metric)
    known = set(evaluation.ids)
    pairs: list[tuple[float, float]] = []
    without = 0
    for given, label in labels.items():
        name = str(given)
        if name not in known:
            raise InvalidArgumentError(
                f"labels: no sample has the id {short(given)}: they are in evaluation.ids, "
                f"such as {short(evaluation.ids[:3])}"
            )
        if isinstance(label, str) or not isinstance(label, Real) or not 0 <= float(label) <= 1:
            raise InvalidArgumentError(
                f"labels[{short(given)}]: {short(label)} is no value of {metric}: give a number "
                "from 0 to 1"
            )
        if name in values:
            pairs.append((values.pop(name), float(label)))
        else:
            without += 1
    if not pairs:
        raise InvalidArgumentError(f"labels: none of {len(labels)} is of a sample with a value")
    found = corrected_mean(list(values.values()), pairs, confidence)
    if without:
        note = f"{without} labels are of samples without a value of {metric}, and count nowhere"
        found = found._replace(note="; ".join(filter(None, (found.note, note))))
    return found
