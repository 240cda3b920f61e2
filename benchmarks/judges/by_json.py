"""Judge and split by the modes that answer with JSON, with several wordings of what counts.

What the model said is kept in a store, so that a run that ends early goes on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rapidfuzz import fuzz

import ctxeval
from benchmarks.judges.asked import ASKED
from benchmarks.judges.cases import Case
from benchmarks.judges.rows import Told, accuracy
from ctxeval.evaluation.judge_pairs import judge_pairs
from ctxeval.evaluation.statistics import mean_interval
from ctxeval.fields import MAX_CLAIMS
from ctxeval.judges.asking import Asker
from ctxeval.judges.calling import all_of
from ctxeval.judges.claims import claims_of
from ctxeval.judges.llm import LLMJudge, Mode
from ctxeval.judges.prompts import INSTRUCTIONS, Prompts
from ctxeval.llm.loop import run
from ctxeval.llm.protocol import LLM

CASES = 200
"""So many of each purpose are judged, questions in English first."""

_NOT_ENOUGH = "Sharing a topic or words with it is not enough."
CRITERIA: dict[str, dict[str, str]] = {
    "question": {
        "information": INSTRUCTIONS["question"],
        "part": f"A chunk is useful if it answers the question, at least in part. {_NOT_ENOUGH}",
    },
    "reference": {
        "helps": INSTRUCTIONS["reference"],
        "part": (
            "A chunk is useful if it answers the question as the reference does, at least in "
            f"part. {_NOT_ENOUGH}"
        ),
    },
    "response": {
        "helps": INSTRUCTIONS["response"],
        "part": (
            "A chunk is useful if it answers the question as the response does, at least in "
            f"part. {_NOT_ENOUGH}"
        ),
    },
    "support": {
        "follows": INSTRUCTIONS["support"],
        "says": "A claim is supported if the chunks say so, and nothing that contradicts it.",
    },
}
"""What makes a chunk useful and a claim supported, by purpose and the wording's name."""

SPLITTING: dict[str, str] = {
    "claims": INSTRUCTIONS["claims"],
    "facts": (
        "List the facts that the text states, one short sentence for each, in the language of "
        "the text. Put names in place of pronouns. Add nothing, leave nothing out, and repeat "
        f"nothing. Write at most {MAX_CLAIMS}."
    ),
}
"""How a text is split into claims."""

TOGETHER, ROUNDS = 3, 5
"""So many known claims are joined to a text, and so often each claim is in one."""
ALIKE = 80
"""A claim that was told is a known one if their letters agree so far, in percent."""


def judged(
    llm: LLM, every: Sequence[Case], modes: Iterable[Mode], folder: Path
) -> Iterable[dict[str, Any]]:
    """Judge by each mode and wording, and give a row for each."""
    for mode in modes:
        for purpose, wordings in CRITERIA.items():
            of_purpose = [case for case in every if case.labelled.pair.purpose == purpose]
            these = sorted(of_purpose, key=lambda case: case.language != "en")[:CASES]
            for name, criterion in wordings.items():
                own = None if criterion == INSTRUCTIONS[purpose] else {purpose: criterion}
                judge = LLMJudge(llm, mode, instructions=own, cache=_store(folder))
                yield {"what": f"{purpose}: {name}", "mode": mode, **_row(judge, these)}


def _store(folder: Path) -> ctxeval.Store:
    return ctxeval.Store(folder / "json.db")


def _row(judge: LLMJudge, these: Sequence[Case]) -> dict[str, Any]:
    begun = time.perf_counter()
    verdicts, usage, _ = run(judge_pairs(judge, [case.labelled.pair for case in these]))
    seconds = time.perf_counter() - begun
    values = [None if one.value is None else float(one.value) for one in verdicts]
    read = [one for one in map(Told, these, values) if one.yes is not None]
    return {
        "n": len(read),
        "unread": len(these) - len(read),
        "said yes": f"{sum(one.yes or 0 for one in read) / len(read):.2f}",
        "accuracy": str(accuracy(read, 0.5)),
        "near": _spared(read, "near"),
        "far": _spared(read, "far"),
        "requests": usage.requests,
        "answered tokens": usage.completion_tokens,
        "seconds a pair": f"{seconds / len(these):.1f}" if usage.requests else "kept",
    }


def _spared(read: Iterable[Told], kind: str) -> str:
    """Give the share of one kind of negatives that were told to be none."""
    of_kind = [one for one in read if one.case.kind == kind]
    return f"{sum(not one.yes for one in of_kind) / len(of_kind):.2f}" if of_kind else ""


class Joined(NamedTuple):
    """A text, and the claims that it was made of."""

    text: str
    claims: tuple[str, ...]


def joined() -> list[Joined]:
    """Make texts whose claims are known: two in one sentence, and one more."""
    found: list[Joined] = []
    for number in range(ROUNDS):
        claims = [asked.true for asked in ASKED]
        random.Random(number).shuffle(claims)
        for start in range(0, len(claims) - TOGETHER + 1, TOGETHER):
            first, second, third = these = tuple(claims[start : start + TOGETHER])
            text = f"{first.rstrip('.')}, and {second.rstrip('.')}. {third}"
            found.append(Joined(text, these))
    return found


def split(llm: LLM, folder: Path) -> Iterable[dict[str, Any]]:
    """Split the texts with each wording, and give a row for each."""
    texts = joined()
    for name, said in SPLITTING.items():
        prompts = Prompts(None if said == INSTRUCTIONS["claims"] else {"claims": said})
        told = run(_split(Asker(llm, prompts), texts, _store(folder)))
        known = [
            float(any(_alike(claim, one) for one in claims))
            for text, claims in zip(texts, told, strict=True)
            for claim in text.claims
        ]
        right = [
            float(any(_alike(one, claim) for claim in text.claims))
            for text, claims in zip(texts, told, strict=True)
            for one in claims
        ]
        yield {
            "what": f"split: {name}",
            "texts": len(texts),
            "not split": sum(not claims for claims in told),
            "known claims": len(known),
            "found": _share(known),
            "told": len(right),
            "known ones among them": _share(right),
        }


async def _split(
    asker: Asker, texts: Sequence[Joined], store: ctxeval.Store
) -> list[Sequence[str]]:
    samples = (ctxeval.Sample(reference=one.text) for one in texts)
    told = await all_of(claims_of(sample, asker, store, split=True) for sample in samples)
    return [claims for claims, _ in told]


def _alike(one: str, other: str) -> bool:
    return fuzz.ratio(one.casefold().rstrip("."), other.casefold().rstrip(".")) >= ALIKE


def _share(values: Sequence[float]) -> str:
    found = mean_interval(values)
    return f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]"
