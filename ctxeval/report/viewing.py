"""Make views of captured records, and of samples with their results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ctxeval.record.query import Chunk, QueryRecord, Retrieval
from ctxeval.report.said import JudgedBy, Results, Said, distinct, place_name
from ctxeval.report.view import (
    ChunkView,
    Found,
    Lost,
    MetricView,
    QueryView,
    StageView,
    Support,
    UnitView,
)
from ctxeval.sample import Sample
from ctxeval.verdicts import Verdict

_KINDS = {"id": "id", "text": "text", "span": "place", "llm": "claim"}
_LABELS = {kind: JudgedBy.signed("", name).label for name, kind in _KINDS.items()}


def view_of_record(record: QueryRecord) -> QueryView:
    """Make the view of a captured query.

    Args:
        record: The record; its scores may still be pending.
    """
    expected = record.reference or Sample()
    said = Said([record.scores, *(stage.scores for stage in record.retrievals)])
    stages = _stages(record.stages(), said, expected)
    return QueryView(
        record.id,
        record.question,
        record.answer,
        record.status,
        metric_views(record.scores),
        tuple(sorted(record.pending)),
        stages,
        _lost(_units(record.scores, expected, record.chunks()), stages),
        expected.reference,
        record.unreferenced,
    )


def view_of_sample(
    sample: Sample, results: Results, stages: Sequence[Retrieval] = (), id: str | None = None
) -> QueryView:
    """Make the view of a sample with its results.

    Args:
        sample: The sample.
        results: Its results, by the metric's name.
        stages: What was retrieved in between, where that is known.
        id: The query's id; None: the sample's key.
    """
    chunks = _chunks_of(sample)
    said = Said([results, *(stage.scores for stage in stages)])
    shown = _stages(stages, said, sample)
    if not stages and chunks is not None:
        only = Retrieval(sample.user_input or "", chunks)
        made = replace(_stage(only, results, said), latency=None)
        shown = _of_nothing([made], [results], sample)
    return QueryView(
        sample.key if id is None else id,
        sample.user_input or "",
        sample.response,
        "ok",
        metric_views(results),
        (),
        shown,
        _lost(_units(results, sample, chunks or ()), shown),
        sample.reference,
    )


def metric_views(results: Results) -> tuple[MetricView, ...]:
    """Make the views of results."""
    return tuple(
        MetricView(name, one.value, one.status, one.reason, one.bounds, one.expected)
        for name, one in results.items()
    )


def _chunks_of(sample: Sample) -> tuple[Chunk, ...] | None:
    """Make chunks of what a sample retrieved; None where it does not say."""
    texts, ids, spans = (
        sample.retrieved_contexts,
        sample.retrieved_context_ids,
        sample.retrieved_spans,
    )
    known = next((one for one in (texts, ids, spans) if one is not None), None)
    if known is None:
        return None
    return tuple(
        Chunk(
            rank,
            "" if ids is None else ids[rank],
            "",
            "" if texts is None else texts[rank],
            span=None if spans is None else spans[rank],
        )
        for rank in range(len(known))
    )


def _stages(stages: Sequence[Retrieval], said: Said, expected: Sample) -> tuple[StageView, ...]:
    place = {stage.order: n for n, stage in enumerate(stages)}
    made = []
    for n, stage in enumerate(stages):
        inner = [one.order for one in stages if one.parent == stage.order]
        sources = {place[order] for order in (*stage.inputs, *inner) if order in place}
        if not sources and stage.kind != "retrieve":  # it holds whatever came before
            sources = set(range(n))
        made.append(_stage(stage, stage.scores, said, tuple(sorted(sources))))
    return _of_nothing(made, [stage.scores for stage in stages], expected)


def _of_nothing(
    stages: Sequence[StageView], scores: Sequence[Results], expected: Sample
) -> tuple[StageView, ...]:
    """Say of stages that gave nothing that they hold nothing of what was expected.

    No judge was asked there: who would have been tell their results, and the other stages
    how much was expected by a model, which parts a reference only when it is asked.
    """
    known = {found.judge: found.expected for stage in stages for found in stage.found}
    counts = {kind: len(texts) for kind, texts in _expected(expected).items()}
    made = []
    for stage, results in zip(stages, scores, strict=True):
        if not (stage.chunks or stage.error):
            judges = dict.fromkeys(
                JudgedBy.signed(name, one.signature.partition(" ")[2])
                for name, one in results.items()
                if one.value == 0 and one.verdicts is None
            )
            units = {
                judge.label: known.get(judge.label, counts.get(_KINDS.get(judge.name, ""), 0))
                for judge in judges
            }
            found = tuple(Found(label, 0, n) for label, n in units.items() if n)
            stage = replace(stage, found=found)
        made.append(stage)
    return tuple(made)


def _stage(
    stage: Retrieval, scores: Results, said: Said, sources: tuple[int, ...] = ()
) -> StageView:
    chunks = tuple(
        ChunkView(
            rank,
            chunk.id,
            chunk.id_source,
            chunk.text,
            chunk.score,
            place_name(chunk.span),
            said.of(chunk),
        )
        for rank, chunk in enumerate(stage.chunks, start=1)
    )
    return StageView(
        stage.kind,
        stage.name,
        stage.query,
        stage.latency,
        stage.error,
        metric_views(stage.scores),
        chunks,
        tuple(_found(scores)),
        sources,
    )


def _found(scores: Results) -> Iterable[Found]:
    seen: set[str] = set()
    for metric, verdicts in distinct(scores):
        judge = JudgedBy.of(metric, verdicts)
        covered = verdicts.covered()
        if covered and judge.label not in seen:
            seen.add(judge.label)
            yield Found(judge.label, covered.count(True), len(covered), covered.count(None))


def _units(results: Results, expected: Sample, chunks: Sequence[Chunk]) -> tuple[UnitView, ...]:
    """Give what was expected with what was found of it, each kind once."""
    units: dict[str, tuple[UnitView, ...]] = {}
    for metric, verdicts in distinct(results):
        judge = JudgedBy.of(metric, verdicts)
        kind = _KINDS.get(judge.name, judge.name)
        if verdicts.units and kind not in units:
            units[kind] = tuple(_unit(kind, judge, unit, chunks) for unit in verdicts.units)
    # What no judge spoke of is shown all the same.
    nothing = not chunks and any(one.value == 0 for one in results.values())
    value, reason = (False, "nothing was retrieved") if nothing else (None, "not judged")
    for kind, texts in _expected(expected).items():
        label = _LABELS[kind] if nothing else ""
        unjudged = tuple(UnitView(kind, label, text, value, reason) for text in texts)
        units.setdefault(kind, unjudged)
    return tuple(unit for kind in units.values() for unit in kind)


def _lost(units: tuple[UnitView, ...], stages: Sequence[StageView]) -> tuple[UnitView, ...]:
    """Say of the missing units where they were last seen."""
    seen: dict[tuple[str, str], Lost] = {}
    for stage in stages:
        for chunk in reversed(stage.chunks):
            for verdict in chunk.verdicts:
                for unit in verdict.matched if verdict.value else ():
                    place = Lost(stage.kind, stage.name, chunk.rank, chunk.id)
                    seen[verdict.judge, unit] = place
    return tuple(
        replace(unit, lost=seen[unit.judge, unit.text])
        if unit.value is False and (unit.judge, unit.text) in seen
        else unit
        for unit in units
    )


def _unit(kind: str, judge: JudgedBy, unit: Verdict, chunks: Sequence[Chunk]) -> UnitView:
    supports = tuple(
        Support(rank + 1, chunks[rank].id) for rank in unit.matched if rank < len(chunks)
    )
    return UnitView(
        kind,
        judge.label,
        unit.text,
        unit.value,
        unit.reason,
        unit.similarity,
        supports,
        unit.votes,
        unit.probability,
        judge.threshold_for(unit.text),
    )


def _expected(sample: Sample) -> dict[str, Sequence[str]]:
    kinds: dict[str, Sequence[str]] = {
        "id": list(sample.reference_context_ids or ()),
        "text": sample.reference_contexts or (),
        "place": [place_name(span) for span in sample.reference_spans or ()],
        "claim": sample.reference_claims or (),
    }
    return {kind: texts for kind, texts in kinds.items() if texts}
