"""The claims of a reference: given with it, the whole of it, or split by the model, once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxeval.judges.asking import Asker
from ctxeval.judges.cells import CellCache, CellKeys, Flights, question_hash
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
    while True:
        if kept := cache.get_many([key]).get(key):
            return kept[-1]["claims"], kept[-1]["note"]
        flights = Flights.of(cache)
        if future := flights.get(key):
            arrived = await flights.land(future)
        else:
            with flights.take({key: key}) as arriving:
                arrived = arriving[key] = await asker.split(reference)
            if arrived[0]:
                of = question_hash(sample.user_input or "")
                cache.put_many([(key, {"claims": arrived[0], "note": arrived[1], "of": of})])
        if arrived is not None:  # None: whoever asked was interrupted
            claims, note = arrived
            return claims, note
