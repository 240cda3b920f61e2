"""What all metrics share: how a sample becomes a number, or why it does not.

In this order: a missing field, nothing expected, nothing retrieved, then the verdicts,
then the formula. A metric adds which verdicts it reads and which formula it applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, Literal

from ctxeval.errors import MissingFieldError
from ctxeval.formulas.expected import expected_value
from ctxeval.judges.judge import Judge
from ctxeval.result import MetricResult, Status
from ctxeval.sample import Sample
from ctxeval.verdicts import Verdict, Verdicts

Answers = list[bool | None]
MAX_ENUMERATED = 10
"""Up to so many unread verdicts, every way to complete them is tried."""


class Metric:
    """What all metrics have in common.

    Attributes:
        name: The metric's name, under which results are found.
        judge: Who gives the verdicts.
        purpose: For a model: what the chunks are judged for.
        reads: Does the formula read the verdicts on the "chunks" or on the "units"?
    """

    name: str
    judge: Judge
    purpose: ClassVar[Literal["reference", "response", "question"]] = "reference"
    reads: ClassVar[Literal["chunks", "units"]] = "chunks"

    def answers(self, verdicts: Verdicts) -> Answers:
        """Give the verdicts that the formula reads, None for an unread one."""
        return verdicts.relevant() if self.reads == "chunks" else verdicts.covered()

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply the formula to verdicts that are all read."""
        raise NotImplementedError

    @property
    def signature(self) -> str:
        """What decides the value besides the sample: the metric, the judge, its prompts."""
        return f"{self.name}/1 {self.judge.signature}"

    @property
    def verdicts_for(self) -> Literal["reference", "response", "question", "support"]:
        """What the verdicts that it reads are for, as a `Calibration` names it."""
        return self.purpose if self.reads == "chunks" else "support"

    @property
    def needs(self) -> tuple[str, ...]:
        """The fields of a sample that must not be None."""
        return self.judge.needs(self.purpose)

    def missing(self, sample: Sample) -> str:
        """Say which needed fields are None; "" where none is."""
        missing = [field for field in self.needs if getattr(sample, field) is None]
        claims_given = self.reads == "units" and sample.reference_claims is not None
        if not missing or (missing == ["reference"] and claims_given):
            return ""
        return f"{self.name} needs {' and '.join(missing)}, which the sample lacks"

    def before_judging(self, sample: Sample) -> MetricResult | None:
        """Give the result where no verdict is needed: nothing expected or nothing retrieved."""
        nothing = self.judge.nothing_expected(sample, self.purpose, units=self.reads == "units")
        if nothing:
            return self.result(None, "undefined", nothing)
        if not getattr(sample, self.judge.retrieved_field):
            return self.result(0.0, bounds=(0.0, 0.0))
        return None

    def after_judging(self, verdicts: Verdicts) -> MetricResult:
        """Turn verdicts into the result.

        Where some could not be read, the result is scored only if every way to
        complete them gives the same value.
        """
        answers = self.answers(verdicts)
        unread = [index for index, answer in enumerate(answers) if answer is None]
        if not unread:
            value = self.formula(answers, verdicts)  # type: ignore[arg-type]  # none is None
            result = self.result(value, "scored", verdicts.note, verdicts, (value, value))
            if self.judge.calls_model:
                result.expected = self._expected(answers, verdicts)
            return result
        low, high = self._bounds(answers, unread, verdicts)
        if low == high:
            return self.result(low, "scored", verdicts.note, verdicts, (low, high))
        source = self._read(verdicts)
        what = {"chunks": "chunk", "units": "claim"}[self.reads]
        reason = f"{len(unread)} of {len(answers)} verdicts could not be read, the first on " + (
            f"{what} {unread[0] + 1}: {source[unread[0]].reason}"
        )
        return self.result(None, "failed", reason, verdicts, (low, high))

    def _read(self, verdicts: Verdicts) -> tuple[Verdict, ...]:
        return verdicts.chunks if self.reads == "chunks" else verdicts.units

    def _expected(self, answers: Answers, verdicts: Verdicts) -> float | None:
        """Give the value to expect where the judge tells probabilities."""
        source = self._read(verdicts)[: len(answers)]
        # A repeated text is judged once: its verdicts are one.
        likely = {one.text: one.probability for one in source if one.probability is not None}
        if not likely or any(one.probability is None for one in source if one.text.strip()):
            return None

        def value(way: Sequence[bool]) -> float:
            turned = dict(zip(likely, way, strict=True))
            return self.formula([turned.get(one.text, False) for one in source], verdicts)

        return expected_value(value, list(likely.values()))

    def _bounds(
        self, answers: Answers, unread: Sequence[int], verdicts: Verdicts
    ) -> tuple[float, float]:
        if len(unread) > MAX_ENUMERATED:
            return 0.0, 1.0
        values = []
        for way in product((False, True), repeat=len(unread)):
            completed = [bool(answer) for answer in answers]
            for index, answer in zip(unread, way, strict=True):
                completed[index] = answer
            values.append(self.formula(completed, verdicts))
        return min(values), max(values)

    def result(
        self,
        value: float | None,
        status: Status = "scored",
        reason: str = "",
        verdicts: Verdicts | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> MetricResult:
        """Make a result of this metric."""
        return MetricResult(
            value,
            status,
            reason,
            verdicts,
            bounds,
            self.name,
            self.signature,
            None if verdicts is None else verdicts.usage,
        )

    def seen(self, sample: Sample) -> Sample:
        """Give what the judge gets to see of a sample: all of it, but for a metric's own cut."""
        return sample

    def score(
        self, sample: Sample | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> MetricResult:
        """Score one sample, given as a `Sample`, as a dict, or by its fields as keywords.

        Works in a script, in a notebook and in any thread.

        Raises:
            MissingFieldError: A field that the metric needs is None.
            JudgeError: The model gave no reply.
            InvalidSampleError: The fields are no sample.
        """
        sample = self._complete(Sample.of(sample, **fields))
        if (result := self.before_judging(sample)) is not None:
            return result
        return self.after_judging(self.judge.judge(self.seen(sample), **self._question()))

    async def ascore(
        self, sample: Sample | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> MetricResult:
        """Score one sample from asynchronous code; see `score`."""
        sample = self._complete(Sample.of(sample, **fields))
        if (result := self.before_judging(sample)) is not None:
            return result
        return self.after_judging(await self.judge.ajudge(self.seen(sample), **self._question()))

    def batch_score(self, samples: Iterable[Sample | Mapping[str, Any]]) -> list[MetricResult]:
        """Score many samples; none costs another.

        Returns:
            A result per sample, in order: where a field is missing, "skipped"; where
            the model gave no reply, "failed".

        Raises:
            InvalidSampleError: One of them is no sample; the message says which.
        """
        from ctxeval.scoring import score_all

        return [results[self.name] for results in score_all(samples, [self])]

    async def abatch_score(
        self, samples: Iterable[Sample | Mapping[str, Any]]
    ) -> list[MetricResult]:
        """Score many samples from asynchronous code; see `batch_score`."""
        from ctxeval.scoring import ascore_all

        return [results[self.name] for results in await ascore_all(samples, [self])]

    def _complete(self, sample: Sample) -> Sample:
        if missing := self.missing(sample):
            raise MissingFieldError(f"{missing}: give it")
        return sample

    def _question(self) -> dict[str, Any]:
        return {
            "purpose": self.purpose,
            "chunks": self.reads == "chunks",
            "units": self.reads == "units",
        }

    def __repr__(self) -> str:
        """Show name and judge."""
        return f"<{self.signature}>"
