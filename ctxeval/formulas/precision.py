"""How much of what was retrieved is relevant, and does it stand first?"""

from __future__ import annotations

from collections.abc import Sequence


def precision(relevant: Sequence[bool]) -> float:
    r"""Take the share of retrieved items that are relevant.

    .. math:: \frac{1}{K} \sum_{k=1}^{K} v_k

    Args:
        relevant: Is this retrieved item relevant? In any order.

    Returns:
        A number in [0, 1]: 1 exactly when all are relevant, 0 when none is
        or nothing was retrieved.

    Examples:
        >>> precision([True, False, False, True])
        0.5
    """
    return sum(relevant) / len(relevant) if relevant else 0.0


def average_precision(
    relevant: Sequence[bool], k: int | None = None, *, expected: int | None = None
) -> float:
    r"""Average the precision at each relevant rank.

    .. math:: \frac{1}{N} \sum_{r=1}^{k} \mathrm{precision@}r \cdot v_r

    where :math:`v_r` is 1 if the chunk at rank r is relevant. N is, unless `expected`
    is given, how many relevant chunks the best order of the retrieved ones would have
    among its first k: a relevant chunk that was missed costs nothing then, nor does
    an irrelevant one behind the last relevant one.

    Args:
        relevant: Is the chunk at this rank relevant? Best rank first.
        k: How many ranks count; None: all.
        expected: N, the number of expected items, retrieved or not.

    Returns:
        A number in [0, 1]; 0 when none of the first k is relevant or nothing was
        retrieved. Without `expected` it is 1 exactly when no irrelevant chunk
        precedes a relevant one; with it, also only if nothing was missed and k is
        no less than `expected`.

    Source:
        Without options: the context precision of Ragas, without the 1e-10 that it
        adds to N. With `expected`: trec_eval's map and map_cut, of one query.

    Examples:
        >>> average_precision([True, False, False, True])  # (1/1 + 2/4) / 2
        0.75
        >>> average_precision([True, False, True, True], k=2, expected=4)  # 1/1 / 4
        0.25
    """
    hits = 0
    total = 0.0
    for rank, is_relevant in enumerate(relevant[:k], start=1):
        if is_relevant:
            hits += 1
            total += hits / rank
    if not hits:
        return 0.0
    if expected is None:
        found = sum(relevant)
        expected = found if k is None else min(found, k)
    return total / expected
