"""What a metric says of a sample: a number, or why there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ctxeval.errors import NotScoredError
from ctxeval.verdicts import Usage, Verdicts

Status = Literal["scored", "undefined", "failed", "skipped"]


@dataclass(slots=True)
class MetricResult:
    """What a metric says of a sample.

    Attributes:
        value: The number, in [0, 1]; None unless `status` is "scored".
        status: "scored"; "undefined" (nothing is expected, so no number would mean
            anything); "failed" (a verdict that decides could not be had); "skipped"
            (a field that the metric needs is missing).
        reason: Why there is no value; "" where there is one.
        verdicts: What the judge said of each chunk and each unit.
        bounds: The least and the greatest value that the unread verdicts leave
            possible; None where nothing was judged.
        metric: The metric's name.
        signature: What decides the value besides the sample: metric, judge, model,
            prompts. Results with different signatures are not comparable.
        usage: What the judging cost. Metrics that share a judging share this object:
            sums over several metrics count it once.
        expected: The value to expect where the judge tells probabilities instead of
            cutting them at a threshold; None where it tells none.
    """

    value: float | None
    status: Status = "scored"
    reason: str = ""
    verdicts: Verdicts | None = None
    bounds: tuple[float, float] | None = None
    metric: str = ""
    signature: str = ""
    usage: Usage | None = None
    expected: float | None = None

    def __float__(self) -> float:
        """Give the value.

        Raises:
            NotScoredError: There is none.
        """
        if self.value is None:
            raise NotScoredError(
                f"{self.metric} is {self.status}: {self.reason}. Look at .status before the number"
            )
        return self.value

    def __format__(self, spec: str) -> str:
        """Format the value as a number where a format is given, else like `str`."""
        return format(float(self), spec) if spec else str(self)

    def __repr__(self) -> str:
        """Show name and value, or status and reason."""
        if self.value is None:
            return f"MetricResult({self.metric}: {self.status}, {self.reason})"
        return f"MetricResult({self.metric}={self.value!r})"

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain data, for JSON."""
        data = {
            "metric": self.metric,
            "value": self.value,
            "status": self.status,
            "reason": self.reason,
            "bounds": None if self.bounds is None else list(self.bounds),
            "signature": self.signature,
            "verdicts": None if self.verdicts is None else self.verdicts.to_dict(),
        }
        if self.expected is not None:
            data["expected"] = self.expected
        return data

    def to_json(self) -> str:
        """Write it as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MetricResult:
        """Read what `to_dict` or `to_json` wrote."""
        verdicts = None if data["verdicts"] is None else Verdicts.from_dict(data["verdicts"])
        bounds = data["bounds"]
        return cls(
            value=data["value"],
            status=data["status"],
            reason=data["reason"],
            verdicts=verdicts,
            bounds=None if bounds is None else (float(bounds[0]), float(bounds[1])),
            metric=data["metric"],
            signature=data["signature"],
            usage=None if verdicts is None else verdicts.usage,
            expected=data.get("expected"),
        )

    @classmethod
    def from_json(cls, text: str) -> MetricResult:
        """Read what `to_json` wrote."""
        return cls.from_dict(json.loads(text))


def results_to_dict(results: Mapping[str, MetricResult]) -> dict[str, dict[str, Any]]:
    """Write the results of one sample as plain data, for JSON.

    Verdicts that several of them share stand there once: of the others, "verdicts" is the
    name of the metric that has them.
    """
    written: dict[str, dict[str, Any]] = {}
    place: dict[int, str] = {}
    for name, result in results.items():
        first = place.setdefault(id(result.verdicts), name)
        if result.verdicts is None or first == name:
            written[name] = result.to_dict()
        else:
            written[name] = {**replace(result, verdicts=None).to_dict(), "verdicts": first}
    return written


def results_from_dict(data: Mapping[str, Mapping[str, Any]]) -> dict[str, MetricResult]:
    """Read what `results_to_dict` wrote: what was shared is shared again."""
    results: dict[str, MetricResult] = {}
    for name, one in data.items():
        first = one["verdicts"]
        if isinstance(first, str):
            made = results[name] = MetricResult.from_dict({**one, "verdicts": None})
            made.verdicts, made.usage = results[first].verdicts, results[first].usage
        else:
            results[name] = MetricResult.from_dict(one)
    return results
