"""Have a judge judge single pairs, as it would judge them in an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ctxeval.calibration.labels import Pair
from ctxeval.errors import CtxEvalError, JudgeError, describe
from ctxeval.fields import MAX_CLAIMS
from ctxeval.judges.calling import all_of
from ctxeval.judges.llm import LLMJudge
from ctxeval.sample import Sample
from ctxeval.verdicts import Usage, Verdict

PROBES = 2
"""Where so many first questions get no reply, the others are not asked."""


async def judge_pairs(judge: LLMJudge, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage, str]:
    """Have a judge judge pairs, together what an evaluation would judge together.

    Args:
        judge: The judge.
        pairs: The pairs.

    Returns:
        A verdict per pair, unread where the model gave no reply; what that cost; and why there
        was no reply, where there was none.
    """
    groups: dict[tuple[object, ...], dict[str, list[int]]] = {}
    for place, pair in enumerate(pairs):
        claims = pair.purpose == "support"
        key = pair.purpose, pair.question, pair.chunks if claims else pair.target
        text = pair.target if claims else pair.chunks[0]
        groups.setdefault(key, {}).setdefault(text, []).append(place)
    work = [
        (pairs[next(iter(group.values()))[0]], part, group)
        for group in groups.values()
        for part in _parts(list(group))
    ]
    judged = await all_of(_verdicts(judge, pair, texts) for pair, texts, _ in work[:PROBES])
    if all(why for _, _, why in judged):  # each call would wait for its retries in vain
        why = judged[0][2]
        judged += [
            ([_unread(text, why) for text in texts], Usage(), why) for _, texts, _ in work[PROBES:]
        ]
    else:
        judged += await all_of(_verdicts(judge, pair, texts) for pair, texts, _ in work[PROBES:])
    found: dict[int, Verdict] = {}
    usage, failure = Usage(), ""
    for (_, texts, group), (verdicts, cost, why) in zip(work, judged, strict=True):
        usage, failure = usage + cost, failure or why
        for text, verdict in zip(texts, verdicts, strict=True):
            found.update(dict.fromkeys(group[text], verdict))
    return [found[place] for place in range(len(pairs))], usage, failure


def _parts(texts: list[str]) -> Iterable[list[str]]:
    return (texts[start : start + MAX_CLAIMS] for start in range(0, len(texts), MAX_CLAIMS))


async def _verdicts(
    judge: LLMJudge, pair: Pair, texts: Sequence[str]
) -> tuple[Sequence[Verdict], Usage, str]:
    claims = pair.purpose == "support"
    purpose = "reference" if claims else pair.purpose
    fields: dict[str, Any] = {"user_input": pair.question or None}
    if claims:
        fields |= {"retrieved_contexts": pair.chunks, "reference_claims": texts}
    else:
        fields["retrieved_contexts"] = texts
        if pair.target:
            fields[purpose] = pair.target
    try:
        verdicts = await judge.ajudge(Sample(**fields), purpose, chunks=not claims, units=claims)
    except CtxEvalError as error:
        spent = getattr(error, "usage", None)
        if spent is None:
            tries = error.attempts if isinstance(error, JudgeError) else 0
            spent = Usage(requests=tries, unreported=tries)
        why = describe(error)
        return [_unread(text, why) for text in texts], spent, why
    return verdicts.units if claims else verdicts.chunks, verdicts.usage, ""


def _unread(text: str, why: str) -> Verdict:
    return Verdict(None, text=text, reason=why)
