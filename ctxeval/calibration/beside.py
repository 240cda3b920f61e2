"""How a judge did beside a baseline."""

from __future__ import annotations

from typing import NamedTuple


class Beside(NamedTuple):
    """A judge beside a baseline, on the same labels.

    Attributes:
        baseline: The baseline's name.
        gain: The judge's balanced accuracy less the baseline's, on the pairs that the judge
            read.
        low: The lower end of the gain's 95 % interval.
        high: Its upper end.
        disagreement: On which share of the pairs the two disagree.
        odd: Does the baseline tell yes from no, and yet the judge disagrees with it as often as
            one would that knows nothing of it?
    """

    baseline: str
    gain: float
    low: float
    high: float
    disagreement: float
    odd: bool

    @property
    def better(self) -> bool:
        """Does the judge do better, beyond chance?"""
        return self.low > 0

    def __str__(self) -> str:
        """Write what it means, as one line."""
        size = f"{self.gain:+.3f} ({self.low:+.3f} to {self.high:+.3f}) in balanced accuracy"
        does = "does better than" if self.better else "does no better than"
        remedy = "" if self.better else ": label more, try another wording or model, or do without"
        said = f"{does} {self.baseline} on these labels, {size}{remedy}"
        if self.odd:
            said += (
                f"; it disagrees with it on {self.disagreement:.0%} of the pairs, as if the two "
                "judged different things: read some of these"
            )
        return said.replace("-0", "−0")
