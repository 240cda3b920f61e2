"""Retrieval measured by characters of source documents, whatever the chunks.

A span is (document, start, end), with the end excluded. So two ways of chunking can be
compared on the same questions.

Source: Chroma's report on evaluating chunking, 2024.
"""

from __future__ import annotations

from collections.abc import Sequence

SpanTuple = tuple[str, int, int]


def span_recall(expected: Sequence[SpanTuple], retrieved: Sequence[SpanTuple]) -> float:
    """Take the share of the expected characters that the retrieved chunks cover.

    Args:
        expected: The expected spans; where they overlap, a character counts once.
        retrieved: The spans of the retrieved chunks.

    Returns:
        A number in [0, 1]: 1 exactly when every expected character is covered.

    Raises:
        ZeroDivisionError: No character is expected; recall is undefined then.

    Examples:
        >>> span_recall([("d", 0, 8)], [("d", 4, 12)])
        0.5
    """
    return covered_characters(expected, retrieved) / characters(expected)


def span_precision(expected: Sequence[SpanTuple], retrieved: Sequence[SpanTuple]) -> float:
    """Take the share of the retrieved characters that are expected.

    A character that overlapping chunks hold twice counts twice below the line: it costs
    the model's attention twice.

    Args:
        expected: The expected spans.
        retrieved: The spans of the retrieved chunks.

    Returns:
        A number in [0, 1]; 0 when no character was retrieved.

    Examples:
        >>> span_precision([("d", 0, 4)], [("d", 0, 4), ("d", 0, 4)])
        0.5
    """
    total = _lengths(retrieved)
    return covered_characters(expected, retrieved) / total if total else 0.0


def span_iou(expected: Sequence[SpanTuple], retrieved: Sequence[SpanTuple]) -> float:
    """Divide the covered characters by all that are expected or retrieved.

    Args:
        expected: The expected spans.
        retrieved: The spans of the retrieved chunks; repeated characters count again.

    Returns:
        A number in [0, 1]: 1 exactly when just what is expected was retrieved, once.

    Raises:
        ZeroDivisionError: No character is expected, and none was retrieved.

    Examples:
        >>> span_iou([("d", 0, 4)], [("d", 2, 6), ("d", 8, 10)])  # 2 / (4 + 6 - 2)
        0.25
    """
    covered = covered_characters(expected, retrieved)
    return covered / (characters(expected) + _lengths(retrieved) - covered)


def span_precision_omega(expected: Sequence[SpanTuple], chunks: Sequence[SpanTuple]) -> float:
    """Give the best precision that a chunking allows: that of exactly the chunks that matter.

    Args:
        expected: The expected spans.
        chunks: The spans of all chunks of the index. One matters when it touches an
            expected span; touching at one boundary counts.

    Returns:
        A number in [0, 1]; 0 when no chunk touches an expected span.

    Examples:
        >>> span_precision_omega([("d", 0, 4)], [("d", 0, 8), ("d", 8, 16), ("e", 0, 8)])
        0.5
    """
    touching = [
        (document, start, end)
        for document, start, end in chunks
        if any(document == d and start <= e and s <= end for d, s, e in expected)
    ]
    return span_precision(expected, touching)


def characters(spans: Sequence[SpanTuple]) -> int:
    """Count the characters of spans, each once."""
    return _lengths(_merged(spans))


def covered_characters(expected: Sequence[SpanTuple], retrieved: Sequence[SpanTuple]) -> int:
    """Count the characters that are both expected and retrieved, each once."""
    total = 0
    there = _merged(retrieved)
    for document, start, end in _merged(expected):
        total += sum(max(0, min(end, e) - max(start, s)) for d, s, e in there if d == document)
    return total


def _lengths(spans: Sequence[SpanTuple]) -> int:
    return sum(end - start for _, start, end in spans)


def _merged(spans: Sequence[SpanTuple]) -> list[SpanTuple]:
    """Join spans that overlap or touch."""
    merged: list[SpanTuple] = []
    for document, start, end in sorted(spans):
        if merged and merged[-1][0] == document and start <= merged[-1][2]:
            merged[-1] = (document, merged[-1][1], max(end, merged[-1][2]))
        else:
            merged.append((document, start, end))
    return merged
