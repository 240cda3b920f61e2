"""Run judges over pairs that people have labelled, with the baselines beside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

from ctxeval.calibration.agreement import calibrate
from ctxeval.calibration.baselines import baseline_scores, beside
from ctxeval.calibration.beside import Beside
from ctxeval.calibration.calibration import Calibration, Purpose
from ctxeval.calibration.labels import PURPOSES, Labelled, Pair, read_labels
from ctxeval.errors import InvalidArgumentError, short
from ctxeval.evaluation.judge_check_text import written
from ctxeval.evaluation.judge_pairs import judge_pairs
from ctxeval.judges.embedding import EmbeddingSimilarity, EmbedFunction
from ctxeval.judges.llm import LLMJudge
from ctxeval.llm.loop import run
from ctxeval.verdicts import Usage


@dataclass(frozen=True, slots=True)
class Checked:
    """How one judge did on the labels of one purpose.

    Attributes:
        judge: The judge, with the threshold that was fitted to it.
        calibration: How it did; None where it could not judge.
        failure: Why it could not; "" where it could.
        beside: What it gains over each baseline.
        flips: On which share of the pairs its repeats disagreed; None where asked once.
        usage: What it cost.
        seconds: How long it took.
    """

    judge: LLMJudge
    calibration: Calibration | None
    failure: str
    beside: tuple[Beside, ...]
    flips: float | None
    usage: Usage
    seconds: float


@dataclass(frozen=True, slots=True)
class PurposeCheck:
    """How judges did on the labels of one purpose.

    Attributes:
        purpose: What was labelled: see `Calibration.purpose`.
        pairs: How many pairs are labelled.
        yes: How many of these as a yes.
        baselines: How each baseline did, by its name.
        judges: How each judge did, in the order given.
        disputed: How many of the pairs are labelled both yes and no, so that no judge can agree
            with all labels.
    """

    purpose: Purpose
    pairs: int
    yes: int
    baselines: dict[str, Calibration]
    judges: tuple[Checked, ...]
    disputed: int = 0

    @property
    def recommended(self) -> Checked | None:
        """The judge with the best balanced accuracy; None where none could judge.

        Of those that do as well, the one that reads most, ranks best and costs least.
        """
        able = [one for one in self.judges if one.calibration is not None]
        return max(able, key=_merit, default=None)


def _merit(one: Checked) -> tuple[float, int, float, int]:
    c = one.calibration
    assert c is not None
    return c.balanced_accuracy or 0.0, -c.unread, c.auc or 0.0, -one.usage.prompt_tokens


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """How judges did on labels, purpose by purpose; `print` shows it as tables.

    Attributes:
        purposes: One for each purpose that was labelled.
    """

    purposes: tuple[PurposeCheck, ...]

    def __getitem__(self, purpose: str) -> PurposeCheck:
        """Give what was found for one purpose.

        Raises:
            InvalidArgumentError: Nothing was labelled for it.
        """
        for one in self.purposes:
            if one.purpose == purpose:
                return one
        there = ", ".join(repr(one.purpose) for one in self.purposes)
        raise InvalidArgumentError(f"purpose: {short(purpose)} was not labelled, but {there}")

    def __str__(self) -> str:
        """Write the tables, and what they mean."""
        return "\n\n".join(map(written, self.purposes))

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, for JSON."""
        return {one.purpose: _plain(one) for one in self.purposes}


def _plain(check: PurposeCheck) -> dict[str, Any]:
    best = check.recommended
    return {
        "pairs": check.pairs,
        "yes": check.yes,
        "disputed": check.disputed,
        "baselines": {name: c.to_dict() for name, c in check.baselines.items()},
        "judges": [
            {
                "mode": one.judge.mode,
                "repeats": one.judge.repeats,
                "calibration": one.calibration and one.calibration.to_dict(),
                "failure": one.failure,
                "beside": [{**b._asdict(), "better": b.better} for b in one.beside],
                "flips": one.flips,
                "usage": asdict(one.usage),
                "seconds": one.seconds,
            }
            for one in check.judges
        ],
        "recommended": best
        and {
            "mode": best.judge.mode,
            "repeats": best.judge.repeats,
            "threshold": best.judge.threshold if best.judge.mode == "logprob" else None,
        },
    }


def check_judge(
    judges: LLMJudge | Iterable[LLMJudge],
    labels: Any,
    *,
    embed: EmbedFunction | Any = None,
) -> JudgeCheck:
    """Say how far judges agree with people, and whether they do better than the baselines.

    Chunks that were labelled for the same question are judged together, as they would be in
    an evaluation. What a judge could not read is told, and costs no other pair.

    Args:
        judges: A judge, or several to compare: by mode, by model, by instructions.
        labels: A label file, a DataFrame, or a list of dicts, with the fields that
            `ctxeval.calibration.labels.read_labels` names.
        embed: From a list of texts to a list of vectors, for a second baseline.

    Raises:
        InvalidSampleError: The label file is broken; the message names line and field.
        InvalidArgumentError: There are no labels, or those for a purpose are all of one kind.
        MissingExtraError: scikit-learn is not installed.
    """
    asked = [judges] if isinstance(judges, LLMJudge) else judges
    asked = list(asked) if isinstance(asked, Iterable) else []
    if not asked or not all(isinstance(one, LLMJudge) for one in asked):
        raise InvalidArgumentError(f"judges: {short(judges)}: give an LLMJudge, or a list of them")
    # What was said twice counts once, of whichever sample.
    given = list({(one.pair.judged, one.label > 0): one for one in read_labels(labels)}.values())
    if not given:
        raise InvalidArgumentError("labels: there are none: give at least a pair of each kind")
    by_purpose: dict[Purpose, list[Labelled]] = {
        purpose: found
        for purpose in PURPOSES
        if (found := [one for one in given if one.pair.purpose == purpose])
    }
    for purpose, of_purpose in by_purpose.items():
        yes = sum(one.label > 0 for one in of_purpose)
        if yes in (0, len(of_purpose)):
            raise InvalidArgumentError(
                f"labels: all {len(of_purpose)} for {purpose!r} are {'yes' if yes else 'no'}: "
                "label pairs of both kinds"
            )
    similarity = None if embed is None else EmbeddingSimilarity(embed)
    return JudgeCheck(
        tuple(
            _check(asked, purpose, of_purpose, similarity)
            for purpose, of_purpose in by_purpose.items()
        )
    )


def _check(
    judges: Sequence[LLMJudge],
    purpose: Purpose,
    labelled: Sequence[Labelled],
    similarity: EmbeddingSimilarity | None,
) -> PurposeCheck:
    pairs = [one.pair for one in labelled]
    labels = [one.label for one in labelled]
    scores = baseline_scores(pairs, similarity)
    said: dict[object, set[bool]] = {}
    for one in labelled:
        said.setdefault(one.pair.judged, set()).add(one.label > 0)
    return PurposeCheck(
        purpose,
        len(labels),
        sum(label > 0 for label in labels),
        {name: calibrate(told, labels, purpose=purpose) for name, told in scores.items()},
        tuple(_checked(judge, purpose, pairs, labels, scores) for judge in judges),
        sum(len(kinds) > 1 for kinds in said.values()),
    )


def _checked(
    judge: LLMJudge,
    purpose: Purpose,
    pairs: Sequence[Pair],
    labels: Sequence[bool | int],
    scores: dict[str, list[float]],
) -> Checked:
    begun = perf_counter()
    verdicts, usage, failure = run(judge_pairs(judge, pairs))
    seconds = perf_counter() - begun
    voted = [one.flipped for one in verdicts if one.votes]
    flips = sum(voted) / len(voted) if voted else None
    if all(one.value is None for one in verdicts):
        return Checked(judge, None, failure or verdicts[0].reason, (), flips, usage, seconds)
    try:
        calibration = calibrate(verdicts, labels, judge=judge, purpose=purpose)
        gains = tuple(beside(verdicts, labels, scores))
    except InvalidArgumentError as error:  # what it could read is all of one kind
        return Checked(judge, None, str(error), (), flips, usage, seconds)
    calibration = replace(calibration, beside=gains)
    fitted = judge.with_calibration(calibration)
    return Checked(fitted, calibration, failure, gains, flips, usage, seconds)
