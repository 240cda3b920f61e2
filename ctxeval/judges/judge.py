"""What all judges have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from ctxeval.sample import Sample
from ctxeval.verdicts import Verdicts


class Judge:
    """Says of a sample which chunks are relevant and what of the reference they cover.

    Attributes:
        name: "id", "text", "span" or "llm", as metric names show it in brackets.
        calls_model: Does it call a model, on ctxeval's loop?
        knows_all: Does it know all that is expected, whether it was retrieved or not?
        retrieved_field: The field of a sample that holds what was retrieved.
        expected_fields: The fields that hold what was expected, whatever the purpose.
        signature: What decides its verdicts besides the sample.
    """

    name: ClassVar[str]
    calls_model: ClassVar[bool] = False
    knows_all: ClassVar[bool] = False
    retrieved_field: ClassVar[str]
    expected_fields: ClassVar[tuple[str, ...]] = ()
    signature: str

    @property
    def shared_by(self) -> tuple[object, ...]:
        """What judges must have in common to share verdicts."""
        return (self.name,)

    def needs(self, purpose: str) -> tuple[str, ...]:
        """Name the fields of a sample that must not be None to judge it for a purpose."""
        return self.retrieved_field, *self.expected_fields

    def nothing_expected(self, sample: Sample, purpose: str, *, units: bool) -> str:
        """Say why nothing is expected of a sample; "" where something is.

        Args:
            sample: The sample.
            purpose: As of `judge`.
            units: Is it about the units, or about the chunks?
        """
        return ""

    def prepare(self, samples: Iterable[Sample]) -> None:
        """Prepare for judging these samples, where that is cheaper at once."""

    def judge(
        self,
        sample: Sample,
        purpose: str = "reference",
        *,
        chunks: bool = True,
        units: bool = True,
    ) -> Verdicts:
        """Judge a sample.

        Args:
            sample: One that has the fields which the judge needs.
            purpose: For a model, what the chunks are judged for: "reference",
                "response" or "question".
            chunks: Are the verdicts on chunks wanted?
            units: Are the verdicts on units wanted?
        """
        raise NotImplementedError

    async def ajudge(
        self,
        sample: Sample,
        purpose: str = "reference",
        *,
        chunks: bool = True,
        units: bool = True,
    ) -> Verdicts:
        """Judge a sample from asynchronous code; see `judge`."""
        return self.judge(sample, purpose, chunks=chunks, units=units)


class ModelFreeJudge(Judge):
    """A judge that asks no model: it works out what is looked at, whatever was asked for."""

    def verdicts(self, sample: Sample) -> Verdicts:
        """Give the verdicts on a sample that has the fields which the judge needs."""
        raise NotImplementedError

    def judge(
        self,
        sample: Sample,
        purpose: str = "reference",
        *,
        chunks: bool = True,
        units: bool = True,
    ) -> Verdicts:
        """Judge a sample; only a model needs to be told for what."""
        return self.verdicts(sample)
