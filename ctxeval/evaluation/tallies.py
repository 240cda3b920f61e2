"""What is known of many rows without looking at them again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctxeval.evaluation.rows import Row
from ctxeval.evaluation.tally import Tally
from ctxeval.verdicts import Usage


class Tallies:
    """What is known of many rows: their ids, and each metric's results.

    Args:
        ids: The rows' ids; None: not known yet.

    Attributes:
        ids: Likewise.
        size: How many rows there are.
        usage: What the judging cost.
        of: Each metric's results, by its name.
    """

    def __init__(self, ids: list[str] | None = None) -> None:
        """Begin with no results."""
        self.ids = ids
        self.size = 0 if ids is None else len(ids)
        self.usage = Usage()
        self.of: dict[str, Tally] = {}

    @classmethod
    def counting(cls, rows: Iterable[Row]) -> Tallies:
        """Count rows."""
        made = cls([])
        for row in rows:
            made.add(row)
        return made

    def add(self, row: Row) -> None:
        """Count one more row."""
        assert self.ids is not None
        self.ids.append(row.id)
        usages: dict[int, Usage] = {}
        for name, result in row.results.items():
            self.of.setdefault(name, Tally()).add(self.size, result)
            if result.usage is not None:  # metrics that share a judging share its usage
                usages[id(result.usage)] = result.usage
        for usage in usages.values():
            self.usage += usage
        self.size += 1

    def part(self, places: Sequence[int]) -> Tallies:
        """Give those of some rows; see `Tally.of_places`."""
        made = Tallies(None if self.ids is None else [self.ids[place] for place in places])
        made.size = len(places)
        parts = {name: tally.of_places(places) for name, tally in self.of.items()}
        made.of = {name: tally for name, tally in parts.items() if len(tally.rows)}
        return made
