"""What a recorder notices about ids and keys, and tells once: the commonest cause of zeros."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ctxeval.errors import short
from ctxeval.record.query import TEXT_HASH, QueryRecord

Key = str | Callable[[Any], Any] | None

MAX_KEYS = 12
"""How many of the keys that were there are told where the right one was not among them."""


class _Sought:
    """A key that the user named, and what was there in its place."""

    def __init__(self, option: str, key: Key, where: str) -> None:
        self._named = f"{option}={short(key)}" if isinstance(key, str) else option
        self._where = where
        self._missed = 0
        self._found = False
        self._there: dict[str, None] = {}

    def see(self, found: bool, there: Iterable[str]) -> None:
        """Note one place where it was looked for."""
        self._found = self._found or found
        if self._found:  # so the name is right
            self._there.clear()
            return
        self._missed += 1
        if len(self._there) < MAX_KEYS:
            self._there.update(dict.fromkeys(there))

    def line(self) -> str | None:
        """Say that it was never there; None where it was, or was not looked for."""
        if self._found or not self._missed:
            return None
        there = [repr(key) for key in self._there][:MAX_KEYS]
        held = f"they hold {', '.join(there)}" if there else "they hold no keys"
        return f"{self._named} found nothing in any of {self._missed} {self._where}: {held}"


class Advice:
    """Counts where ids came from, and looks where ids, questions and answers really stand.

    Args:
        id_key: Where the user says that a chunk's id stands.
        question_key: Where the question stands in an application's input.
        answer_key: Where the answer stands in its output.
    """

    def __init__(self, id_key: Key, question_key: Key, answer_key: Key) -> None:
        """See the class."""
        self.sources: Counter[str] = Counter()
        self._elsewhere: Counter[str] = Counter()
        self._id_key = id_key
        self._sought = {
            "id_key": _Sought("id_key", id_key, "chunks' metadata"),
            "question_key": _Sought("question_key", question_key, "inputs"),
            "answer_key": _Sought("answer_key", answer_key, "outputs"),
        }

    def seek(self, option: str, found: bool, there: Iterable[str]) -> None:
        """Note whether an input or output held what `question_key` or `answer_key` names.

        Args:
            option: Which of the two, or another option of an adapter's, which names runs.
            found: Was it there?
            there: The keys that were.
        """
        if option not in self._sought:
            self._sought[option] = _Sought(option, None, "queries' runs")
        self._sought[option].see(found, there)

    def see(self, record: QueryRecord) -> None:
        """Look at a record that has its reference."""
        chunks = [chunk for stage in record.retrievals for chunk in stage.chunks]
        self.sources.update(chunk.id_source for chunk in chunks)
        if self._id_key is not None:
            for chunk in chunks:
                self._sought["id_key"].see(self._by_key(chunk.id_source), chunk.metadata)
        reference = record.reference
        expected = set((reference and reference.reference_context_ids) or ())
        if not expected or any(chunk.id in expected for chunk in chunks):
            return
        places = {
            key
            for chunk in chunks
            for key, value in chunk.metadata.items()
            if isinstance(value, (str, int)) and str(value) in expected
        }
        self._elsewhere.update(places)

    def _by_key(self, source: str) -> bool:
        if not isinstance(self._id_key, str):
            return source == "id_key"
        return source.removeprefix("metadata:") == self._id_key.removeprefix("metadata:")

    def told(self) -> dict[str, str]:
        """Say what should be done, one sentence each, by what it is about."""
        lines = {}
        total, hashes = self.sources.total(), self.sources[TEXT_HASH]
        if hashes:
            lines["hashes"] = f"{hashes} of {total} ids are text hashes: set ids when you index"
        for key, n in self._elsewhere.most_common():
            lines[f"elsewhere {key}"] = (
                f"in {n} queries no expected id was captured, but the chunks' metadata {key!r} "
                f"holds some: give id_key={key!r}"
            )
        for option, sought in self._sought.items():
            if (line := sought.line()) is not None:
                lines[option] = line
        return lines
