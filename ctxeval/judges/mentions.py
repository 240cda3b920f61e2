"""The chunks that a model speaks of in its reasons: it knows them by their place in one prompt.

A reason outlives its prompt, and a prompt's order is none of a reader's: so a reason is kept with
the chunks' hashes, and shown with their ranks, counted from 1 as wherever ranks are shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_NUMBER = r"#?\d{1,3}(?![\d%]|\s*[-–.:/]\s*\d)"  # no range, fraction or time
_MENTION = re.compile(
    rf"\b(?:chunks?|ids?)(?:\s+ids?)?\s*{_NUMBER}(?:(?:\s*,)?\s*(?:,|\band\b|\bor\b|&)\s*{_NUMBER})*",
    re.IGNORECASE,
)
_ONE = re.compile(r"#?(\d+)")
_MARK = re.compile(r"\[([0-9a-f]{24})\]")


def with_hashes(reason: str, shown: Sequence[str]) -> str:
    """Name the chunks that a reason names by number by their hashes.

    Args:
        reason: What the model wrote.
        shown: The hashes of the chunks of its prompt, which counts them from 1.

    Examples:
        >>> with_hashes("Chunk 2 and 1 say so, for 40 years.", ["a" * 24, "b" * 24])
        'Chunk [bbbbbbbbbbbbbbbbbbbbbbbb] and [aaaaaaaaaaaaaaaaaaaaaaaa] say so, for 40 years.'
    """

    def named(mention: re.Match[str]) -> str:
        numbers = [int(one) for one in _ONE.findall(mention[0])]
        if not all(1 <= number <= len(shown) for number in numbers):
            return mention[0]
        return _ONE.sub(lambda one: f"[{shown[int(one[1]) - 1]}]", mention[0])

    return _MENTION.sub(named, reason)


def with_ranks(reason: str, rank_of: Mapping[str, int]) -> str:
    """Name the chunks that a reason names by their hashes by their ranks, from 1.

    Args:
        reason: What `with_hashes` wrote.
        rank_of: The rank of each chunk, from 0, by its hash.

    Examples:
        >>> with_ranks(f"Chunk [{'a' * 24}] says so.", {"a" * 24: 4})
        'Chunk 5 says so.'
        >>> with_ranks(f"Chunk [{'b' * 24}] says so.", {"a" * 24: 4})
        'Chunk (not retrieved here) says so.'
    """

    def ranked(mark: re.Match[str]) -> str:
        rank = rank_of.get(mark[1])
        return "(not retrieved here)" if rank is None else str(rank + 1)

    return _MARK.sub(ranked, reason)
