"""How far a judge that is asked repeatedly agrees with itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far a judge that was asked repeatedly agrees with itself.

    Attributes:
        judge: The judge.
        what: "chunks" or "claims".
        verdicts: How many verdicts were voted on.
        votes: How many votes were cast.
        unread: How many of these could not be read.
        unanimous: On how many all readable votes agree.
        agreement: The share of pairs of votes that agree, in the mean; None without pairs.
        kappa: Fleiss' kappa: the same, beyond chance; None where chance alone would agree.
    """

    judge: str
    what: str
    verdicts: int
    votes: int
    unread: int
    unanimous: int
    agreement: float | None
    kappa: float | None


def agreement(judge: str, what: str, votes: list[tuple[bool | None, ...]]) -> Agreement:
    """Say how far a judge agrees with itself.

    Args:
        judge: Its name.
        what: What it voted on.
        votes: Its votes, verdict by verdict; None for one that could not be read.

    Source:
        Fleiss, 1971, for kappa, over the verdicts with at least two readable votes.
    """
    readable = [[vote for vote in cast if vote is not None] for cast in votes]
    several = [cast for cast in readable if len(cast) > 1]
    mean = kappa = None
    if several:
        pairs = [_agreeing(cast) for cast in several]
        mean = sum(pairs) / len(pairs)
        yes = sum(map(sum, several)) / sum(map(len, several))
        chance = yes**2 + (1 - yes) ** 2
        kappa = None if chance == 1 else (mean - chance) / (1 - chance)
    cast = sum(map(len, votes))
    return Agreement(
        judge,
        what,
        len(votes),
        cast,
        cast - sum(map(len, readable)),
        sum(len(set(one)) == 1 for one in readable),
        mean,
        kappa,
    )


def _agreeing(votes: list[bool]) -> float:
    n, yes = len(votes), sum(votes)
    no = n - yes
    return (yes * (yes - 1) + no * (no - 1)) / (n * (n - 1))
