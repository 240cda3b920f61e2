"""Metrics by place: characters of documents, whatever cut these into chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctxeval.formulas.spans import (
    SpanTuple,
    span_iou,
    span_precision,
    span_precision_omega,
    span_recall,
)
from ctxeval.judges.spans import SpanJudge, SpanVerdicts
from ctxeval.metric import Answers, Metric
from ctxeval.result import MetricResult
from ctxeval.sample import Sample, Span
from ctxeval.verdicts import Verdicts


class SpanMetric(Metric):
    """A metric of characters. Needs `retrieved_spans` and `reference_spans`."""

    reads = "units"

    def __init__(self) -> None:
        """Judge by place."""
        self.judge = SpanJudge()

    def answers(self, verdicts: Verdicts) -> Answers:
        """Read nothing: the formula reads the places themselves, which are all known."""
        return []


class SpanRecall(SpanMetric):
    """The share of the expected characters that were retrieved."""

    name = "span_recall"

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `span_recall`."""
        assert isinstance(verdicts, SpanVerdicts)
        return span_recall(verdicts.expected, verdicts.retrieved)


class SpanPrecision(SpanMetric):
    """The share of the retrieved characters, repeats included, that are expected."""

    name = "span_precision"

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `span_precision`."""
        assert isinstance(verdicts, SpanVerdicts)
        return span_precision(verdicts.expected, verdicts.retrieved)


class SpanIoU(SpanMetric):
    """The covered characters over all that are expected or retrieved."""

    name = "span_iou"

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `span_iou`."""
        assert isinstance(verdicts, SpanVerdicts)
        return span_iou(verdicts.expected, verdicts.retrieved)


class SpanPrecisionOmega(SpanMetric):
    """The best `span_precision` that a chunking allows, whatever was retrieved.

    Args:
        chunks: The places of all chunks of the index.
    """

    name = "span_precision_omega"

    def __init__(self, chunks: Iterable[Span]) -> None:
        """Take the chunking."""
        super().__init__()
        self._by_document: dict[str, list[SpanTuple]] = {}
        for span in chunks:
            place = (span.document, span.start, span.end)
            self._by_document.setdefault(span.document, []).append(place)

    @property
    def needs(self) -> tuple[str, ...]:
        """The expected places alone."""
        return self.judge.expected_fields

    def before_judging(self, sample: Sample) -> MetricResult | None:
        """Ask only whether something is expected: what was retrieved does not matter."""
        nothing = self.judge.nothing_expected(sample, self.purpose, units=True)
        return self.result(None, "undefined", nothing) if nothing else None

    def formula(self, answers: Sequence[bool], verdicts: Verdicts) -> float:
        """Apply `span_precision_omega`."""
        assert isinstance(verdicts, SpanVerdicts)
        documents = {document for document, _, _ in verdicts.expected}
        chunks = [span for name in documents for span in self._by_document.get(name, ())]
        return span_precision_omega(verdicts.expected, chunks)
