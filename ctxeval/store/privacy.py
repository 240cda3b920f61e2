"""What is left of texts before anything is stored: redacted, or only their hashes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ctxeval.errors import StoreError, short
from ctxeval.judges.cells import Finding, text_hash
from ctxeval.record.query import Chunk, QueryRecord, Retrieval
from ctxeval.result import MetricResult
from ctxeval.sample import Sample
from ctxeval.verdicts import Verdict, Verdicts

Redact = Callable[[str], str]
Seen = dict[int, Any]

NO_TEXTS = {
    *("id", "key", "run", "metric", "status", "signature", "judge", "id_source", "kind"),
    *("name", "span"),
    *("retrieved_context_ids", "reference_context_ids", "retrieved_spans", "reference_spans"),
}
"""The names of fields of plain data that hold ids and names, not texts."""


@dataclass(frozen=True, slots=True)
class Privacy:
    """What a store does to texts before it keeps them.

    Attributes:
        store_text: Keep texts, rather than `#` and their hash?
        redact: What a text is turned into before anything else.
    """

    store_text: bool
    redact: Redact | None

    @property
    def idle(self) -> bool:
        """Are texts kept as they are?"""
        return self.store_text and self.redact is None

    def redacted(self, text: str) -> str:
        """Redact a text.

        Raises:
            StoreError: What redacts gave no string.
        """
        if self.redact is None or not text.strip():
            return text
        redacted = self.redact(text)
        if not isinstance(redacted, str):
            raise StoreError(f"redact gave {short(redacted)}: let it return the redacted string")
        return redacted if redacted.strip() else "[redacted]"  # a blank text means another thing

    def text(self, text: str) -> str:
        """Give what is kept of a text; of a blank one, itself."""
        text = self.redacted(text)
        return text if self.store_text or not text.strip() else f"#{text_hash(text)}"

    def remark(self, text: str) -> str:
        """Give what is kept of a reason or an error, which may quote texts."""
        return self.redacted(text) if self.store_text else ""

    def data(self, value: Any) -> Any:
        """Give what is kept of metadata."""
        return self.meta(value) if self.store_text else {}

    def meta(self, value: Any) -> Any:
        """Give what is kept of what an evaluation says of itself."""
        return value if self.redact is None else _each(value, self.redacted)

    def row(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give what is kept of a run's row."""
        return row if self.idle else dict(self._row(row))

    def _row(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        kept: dict[str, Any] = {}
        for name, value in row.items():
            if name in NO_TEXTS:
                kept[name] = value
            elif name == "metadata":
                kept[name] = self.data(value)
            elif name == "reason":
                kept[name] = self.remark(value) if isinstance(value, str) else value
            elif name == "verdicts" and isinstance(value, str):
                kept[name] = value  # the name of the metric that has them
            elif name == "verdicts" and isinstance(value, Mapping):
                known = value.get("judge") in ("id", "span")
                kept[name] = value if known else self._row(value)
            elif isinstance(value, Mapping):
                kept[name] = self._row(value)
            else:
                kept[name] = _each(value, self.text, self._row)
        return kept

    def finding(self, finding: Finding) -> Finding | None:
        """Give what is kept of a finding; None where that would be of no use.

        Claims that are not kept word for word are another reference's claims.
        """
        if self.idle:
            return finding
        if "claims" in finding:
            kept = [self.text(claim) for claim in finding["claims"]]
            return finding if kept == list(finding["claims"]) else None
        return {**finding, "reason": self.remark(finding.get("reason", ""))}

    def record(self, record: QueryRecord) -> QueryRecord:
        """Give what is kept of a record."""
        if self.idle:
            return record
        seen: Seen = {}
        return replace(
            record,
            question=self.text(record.question),
            answer=None if record.answer is None else self.text(record.answer),
            retrievals=[self._retrieval(one, seen) for one in record.retrievals],
            scores=self._scores(record.scores, seen),
            metadata=self.data(record.metadata),
            reference=None if record.reference is None else self.sample(record.reference),
            unreferenced=self.text(record.unreferenced),
        )

    def _retrieval(self, one: Retrieval, seen: Seen) -> Retrieval:
        return replace(
            one,
            query=self.text(one.query),
            chunks=tuple(self._chunk(chunk) for chunk in one.chunks),
            error=self.text(one.error),
            scores=self._scores(one.scores, seen),
        )

    def _chunk(self, chunk: Chunk) -> Chunk:
        return replace(chunk, text=self.text(chunk.text), metadata=self.data(chunk.metadata))

    def _scores(self, scores: Mapping[str, MetricResult], seen: Seen) -> dict[str, MetricResult]:
        """What scores share, they go on sharing."""
        return {name: self._result(result, seen) for name, result in scores.items()}

    def _result(self, result: MetricResult, seen: Seen) -> MetricResult:
        if id(result) not in seen:
            verdicts = result.verdicts
            if verdicts is not None and id(verdicts) not in seen:
                seen[id(verdicts)] = self._verdicts(verdicts)
            seen[id(result)] = replace(
                result,
                reason=self.remark(result.reason),
                verdicts=None if verdicts is None else seen[id(verdicts)],
            )
        made: MetricResult = seen[id(result)]
        return made

    def _verdicts(self, verdicts: Verdicts) -> Verdicts:
        if verdicts.judge in ("id", "span"):  # they name ids and places, not texts
            return verdicts
        return Verdicts(
            [self._verdict(one) for one in verdicts.chunks],
            [self._verdict(one) for one in verdicts.units],
            judge=verdicts.judge,
            usage=verdicts.usage,
            together=verdicts.together,
            note=self.remark(verdicts.note),
        )

    def _verdict(self, verdict: Verdict) -> Verdict:
        return replace(verdict, text=self.text(verdict.text), reason=self.remark(verdict.reason))

    def sample(self, sample: Sample) -> Sample:
        """Give what is kept of what is expected."""
        return sample.model_copy(update=self._row(dict(sample)))


def _each(
    value: Any, text: Callable[[str], str], mapping: Callable[[Any], Any] | None = None
) -> Any:
    """Apply a function to each string inside of plain data, keys aside."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        if mapping is not None:
            return mapping(value)
        return {key: _each(item, text) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_each(item, text, mapping) for item in value]
    return value
