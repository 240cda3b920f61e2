"""The judge by place: a chunk is relevant when it holds expected characters."""

from __future__ import annotations

from ctxeval.formulas.spans import SpanTuple, characters, covered_characters
from ctxeval.judges.judge import ModelFreeJudge
from ctxeval.sample import Sample, Span
from ctxeval.verdicts import Verdict, Verdicts


class SpanJudge(ModelFreeJudge):
    """Judge by the places in source documents that chunks come from.

    Expectations given as places survive another chunking of the same documents.
    """

    name = "span"
    signature = "span"
    retrieved_field = "retrieved_spans"
    expected_fields = ("reference_spans",)

    def nothing_expected(self, sample: Sample, purpose: str, *, units: bool) -> str:
        """Ask for a place with a character in it."""
        expected = sample.reference_spans or ()
        return "" if any(span.end > span.start for span in expected) else "no character is expected"

    def verdicts(self, sample: Sample) -> Verdicts:
        """Compare the retrieved with the expected places.

        Args:
            sample: One with `retrieved_spans` and `reference_spans`.
        """
        return SpanVerdicts(sample.retrieved_spans or (), sample.reference_spans or ())


class SpanVerdicts(Verdicts):
    """Verdicts that follow from two lists of places.

    Attributes:
        retrieved: The retrieved places.
        expected: The expected ones.
    """

    __slots__ = ("expected", "retrieved")

    def __init__(self, retrieved: tuple[Span, ...], expected: tuple[Span, ...]) -> None:
        """Keep the places."""
        super().__init__(judge="span")
        self.retrieved: list[SpanTuple] = [_tuple(span) for span in retrieved]
        self.expected: list[SpanTuple] = [_tuple(span) for span in expected]

    @property
    def chunks(self) -> tuple[Verdict, ...]:
        """A verdict per chunk: does it hold an expected character?"""
        verdicts = []
        for span in self.retrieved:
            matched = tuple(
                u for u, e in enumerate(self.expected) if covered_characters([e], [span])
            )
            verdicts.append(
                Verdict(
                    bool(matched),
                    text=_name(span),
                    reason="" if matched else "it holds no expected character",
                    matched=matched,
                    grade=int(bool(matched)),
                )
            )
        return tuple(verdicts)

    @property
    def units(self) -> tuple[Verdict, ...]:
        """A verdict per expected place: do the chunks cover it wholly?"""
        verdicts = []
        for span in self.expected:
            covered, wanted = covered_characters([span], self.retrieved), characters([span])
            matched = [r for r, s in enumerate(self.retrieved) if covered_characters([span], [s])]
            whole = covered == wanted
            verdicts.append(
                Verdict(
                    whole,
                    text=_name(span),
                    reason="" if whole else f"{covered} of {wanted} characters are covered",
                    matched=tuple(matched),
                    grade=1,
                )
            )
        return tuple(verdicts)


def _tuple(span: Span) -> SpanTuple:
    return span.document, span.start, span.end


def _name(span: SpanTuple) -> str:
    return f"{span[0]}[{span[1]}:{span[2]}]"
