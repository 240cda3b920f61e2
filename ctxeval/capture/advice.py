"""What a recorder notices about ids, and tells once: they are the commonest cause of zeros."""

from __future__ import annotations

from collections import Counter

from ctxeval.record.query import TEXT_HASH, QueryRecord


class IdAdvice:
    """Counts where ids came from, and looks where the expected ones really stand."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.sources: Counter[str] = Counter()
        self._elsewhere: Counter[str] = Counter()

    def see(self, record: QueryRecord) -> None:
        """Look at a record that has its reference."""
        chunks = [chunk for stage in record.retrievals for chunk in stage.chunks]
        self.sources.update(chunk.id_source for chunk in chunks)
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

    def lines(self) -> list[str]:
        """Say what should be done, one sentence each."""
        lines = []
        total, hashes = self.sources.total(), self.sources[TEXT_HASH]
        if hashes:
            lines.append(f"{hashes} of {total} ids are text hashes: set ids when you index")
        lines += [
            f"in {n} queries no expected id was captured, but the chunks' metadata {key!r} holds "
            f"some: give id_key={key!r}"
            for key, n in self._elsewhere.most_common()
        ]
        return lines
