"""From what was found in each repeat to one verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from ctxeval.judges.cells import Finding
from ctxeval.verdicts import Verdict


def compared(value: float, threshold: float | None = None) -> str:
    """Write a number beside the threshold that it is measured by.

    Args:
        value: The number.
        threshold: The least that counts; None: there is none.

    Returns:
        Both, the number with as many digits, two at least, as tell it from the threshold.

    Examples:
        >>> compared(0.731, 0.75), compared(0.5, 0.5), compared(0.74999, 0.75)
        ('0.73 < 0.75', '0.50 >= 0.5', '0.74999 < 0.75')
    """
    if threshold is None:
        return f"{value:.2f}"
    limit = f"{threshold:g}"
    reached = value >= threshold
    shown = (f"{value:.{digits}f}" for digits in range(2, 17))
    clear = (one for one in shown if (float(one) >= float(limit)) is reached)
    return f"{next(clear, repr(value))} {'>=' if reached else '<'} {limit}"


def vote(
    text: str,
    findings: Sequence[Finding],
    rank_of: Mapping[str, int] | None = None,
    threshold: float | None = None,
) -> Verdict:
    """Let the repeats vote: the majority of the readable votes counts, a tie is unread.

    Args:
        text: What was judged.
        findings: What each repeat found; none: there was no text to ask about.
        rank_of: For a claim: the first rank of each chunk, by its hash.
        threshold: Where the findings have probabilities: the least mean of these that is a yes.
    """
    if not findings:
        return Verdict(False, text=text, reason="there is no text to judge")
    votes = tuple(finding["value"] for finding in findings)
    known = [one["probability"] for one in findings if one.get("probability") is not None]
    probability = fmean(known) if known else None
    yes, no = votes.count(True), votes.count(False)
    if threshold is not None and probability is not None:
        value: bool | None = probability >= threshold
    else:
        value = None if yes == no else yes > no
    deciding = next((f for f in findings if f["value"] is value), findings[0])
    reason = deciding["reason"]
    if threshold is not None and probability is not None:
        reason = f"yes with a probability of {compared(probability, threshold)}"
        other = fmean(one.get("other", 0.0) for one in findings)
        reason += f", {other:.0%} on other words" if other >= 0.01 else ""
    if value is None and yes:
        reason = f"{yes} of {len(votes)} readable votes said yes, {no} said no"
    matched = sorted(rank_of[name] for name in deciding["chunks"]) if rank_of and value else ()
    return Verdict(
        value,
        text=text,
        reason=reason,
        matched=tuple(matched),
        grade=1 if rank_of is not None else int(bool(value)),
        votes=votes if len(votes) > 1 else (),
        probability=probability,
    )
