"""Characters of source documents: by hand, by law, and against sets of characters."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ctxeval
from ctxeval import Span
from ctxeval.formulas.spans import span_iou, span_precision, span_precision_omega, span_recall

E = [("d", 0, 10)]


@pytest.mark.parametrize(
    ("retrieved", "recall", "precision", "iou"),
    [
        pytest.param([("d", 0, 10)], 1, 1, 1, id="just that"),
        pytest.param([("d", 0, 20)], 1, Fraction(1, 2), Fraction(1, 2), id="twice as long"),
        pytest.param([("d", 5, 10)], Fraction(1, 2), 1, Fraction(1, 2), id="half"),
        pytest.param([("d", 0, 10)] * 2, 1, Fraction(1, 2), Fraction(1, 2), id="twice: 10 / 20"),
        pytest.param([("d", 0, 6), ("d", 4, 10)], 1, Fraction(10, 12), Fraction(10, 12), id="over"),
        pytest.param([("e", 0, 10)], 0, 0, 0, id="another document"),
        pytest.param([("d", 10, 20)], 0, 0, 0, id="beside it"),
        pytest.param([], 0, 0, 0, id="nothing"),
    ],
)
def test_by_hand(retrieved, recall, precision, iou):
    assert span_recall(E, retrieved) == pytest.approx(float(recall))
    assert span_precision(E, retrieved) == pytest.approx(float(precision))
    assert span_iou(E, retrieved) == pytest.approx(float(iou))


@pytest.mark.parametrize(
    ("chunks", "omega"),
    [
        pytest.param([("d", 0, 10), ("d", 10, 20)], 0.5, id="a neighbour that touches counts"),
        pytest.param([("d", 0, 10), ("d", 11, 20)], 1, id="one that does not touch does not"),
        pytest.param([("d", 0, 40)], 0.25, id="one long chunk"),
        pytest.param([("e", 0, 10)], 0, id="another document"),
    ],
)
def test_omega_by_hand(chunks, omega):
    assert span_precision_omega(E, chunks) == omega


SPANS = st.lists(
    st.tuples(st.sampled_from("de"), st.integers(0, 12), st.integers(0, 6)).map(
        lambda span: (span[0], span[1], span[1] + span[2])
    ),
    max_size=6,
)


def letters(spans):
    return [(document, place) for document, start, end in spans for place in range(start, end)]


@given(SPANS, SPANS)
def test_agree_with_sets_of_characters(expected, retrieved):
    wanted, got = set(letters(expected)), letters(retrieved)
    covered = len(wanted & set(got))
    if wanted:
        assert span_recall(expected, retrieved) == covered / len(wanted)
        assert span_iou(expected, retrieved) == covered / (len(wanted) + len(got) - covered)
    assert span_precision(expected, retrieved) == (covered / len(got) if got else 0)


@given(SPANS)
def test_perfect_is_exactly_1(expected):
    if letters(expected):
        assert span_recall(expected, expected) == 1


def sample(retrieved, expected):
    return ctxeval.Sample(
        retrieved_spans=[Span(*span) for span in retrieved],
        reference_spans=[Span(*span) for span in expected],
    )


def test_the_metrics():
    results = ctxeval.score(sample([("d", 0, 20)], E))
    values = {name: result.value for name, result in results.items()}
    assert values == {"span_recall": 1, "span_precision": 0.5, "span_iou": 0.5}
    unit = results["span_recall"].verdicts.units[0]
    assert (unit.value, unit.matched, unit.text) == (True, (0,), "d[0:10]")


def test_nothing_retrieved_and_nothing_expected():
    assert ctxeval.SpanRecall().score(sample([], E)).value == 0
    for expected in ([], [("d", 3, 3)]):
        result = ctxeval.SpanRecall().score(sample([("d", 0, 1)], expected))
        assert result.status == "undefined"


def test_omega_knows_the_chunking_and_not_what_was_retrieved():
    metric = ctxeval.SpanPrecisionOmega([Span("d", 0, 20), Span("e", 0, 9)])
    assert metric.score(reference_spans=[Span("d", 0, 10)]).value == 0.5
    with pytest.raises(ctxeval.MissingFieldError, match="reference_spans"):
        metric.score(retrieved_spans=[])
