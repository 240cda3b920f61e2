"""Put every wording's question about every case to a model, and keep what it finds likely."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path

from benchmarks.judges.cases import Case
from benchmarks.judges.rows import Told
from benchmarks.judges.wordings import wordings
from ctxeval.judges.prompts import Prompts
from ctxeval.judges.yes_no import Wording, ask_chunk, ask_claim, yes_probability
from ctxeval.llm.protocol import FirstTokenLLM, Message


class Answers:
    """What a model said, kept in a file, so that a run that ends early goes on.

    Args:
        model: The model's name, and the file's.
        folder: Where the file is.
    """

    def __init__(self, model: str, folder: Path) -> None:
        """See the class."""
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{model}.jsonl"
        self._kept: dict[str, float | None] = {}
        if self._path.exists():
            for line in self._path.read_text("utf-8").splitlines():
                key, yes = json.loads(line)
                self._kept[key] = yes

    async def ask(self, llm: FirstTokenLLM, cases: Iterable[Case]) -> dict[str, list[Told]]:
        """Ask what is not kept, the questions about one text one after the other.

        Returns:
            By purpose and wording, one for each case.
        """
        jobs = [
            (wording.opening, case.labelled.pair.chunks, n, name, wording, case)
            for n, case in enumerate(cases)
            for name, wording in wordings(case.labelled.pair.purpose).items()
        ]
        found: dict[str, list[Told]] = defaultdict(list)
        with self._path.open("a", encoding="utf-8") as file:
            for _, _, _, name, wording, case in sorted(jobs, key=itemgetter(0, 1, 2)):
                key = _key(name, case)
                if key not in self._kept:
                    first = await llm.first_token(_messages(case, wording))
                    self._kept[key] = yes_probability(first.logprobs).yes
                    file.write(json.dumps([key, self._kept[key]]) + "\n")
                    file.flush()
                found[f"{case.labelled.pair.purpose}: {name}"].append(Told(case, self._kept[key]))
        return dict(found)


def _messages(case: Case, wording: Wording) -> list[Message]:
    pair = case.labelled.pair
    if pair.purpose == "support":
        return ask_claim(Prompts(), pair.target, pair.chunks, wording)
    return ask_chunk(Prompts(), pair.purpose, pair.question, pair.target, pair.chunks[0], wording)


def _key(name: str, case: Case) -> str:
    pair = case.labelled.pair
    return json.dumps([name, *pair.judged], ensure_ascii=False)
