"""The rank metrics of information retrieval, as trec_eval computes them.

All take the chunks best rank first; `k` cuts the list, and None means no cut.
Average precision stands in `precision`, since context precision is the same formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2


def hit_rate(relevant: Sequence[bool], k: int | None = None) -> float:
    """Ask whether any of the first k chunks is relevant.

    Args:
        relevant: Is the chunk at this rank relevant? Best rank first.
        k: How many ranks count.

    Returns:
        1.0 or 0.0; 0.0 when nothing was retrieved.

    Source:
        trec_eval's success.

    Examples:
        >>> hit_rate([False, True], k=1), hit_rate([False, True], k=2)
        (0.0, 1.0)
    """
    return float(any(relevant[:k]))


def reciprocal_rank(relevant: Sequence[bool], k: int | None = None) -> float:
    r"""Take one over the rank of the first relevant chunk.

    .. math:: 1 / \min \{ r \le k : v_r = 1 \}

    Args:
        relevant: Is the chunk at this rank relevant? Best rank first.
        k: How many ranks count.

    Returns:
        A number in [0, 1]: 1 exactly when the first chunk is relevant, 0 when
        none of the first k is.

    Source:
        trec_eval's recip_rank.

    Examples:
        >>> reciprocal_rank([False, True, True])
        0.5
    """
    for rank, is_relevant in enumerate(relevant[:k], start=1):
        if is_relevant:
            return 1 / rank
    return 0.0


def precision_at_k(relevant: Sequence[bool], k: int) -> float:
    r"""Take the share of the first k places that hold a relevant chunk.

    .. math:: \frac{1}{k} \sum_{r=1}^{k} v_r

    A place that stays empty counts as irrelevant: the divisor is always k.

    Args:
        relevant: Is the chunk at this rank relevant? Best rank first.
        k: How many places there are, at least 1.

    Returns:
        A number in [0, 1].

    Source:
        trec_eval's P.

    Examples:
        >>> precision_at_k([True], k=2)
        0.5
    """
    return sum(relevant[:k]) / k


def ndcg(
    gains: Sequence[int], k: int | None = None, *, expected: Sequence[int] | None = None
) -> float:
    r"""Compare the discounted gain of this order with that of the best order.

    .. math::
        \frac{\mathrm{DCG}(g)}{\mathrm{DCG}(g^\ast)}, \qquad
        \mathrm{DCG}(g) = \sum_{r=1}^{k} \frac{g_r}{\log_2 (r + 1)}

    where :math:`g^\ast` are the expected gains, greatest first.

    Args:
        gains: The grade of the chunk at this rank, 0 for an irrelevant one. Best
            rank first.
        k: How many ranks count.
        expected: The grades of all expected items, retrieved or not, in any
            order. None: the best order of the retrieved ones is the measure.

    Returns:
        A number in [0, 1]: 1 exactly when no order of what was expected (or
        retrieved) would be better, 0 when nothing relevant stands in the first k.

    Source:
        trec_eval's ndcg and ndcg_cut; Järvelin and Kekäläinen, 2002, with linear gain.

    Examples:
        >>> ndcg([0, 0, 2], expected=[2])
        0.5
    """
    ideal = sorted(gains if expected is None else expected, reverse=True)[:k]
    actual = list(gains[:k])
    if not any(actual):
        return 0.0
    return _dcg(actual) / _dcg(ideal)


def _dcg(gains: Sequence[int]) -> float:
    total = 0.0
    for rank, gain in enumerate(gains, start=1):  # not by sum, which adds otherwise since 3.12
        if gain > 0:
            total += gain / log2(rank + 1)
    return total
