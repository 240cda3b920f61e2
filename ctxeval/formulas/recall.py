"""How much of what was expected did retrieval bring?"""

from __future__ import annotations

from collections.abc import Sequence


def recall(covered: Sequence[bool]) -> float:
    r"""Take the share of expected units that the retrieved chunks cover.

    .. math:: \frac{1}{U} \sum_{u=1}^{U} c_u

    where :math:`c_u` is 1 if unit u (a claim, a reference context or a reference id)
    is covered.

    Args:
        covered: Is this unit covered? In any order, at least one unit.

    Returns:
        A number in [0, 1]: 1 exactly when all are covered, 0 when none is.

    Raises:
        ZeroDivisionError: Nothing is expected; recall is undefined then, and
            the metrics say so before they come here.

    Source:
        The context recall of Ragas.

    Examples:
        >>> recall([True, False, True, True])
        0.75
    """
    return sum(covered) / len(covered)
