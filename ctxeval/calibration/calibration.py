"""What is known of a judge's errors: how it did on pairs that people have labelled."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import isfinite, sqrt
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from ctxeval.calibration.beside import Beside
from ctxeval.errors import InvalidArgumentError, short

FORMAT = 1
"""The version of the files that `Calibration.save` writes."""

Z = 1.959964
"""So many standard errors to either side make a 95 % interval."""

Purpose = Literal["question", "reference", "response", "support"]


class Confusion(NamedTuple):
    """How often judge and people said what.

    Attributes:
        true_positive: Both said yes.
        false_positive: Only the judge did.
        false_negative: Only the people did.
        true_negative: Both said no.
    """

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int


class Bin(NamedTuple):
    """One point of a calibration curve.

    Attributes:
        told: The mean probability that the judge told.
        found: The share of these that people called a yes.
        n: How many there are.
    """

    told: float
    found: float
    n: int


def balanced_accuracy_interval(confusion: Confusion) -> tuple[float, float] | None:
    """Give the 95 % interval of a balanced accuracy; None without yeses or without noes.

    One pair that was judged rightly and one wrongly are added to each kind, so that a few that
    were all judged rightly are no certainty.

    Source:
        Agresti and Caffo, 2000.
    """
    yes, wrong, missed, no = confusion
    if not yes + missed or not no + wrong:
        return None
    mean = variance = 0.0
    for right, n in ((yes, yes + missed), (no, no + wrong)):
        share = (right + 1) / (n + 2)
        mean += share / 2
        variance += share * (1 - share) / (n + 2) / 4
    reach = Z * sqrt(variance)
    return max(0.0, mean - reach), min(1.0, mean + reach)


@dataclass(frozen=True, slots=True)
class Calibration:
    """How a judge did on pairs that people have labelled.

    Of a judge that tells probabilities, agreement, kappa and confusion are cross-validated: each
    label was judged with a threshold that it had no part in. Sensitivity and specificity are
    those of the fitted threshold, less what the fit flatters them, so that their mean is the
    cross-validated one too.

    Attributes:
        judge: The signature of the judge with its threshold.
        purpose: What was judged: chunks for the "question", the "reference" or the
            "response"; or claims for "support".
        n: How many pairs were read.
        unread: How many had no readable verdict, and count nowhere.
        agreement: The share of equal verdicts, in [0, 1].
        kappa: Cohen's kappa, in [-1, 1]; quadratically weighted where the judge grades.
        sensitivity: The share of people's yeses that the judge found; None without any.
        specificity: The share of people's noes that the judge found; None without any.
        balanced_accuracy: The mean of these two; `balanced_accuracy_interval` is its 95 %
            interval.
        confusion: The counts behind them.
        auc: How likely a yes gets a higher probability than a no; None without probabilities.
        threshold: The fitted one; None without probabilities.
        threshold_interval: Its 95 % interval, by resampling the labels.
        curve: Told against found, in bins of about equal size; empty without probabilities.
        beside: What the judge gained over each baseline, where `check_judge` held them beside it.
    """

    judge: str
    purpose: Purpose
    n: int
    unread: int
    agreement: float
    kappa: float | None
    sensitivity: float | None
    specificity: float | None
    confusion: Confusion
    auc: float | None = None
    threshold: float | None = None
    threshold_interval: tuple[float, float] | None = None
    curve: tuple[Bin, ...] = ()
    beside: tuple[Beside, ...] = ()

    @property
    def balanced_accuracy(self) -> float | None:
        """The mean of sensitivity and specificity; None without either."""
        if self.sensitivity is None or self.specificity is None:
            return None
        return (self.sensitivity + self.specificity) / 2

    @property
    def balanced_accuracy_interval(self) -> tuple[float, float] | None:
        """Its 95 % interval; None where there is none of it.

        Where a threshold was fitted it holds the truth in nine of ten cases: the folds' own
        thresholds scatter, too.
        """
        return balanced_accuracy_interval(self.confusion)

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, for JSON."""
        return {"ctxeval_calibration": FORMAT, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calibration:
        """Read what `to_dict` wrote, also after a way through JSON.

        Raises:
            InvalidArgumentError: It is no calibration, or one of another version.
        """
        if not isinstance(data, Mapping):
            raise InvalidArgumentError(
                f"calibration: {short(data)} is no mapping: give what to_dict wrote"
            )
        fields = dict(data)
        version = fields.pop("ctxeval_calibration", None)
        if version != FORMAT:
            raise InvalidArgumentError(
                f"calibration: {short(data)} has format {version!r}, this ctxeval reads {FORMAT}: "
                "give what Calibration.save wrote"
            )
        try:
            interval = fields["threshold_interval"]
            fields["threshold_interval"] = None if interval is None else tuple(interval)
            fields["confusion"] = Confusion(**_named(fields["confusion"], Confusion))
            fields["curve"] = tuple(Bin(**_named(one, Bin)) for one in fields["curve"])
            beside = fields.get("beside", ())
            fields["beside"] = tuple(Beside(**_named(one, Beside)) for one in beside)
            found = cls(**fields)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"calibration: {short(data)} is broken ({type(error).__name__}: {error}): give "
                "what Calibration.save wrote"
            ) from None
        for field, value, wanted in _impossible(found):
            raise InvalidArgumentError(
                f"calibration: {field}: {short(value)} is no {wanted}: give what Calibration.save "
                "wrote"
            )
        return found

    def save(self, path: str | PathLike[str]) -> Path:
        """Write it to a JSON file, for `Calibration.load`.

        Raises:
            InvalidArgumentError: The file can't be written.
        """
        path = _path(path)
        try:
            path.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise InvalidArgumentError(f"{path} cannot be written: {error.strerror}") from None
        return path

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Calibration:
        """Read what `save` wrote.

        Raises:
            InvalidArgumentError: The file cannot be read, or holds no calibration. The message
                names it.
        """
        path = _path(path)
        remedy = "give a file that Calibration.save or `ctxeval judge check -o` wrote"
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidArgumentError(
                f"{path} cannot be read: {error.strerror}: {remedy}"
            ) from None
        except (ValueError, RecursionError) as error:  # no text, no JSON, brackets too deep
            raise InvalidArgumentError(f"{path} is no JSON: {error}: {remedy}") from None
        if not isinstance(data, dict):
            raise InvalidArgumentError(f"{path} holds no calibration: {short(data)}: {remedy}")
        try:
            return cls.from_dict(data)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{path}: {error}") from None

    def __str__(self) -> str:
        """Write a table for a terminal."""
        yes, wrong, missed, no = self.confusion
        lines = [
            f"{self.n} labelled pairs for {self.purpose!r}"
            + (f", {self.unread} more unread" if self.unread else ""),
            f"  {'':14}{'people: yes':>12}{'people: no':>12}",
            f"  {'judge: yes':14}{yes:>12}{wrong:>12}",
            f"  {'judge: no':14}{missed:>12}{no:>12}",
        ]
        for name in ("agreement", "kappa", "sensitivity", "specificity", "balanced_accuracy"):
            lines.append(f"  {name.replace('_', ' '):20}{_written(getattr(self, name)):>8}")
        if (interval := self.balanced_accuracy_interval) is not None:
            lines[-1] += f"  ({interval[0]:.3f}–{interval[1]:.3f})"
        if self.auc is not None:
            lines.append(f"  {'AUC':20}{_written(self.auc):>8}")
        if self.threshold is not None and self.threshold_interval is not None:
            low, high = self.threshold_interval
            lines.append(f"  {'threshold':20}{self.threshold:>8.3f}  ({low:.3f}–{high:.3f})")
        return "\n".join(lines)


def _path(given: object) -> Path:
    if not isinstance(given, (str, PathLike)):
        raise InvalidArgumentError(f"calibration: {short(given)} is no path: give that of a file")
    return Path(given)


def _impossible(one: Calibration) -> Iterator[tuple[str, object, str]]:
    """Name what no calibration holds, as a file may that somebody has edited: what is wanted."""
    if not isinstance(one.judge, str):
        yield "judge", one.judge, "signature of a judge"
    purposes = get_args(Purpose)
    if one.purpose not in purposes:
        yield "purpose", one.purpose, f"purpose, which is one of {', '.join(purposes)}"
    counts = {"n": one.n, "unread": one.unread, **one.confusion._asdict()}
    numbers = {"agreement": one.agreement}
    numbers |= {
        name: value
        for name in ("sensitivity", "specificity", "auc", "threshold")
        if (value := getattr(one, name)) is not None
    }
    for place, point in enumerate(one.curve):
        counts[f"curve[{place}].n"] = point.n
        numbers |= {f"curve[{place}].told": point.told, f"curve[{place}].found": point.found}
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            yield name, count, "count"
    interval = one.threshold_interval or ()
    if one.threshold_interval is not None and len(interval) != 2:
        yield "threshold_interval", interval, "interval, which has two ends"
    numbers |= {f"threshold_interval[{place}]": end for place, end in enumerate(interval)}
    for name, share in numbers.items():
        if not _is_number(share) or not 0 <= share <= 1:
            yield name, share, "number from 0 to 1"
    if one.kappa is not None and (not _is_number(one.kappa) or not -1 <= one.kappa <= 1):
        yield "kappa", one.kappa, "number from -1 to 1"
    if sum(one.confusion) != one.n:
        yield "confusion", tuple(one.confusion), f"table of the n = {one.n} pairs"
    for place, other in enumerate(one.beside):
        for name in ("gain", "low", "high", "disagreement"):
            if not _is_number(getattr(other, name)):
                yield f"beside[{place}].{name}", getattr(other, name), "number"
        if not isinstance(other.baseline, str) or not isinstance(other.odd, bool):
            yield f"beside[{place}]", tuple(other), "comparison with a baseline"


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def _written(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _named(value: Any, kind: Any) -> dict[str, Any]:
    return (
        dict(value) if isinstance(value, Mapping) else dict(zip(kind._fields, value, strict=True))
    )
