"""What judges said of chunks, found again wherever the same id, text or place stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ctxeval.metrics import ContextRelevance, ContextUtilization
from ctxeval.record.query import Chunk
from ctxeval.report.view import VerdictView
from ctxeval.result import MetricResult
from ctxeval.sample import Span
from ctxeval.verdicts import Verdict, Verdicts

Results = Mapping[str, MetricResult]

_THRESHOLD = re.compile(r"text\(.*>=([\d.e+-]+)\)", re.DOTALL)
"""How the signature of a judge by text ends."""

_JUDGES = {"id": "id", "text": "text", "span": "place", "llm": "model"}
_FOR = {ContextUtilization.name: "for the answer", ContextRelevance.name: "for the question"}


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """Who gave verdicts, and for what.

    Attributes:
        name: The judge's name.
        label: What it is called where it is shown.
        signature: What decides its verdicts besides the sample.
    """

    name: str
    label: str
    signature: str

    @classmethod
    def of(cls, metric: str, verdicts: Verdicts) -> JudgedBy:
        """Tell who gave the verdicts that a metric reads."""
        return cls.signed(metric, verdicts.judge)

    @classmethod
    def signed(cls, metric: str, signature: str) -> JudgedBy:
        """Tell who judges for a metric by the judge's signature."""
        name = signature.partition("(")[0]
        label = _JUDGES.get(name, name)
        if name == "llm":
            label = f"{label}, {_FOR.get(metric, 'for the reference')}"
        return cls(name, label, signature)

    def threshold_for(self, text: str) -> float | None:
        """Give the least similarity to a text that counts; None where none is asked for.

        Examples:
            >>> JudgedBy.signed("", "text(levenshtein>=0.5)").threshold_for("a")
            0.5
        """
        found = _THRESHOLD.fullmatch(self.signature) if text.strip() else None
        return float(found[1]) if found else None


class Said:
    """Each judge's verdicts on chunks, by what stands in the chunk.

    What a judge says of an id, a text or a place holds wherever the same stands again, so
    that a verdict on a chunk of the last stage is shown on earlier stages too.

    Args:
        scores: The results of a query, and of each of its stages.
    """

    def __init__(self, scores: Iterable[Results]) -> None:
        """See the class."""
        self._of: dict[JudgedBy, dict[str, VerdictView]] = {}
        for results in scores:
            for metric, verdicts in distinct(results):
                judge = JudgedBy.of(metric, verdicts)
                texts = [unit.text for unit in verdicts.units]
                for verdict in verdicts.chunks:
                    known = self._of.setdefault(judge, {})
                    old = known.get(verdict.text)
                    if old is None or (verdict.matched and not old.matched):
                        known[verdict.text] = _verdict(judge, verdict, texts)
        labels = [judge.label for judge in self._of]
        for judge, known in self._of.items():  # two text judges with different thresholds, say
            if labels.count(judge.label) > 1:
                for text, said in known.items():
                    known[text] = replace(said, judge=judge.signature)

    def of(self, chunk: Chunk) -> tuple[VerdictView, ...]:
        """Give what each judge says of a chunk."""
        keys = {"id": chunk.id, "span": place_name(chunk.span)}
        found = (known.get(keys.get(judge.name, chunk.text)) for judge, known in self._of.items())
        return tuple(verdict for verdict in found if verdict is not None)


def distinct(results: Results) -> Iterable[tuple[str, Verdicts]]:
    """Go through the verdicts of results, those that metrics share only once.

    Those of a metric that saw but the first k chunks come last.
    """
    seen: set[int] = set()
    for metric, result in sorted(results.items(), key=lambda entry: "@" in entry[0]):
        if result.verdicts is not None and id(result.verdicts) not in seen:
            seen.add(id(result.verdicts))
            yield metric, result.verdicts


def _verdict(judge: JudgedBy, verdict: Verdict, units: Sequence[str]) -> VerdictView:
    matched = tuple(units[unit] for unit in verdict.matched if unit < len(units))
    return VerdictView(
        judge.label,
        verdict.value,
        matched,
        verdict.similarity,
        verdict.reason,
        verdict.votes,
        verdict.probability,
        judge.threshold_for(verdict.text),
    )


def place_name(span: Span | None) -> str:
    """Write a place as the judge by place names it, "" where there is none."""
    return "" if span is None else f"{span.document}[{span.start}:{span.end}]"
