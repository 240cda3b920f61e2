"""The claims of a reference: given with it, the whole of it, or split by the model, once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxeval.judges.asking import Asker
from ctxeval.judges.cells import CellCache, CellKeys, question_hash
from ctxeval.judges.flights import Flights
from ctxeval.sample import Sample

_NEXT_SENTENCE = re.compile(r"[.!?…]+[\"'”’»)\]]*\s+\S|[。！？]+[」』”’]?\s*[^\s」』”’]|\n\s*\S")


async def claims_of(
    sample: Sample, asker: Asker, cache: CellCache, *, split: bool
) -> tuple[Sequence[str], str]:
    """Get the claims of the reference, and "" or what to know of them.

    Args:
        sample: The sample.
        asker: Who asks the model.
        cache: Where claims are kept.
        split: Is it worth a call to split the reference?

    Raises:
        JudgeError: The endpoint gives no reply, for good.
    """
    if sample.reference_claims is not None:
        return sample.reference_claims, ""
    reference = (sample.reference or "").strip()
    if not split or not _NEXT_SENTENCE.search(reference):
        return (reference,), ""
    key = CellKeys(dict(asker.llm.identity), asker.prompts.version, "claims").of(reference)

    def look_up(missing: Sequence[str]) -> dict[str, tuple[Sequence[str], str]]:
        kept = cache.get_many(missing)
        return {key: (kept[key][-1]["claims"], kept[key][-1]["note"]) for key in kept if kept[key]}

    async def ask(_: Sequence[str]) -> dict[str, tuple[Sequence[str], str]]:
        claims, note = await asker.split(reference)
        if claims:
            of = question_hash(sample.user_input or "")
            cache.put_many([(key, {"claims": claims, "note": note, "of": of})])
        return {key: (claims, note)}

    return (await Flights.of(cache).gather({key: key}, look_up, ask))[key]
