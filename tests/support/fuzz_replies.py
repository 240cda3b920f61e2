"""Coverage-guided fuzzing of the reader of replies: `python fuzz_replies.py -runs=N -seed=S`."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["ctxeval.judges.replies"]):
    from ctxeval.judges.replies import read_claims, read_verdicts


def read(data: bytes) -> None:
    given = atheris.FuzzedDataProvider(data)
    claims, shown = given.ConsumeIntInRange(0, 4), given.ConsumeIntInRange(1, 9)
    asked = sorted({given.ConsumeIntInRange(1, shown) for _ in range(3)})
    text = given.ConsumeUnicode(sys.maxsize)
    chunks, of_claims = read_verdicts(text, chunks=asked, claims=claims, shown=shown)
    assert list(chunks) == asked
    assert list(of_claims) == list(range(1, claims + 1))
    for reading in (*chunks.values(), *of_claims.values()):
        assert reading.value in (True, False, None)
        assert reading.value is not None or reading.reason
        assert all(1 <= number <= shown for number in reading.chunks)
    assert all(claim.strip() for claim in read_claims(text))


atheris.Setup(sys.argv, read)
atheris.Fuzz()
