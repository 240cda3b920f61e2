"""One call of a metric by id, beside the bare set operation."""

from __future__ import annotations

import ctxeval
from benchmarks.measuring import cpu_per_call, report


def main() -> None:
    retrieved = [f"document-{n}" for n in range(10)]
    expected = ["document-3", "document-7", "document-99"]
    sample = ctxeval.Sample(retrieved_context_ids=retrieved, reference_context_ids=expected)
    metric = ctxeval.IDBasedContextRecall()

    def sets() -> float:
        wanted = set(map(str, expected))
        return len(wanted & set(map(str, retrieved))) / len(wanted)

    def by_keywords() -> object:
        return metric.score(retrieved_context_ids=retrieved, reference_context_ids=expected)

    assert by_keywords().value == metric.score(sample).value == sets()  # type: ignore[attr-defined]
    report("set operation", 1e6 * cpu_per_call(sets, 20_000), "µs")
    called = cpu_per_call(lambda: metric.score(sample), 20_000)
    report("IDBasedContextRecall().score(sample)", 1e6 * called, "µs", limit=10)
    called = cpu_per_call(by_keywords, 20_000)
    report("IDBasedContextRecall().score(fields)", 1e6 * called, "µs", limit=10)
