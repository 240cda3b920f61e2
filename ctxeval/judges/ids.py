"""The judge by id: a chunk is relevant when its id is expected."""

from __future__ import annotations

from ctxeval.judges.judge import ModelFreeJudge
from ctxeval.sample import Sample
from ctxeval.verdicts import Verdict, Verdicts, first_ranks


class IdJudge(ModelFreeJudge):
    """Judge by id: exact, free, and only as good as the expected ids are complete."""

    name = "id"
    signature = "id"
    knows_all = True
    retrieved_field = "retrieved_context_ids"
    expected_fields = ("reference_context_ids",)

    def nothing_expected(self, sample: Sample, purpose: str, *, units: bool) -> str:
        """Ask for an id with a grade above 0."""
        return "" if expected_grades(sample) else "no id is expected"

    def verdicts(self, sample: Sample) -> Verdicts:
        """Look the retrieved ids up among the expected ones.

        Args:
            sample: One with `retrieved_context_ids` and `reference_context_ids`.

        Returns:
            The verdicts, worked out when they are looked at.
        """
        return IdVerdicts(sample)


def expected_grades(sample: Sample) -> dict[str, int]:
    """Give the expected ids with their grades: 1 where none is given, none at or below 0."""
    expected = sample.reference_context_ids or ()
    if isinstance(expected, dict):
        return {name: grade for name, grade in expected.items() if grade > 0}
    return dict.fromkeys(expected, 1)


class IdVerdicts(Verdicts):
    """Verdicts that follow from two lists of ids."""

    __slots__ = ("_expected", "_retrieved")

    def __init__(self, sample: Sample) -> None:
        """Keep the ids."""
        self._retrieved = sample.retrieved_context_ids or ()
        self._expected = expected_grades(sample)
        super().__init__(judge="id")

    @property
    def chunks(self) -> tuple[Verdict, ...]:
        """A verdict per retrieved id."""
        unit_of = {name: unit for unit, name in enumerate(self._expected)}
        return tuple(
            Verdict(
                name in unit_of,
                text=name,
                reason="" if name in unit_of else "its id is not expected",
                matched=(unit_of[name],) if name in unit_of else (),
                grade=self._expected.get(name, 0),
            )
            for name in self._retrieved
        )

    @property
    def units(self) -> tuple[Verdict, ...]:
        """A verdict per distinct expected id."""
        first = {self._retrieved[rank]: rank for rank in first_ranks(self._retrieved)}
        return tuple(
            Verdict(
                name in first,
                text=name,
                reason="" if name in first else "no chunk with this id was retrieved",
                matched=(first[name],) if name in first else (),
                grade=grade,
            )
            for name, grade in self._expected.items()
        )

    def relevant(self) -> list[bool | None]:
        """Say of each retrieved id whether it is expected."""
        expected = self._expected
        return [name in expected for name in self._retrieved]

    def covered(self, k: int | None = None) -> list[bool | None]:
        """Say of each expected id whether it is among the first k."""
        retrieved = set(self._retrieved if k is None else self._retrieved[:k])
        return [name in retrieved for name in self._expected]

    def gains(self) -> list[int | None]:
        """Give the grade of each retrieved id, 0 where it is not expected."""
        expected = self._expected
        return [expected.get(name, 0) for name in self._retrieved]

    def expected_gains(self) -> list[int]:
        """Give the grades of the expected ids."""
        return list(self._expected.values())

    def distinct(self) -> list[int]:
        """Give the indices of the ids that are no repeat of an earlier one."""
        return first_ranks(self._retrieved)
