"""One neutral record per score: what it says, where it belongs, and that it is the same again."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from export_records import LEAKS, RUN, TRACE, a_query, chunks, scored, traced, without_value

from ctxeval import QueryRecord, Retrieval, TraceSpan
from ctxeval.export import Score, scores_of


def by_name(scores: list[Score], stage: int | None = None) -> dict[str, Score]:
    return {one.name: one for one in scores if one.stage == stage and one.chunk_index is None}


def of_chunks(scores: list[Score], name: str, stage: int | None = None) -> list[Score]:
    return [one for one in scores if one.name == name and one.stage == stage]


def test_a_metric_and_its_judge_say_what_they_are() -> None:
    score = by_name(scores_of(traced(scored(a_query()))))["id_based_context_recall"]
    assert score.to_dict() == {
        "id": score.id,
        "name": "id_based_context_recall",
        "value": 1.0,
        "label": None,
        "explanation": "",
        "status": "scored",
        "kind": "code",
        "query_id": RUN.format(0),
        "run_id": RUN.format(0),
        "trace_id": TRACE,
        "span_id": f"{0xB:016x}",
        "stage": None,
        "sample_id": "s-1",
        "chunk_index": None,
        "chunk_id": None,
        "judge": "id",
        "version": "id_based_context_recall/1",
        "metadata": {"bounds": [1.0, 1.0], "chunks": {"c": "irrelevant", "a": "relevant"}},
    }
    assert json.loads(json.dumps(score.to_dict())) == score.to_dict()


def test_a_model_is_told_from_code() -> None:
    scores = scores_of(scored(a_query()))
    kinds = {name: one.kind for name, one in by_name(scores).items()}
    assert kinds == {
        "ndcg@10": "code",
        "id_based_context_recall": "code",
        "context_relevance": "model",
    }
    judge = by_name(scores)["context_relevance"].judge
    assert judge.startswith("llm(joint")
    assert '"model": "scripted-' in judge
    assert {one.kind for one in of_chunks(scores, "relevant_to_question[llm]")} == {"model"}


def test_verdicts_are_told_once_for_all_metrics_of_a_judge() -> None:
    scores = scores_of(scored(a_query(), ("ndcg@10", "hit_rate@5", "id_based_context_recall")))
    told = of_chunks(scores, "relevant[id]")
    assert [(one.chunk_index, one.chunk_id, one.value, one.label) for one in told] == [
        (0, "c", 0.0, "irrelevant"),
        (1, "a", 1.0, "relevant"),
    ]
    inner = of_chunks(scores, "relevant[id]", stage=1)
    assert [(one.chunk_id, one.label) for one in inner] == [
        ("a", "relevant"),
        ("b", "irrelevant"),
        ("c", "irrelevant"),
    ]


def test_judges_of_one_kind_keep_names_of_their_own() -> None:
    from ctxeval import NonLLMContextPrecision, NonLLMContextRecall

    metrics = [NonLLMContextPrecision(), NonLLMContextRecall("jaro", 0.9)]
    references = [{"user_input": a_query().question, "reference_contexts": ["The geese rest at a"]}]
    scores = scores_of(scored(a_query(), metrics, references))
    names = {one.name for one in scores if one.chunk_index is not None}
    assert names == {
        "relevant[text] text(levenshtein>=0.5)",
        "relevant[text] text(jaro>=0.9)",
    }


def test_each_stage_has_its_own_scores_and_place() -> None:
    scores = scores_of(traced(scored(a_query())))
    whole, inner = by_name(scores), by_name(scores, stage=1)
    assert inner["ndcg@10"].value == 1.0 != whole["ndcg@10"].value
    assert (inner["ndcg@10"].span_id, whole["ndcg@10"].span_id) == (f"{0xC:016x}", f"{0xB:016x}")
    assert (inner["ndcg@10"].run_id, whole["ndcg@10"].run_id) == (RUN.format(2), RUN.format(0))
    assert by_name(scores, stage=0) == {}  # the last stage's are the query's


def test_ids_are_the_same_again_and_all_different() -> None:
    record = scored(a_query())
    again = QueryRecord.from_dict(json.loads(json.dumps(record.to_dict())))
    ids = [one.id for one in scores_of(record)]
    assert ids == [one.id for one in scores_of(again)]
    assert len(set(ids)) == len(ids) == 12
    other = scored(a_query(RUN.format(9)), ("ndcg@10",))
    assert not {one.id for one in scores_of(other)} & set(ids)


def test_an_id_stays_where_a_value_changes() -> None:
    record = scored(a_query(), ("ndcg@10",))
    before = by_name(scores_of(record))["ndcg@10"]
    scored(record, ("ndcg@10",), [{"user_input": record.question, "reference_context_ids": ["x"]}])
    after = by_name(scores_of(record))["ndcg@10"]
    assert (before.id, before.value != after.value) == (after.id, True)


def test_without_a_value_there_is_none() -> None:
    scores = by_name(scores_of(without_value(scored(a_query()))))
    assert {(one.status, one.value, one.word) for one in scores.values()} == {
        ("failed", None, "failed"),
        ("undefined", None, "undefined"),
        ("skipped", None, "skipped"),
    }
    assert scores["ndcg@10"].explanation == "by script: failed"


def test_a_verdict_that_could_not_be_read_is_no_no() -> None:
    record = scored(a_query(), ("context_relevance",))
    verdicts = record.scores["context_relevance"].verdicts
    assert verdicts is not None
    unread = copy.copy(verdicts)
    unread._chunks = (replace(verdicts.chunks[0], value=None), *verdicts.chunks[1:])
    record.scores["context_relevance"].verdicts = unread
    first, second = of_chunks(scores_of(record), "relevant_to_question[llm]")
    assert (first.value, first.label, first.status) == (None, "unread", "failed")
    assert (second.value, second.label, second.status) == (1.0, "relevant", "scored")


def test_chunks_of_a_pool_are_told_where_they_were_retrieved() -> None:
    one = Retrieval("q", chunks(["a", "b"]), "left", order=0)
    other = Retrieval("q", chunks(["b", "c"]), "right", order=1)
    record = traced(scored(a_query(retrievals=[one, other]), ("id_based_context_recall",)))
    assert record.final is None
    pooled = [score for score in scores_of(record) if score.chunk_index is not None]
    places = [(score.chunk_id, score.stage, score.chunk_index) for score in pooled[:3]]
    assert places == [("a", 0, 0), ("b", 1, 0), ("c", 1, 1)]
    assert by_name(scores_of(record))["id_based_context_recall"].span_id == f"{0xA:016x}"


def test_chunks_of_a_prompt_are_told_where_they_were_retrieved() -> None:
    found = Retrieval("q", chunks(["a", "b", "c"]), "found", order=0)
    prompt = Retrieval("q", chunks(["c", "a"]), "prompt", "prompt", order=1, inputs=(0,))
    record = scored(a_query(retrievals=[found, prompt]), ("id_based_context_recall",))
    last = [score for score in scores_of(record) if score.chunk_index is not None][:2]
    assert [(one.chunk_id, one.stage, one.chunk_index) for one in last] == [
        ("c", 0, 2),
        ("a", 0, 0),
    ]


@pytest.mark.parametrize("inputs", [(), (0,)])
def test_a_prompts_score_is_of_the_retrieval_that_filled_it(inputs: tuple[int, ...]) -> None:
    found = Retrieval("q", chunks(["a", "b"]), "found", order=0)
    prompt = Retrieval("q", chunks(["a"]), "prompt", "prompt", order=1, inputs=inputs)
    record = traced(scored(a_query(retrievals=[found, prompt]), ("id_based_context_recall",)))
    prompt.traced = None
    assert record.final is prompt
    assert by_name(scores_of(record))["id_based_context_recall"].span_id == f"{0xB:016x}"


def test_a_query_that_nobody_traced_has_no_trace() -> None:
    assert {(one.trace_id, one.span_id) for one in scores_of(scored(a_query()))} == {(None, None)}


def test_where_a_stage_alone_was_traced_the_query_is_in_its_trace() -> None:
    record = scored(a_query())
    record.retrievals[0].traced = TraceSpan(TRACE, "b" * 16)
    assert {one.trace_id for one in by_name(scores_of(record)).values()} == {TRACE}


def test_a_query_without_retrieval_or_scores_has_no_scores() -> None:
    assert scores_of(a_query(retrievals=[])) == []


def test_records_carry_where_they_were_traced_through_json() -> None:
    record = traced(scored(a_query()))
    assert QueryRecord.from_dict(json.loads(json.dumps(record.to_dict()))) == record
    older: dict[str, Any] = record.to_dict()
    del older["traced"]
    for stage in older["retrievals"]:
        del stage["traced"], stage["started"], stage["run_id"]
    assert QueryRecord.from_dict(older).traced is None


def test_content_is_in_explanations_and_nowhere_else() -> None:
    record = without_value(traced(scored(a_query())))
    written = json.dumps([replace(one, explanation="").to_dict() for one in scores_of(record)])
    assert [text for text in LEAKS if text in written] == []


def test_importing_the_exporters_imports_no_product() -> None:
    code = (
        "import ctxeval.export, sys\n"
        "products = {'opentelemetry', 'phoenix', 'mlflow', 'langfuse', 'langsmith', 'httpx'}\n"
        "print(products & {name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("text", ["", "ü\ud800", "x" * 10_000])
def test_any_id_gives_ids(text: str) -> None:
    record = scored(a_query("q" + text), ("ndcg@10",))
    assert json.dumps([one.to_dict() for one in scores_of(record)], ensure_ascii=False).encode()
