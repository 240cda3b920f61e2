"""Many samples: every cell has a result, in order, whatever happens to others."""

import asyncio
import datetime

import pytest

pytest.importorskip("scipy")

import ctxeval
from ctxeval import (
    ContextRelevance,
    Evaluation,
    InvalidArgumentError,
    InvalidSampleError,
    QueryRecord,
    Retrieval,
    Sample,
    aevaluate,
    evaluate,
)
from ctxeval.judges.cells import MemoryCache
from ctxeval.testing import ScriptedLLM

IDS = ["id_based_context_recall", "ndcg@10"]


def by_id(id, retrieved, expected=("a", "b"), **fields):
    return {
        "id": id,
        "retrieved_context_ids": retrieved,
        "reference_context_ids": expected,
        **fields,
    }


SAMPLES = [
    by_id("1", ["a", "b"], metadata={"topic": "x"}),
    by_id("2", ["a", "c"], metadata={"topic": "y"}),
    by_id("3", ["c"], metadata={"topic": "x"}),
    by_id("4", ["c"], []),
    {"id": "5", "retrieved_context_ids": ["a"]},
]


def judged(n):
    return [
        {"id": str(i), "user_input": f"q{i}", "retrieved_contexts": ["useful", "not"]}
        for i in range(n)
    ]


def useful(question, text):
    return text == "useful"


def test_every_cell_has_a_result():
    evaluation = evaluate(SAMPLES, IDS)
    assert evaluation.ids == ["1", "2", "3", "4", "5"]
    statuses = [row.results["ndcg@10"].status for row in evaluation.rows]
    assert statuses == ["scored", "scored", "scored", "undefined", "skipped"]
    one = evaluation.summary()[0]
    assert (one.scored, one.undefined, one.failed, one.skipped) == (3, 1, 0, 1)
    assert one.interval.mean == 0.5
    assert one.coverage == 3 / 4
    assert one.bounds == (0.5, 0.5)


def test_one_bad_sample_costs_no_other():
    def odd(reference, chunk):
        if chunk == "explode":
            raise OSError("no")
        return float(chunk == "same")

    samples = [
        {"retrieved_contexts": [text], "reference_contexts": ["expected"]}
        for text in ("same", "explode", "same")
    ]
    metric = ctxeval.NonLLMContextRecall(odd, threshold=1)
    evaluation = evaluate(samples, [metric])
    assert [row.results[metric.name].status for row in evaluation.rows] == [
        "scored",
        "failed",
        "scored",
    ]
    assert evaluation.failures() == {(metric.name, "failed", "OSError: no"): 1}
    assert evaluation.summary()[0].bounds == (2 / 3, 1.0)


def test_a_model_that_fails_once_costs_one_sample():
    llm = ScriptedLLM(useful, replies=[ValueError("out of order")])
    evaluation = evaluate(judged(20), ["context_relevance"], llm=llm)
    one = evaluation.summary()[0]
    assert (one.scored, one.failed) == (19, 1)
    assert one.bounds == (pytest.approx(9.5 / 20), pytest.approx(10.5 / 20))


def test_rows_stand_in_order_whatever_finishes_first():
    class Hesitant(ScriptedLLM):
        async def complete(self, messages, schema, *, max_tokens=None):
            await asyncio.sleep(0.02 * (len(self.calls) % 3))
            return await super().complete(messages, schema, max_tokens=max_tokens)

    evaluation = evaluate(judged(30), ["context_relevance"], llm=Hesitant(useful))
    assert evaluation.ids == [str(n) for n in range(30)]


@pytest.mark.parametrize("concurrency", [1, 5])
def test_no_more_calls_are_under_way_than_allowed(concurrency):
    class Counting(ScriptedLLM):
        now = most = 0

        async def complete(self, messages, schema, *, max_tokens=None):
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.005)
            self.now -= 1
            return await super().complete(messages, schema, max_tokens=max_tokens)

    llm = Counting(useful)
    evaluate(judged(25), ["context_relevance"], llm=llm, concurrency=concurrency)
    assert llm.most == concurrency


def test_metrics_that_share_a_judging_count_its_cost_once():
    llm = ScriptedLLM(useful, supported={"One.": {"useful"}})
    samples = [{**one, "reference": "One. Two."} for one in judged(4)]
    metrics = ["context_precision", "context_recall"]
    evaluation = evaluate(samples, metrics, llm=llm)
    assert len(llm.calls) == 5  # the reference is split once
    assert evaluation.usage.requests == 5


def test_a_store_is_asked_before_the_model():
    llm, store = ScriptedLLM(useful), MemoryCache()
    metric = ContextRelevance(llm)
    evaluate(judged(5), [metric], store=store)
    assert len(store) == 10
    again = evaluate(judged(5), [metric], store=store)
    assert again.usage.requests == 0
    assert len(llm.calls) == 5
    assert metric.judge.cache is not store


def test_running_again_after_an_interruption_goes_on():
    store = MemoryCache()
    llm = ScriptedLLM(useful)
    evaluate(judged(8), ["context_relevance"], llm=llm, store=store)
    evaluate(judged(20), ["context_relevance"], llm=llm, store=store)
    assert len(llm.calls) == 20


class TestDryRun:
    SAMPLES = tuple(
        {**one, "reference": f"First {n % 5}. Second."} for n, one in enumerate(judged(10))
    )
    METRICS = ("context_precision", "context_recall", "context_relevance")

    def test_it_asks_nothing_and_counts_what_would_be_asked(self):
        llm = ScriptedLLM(useful)
        usage = evaluate(self.SAMPLES, self.METRICS, llm=llm, dry_run=True)
        assert llm.calls == []
        evaluate(self.SAMPLES, self.METRICS, llm=llm)
        assert usage.requests == len(llm.calls) == 5 + 10 + 10
        sent = sum(len(m["content"]) for call in llm.calls for m in call)
        assert usage.prompt_tokens == pytest.approx(sent / 4, rel=0.05)
        assert usage.completion_tokens > 0

    def test_what_is_kept_costs_nothing(self):
        llm, store = ScriptedLLM(useful), MemoryCache()
        evaluate(self.SAMPLES[:4], self.METRICS, llm=llm, store=store)
        known = len(llm.calls)
        usage = evaluate(self.SAMPLES, self.METRICS, llm=llm, store=store, dry_run=True)
        assert usage.requests == 25 - known
        assert len(store) == len(store.get_many(list(store._cells)))

    def test_without_a_model_nothing_is_asked(self):
        assert evaluate(SAMPLES, IDS, dry_run=True).requests == 0


async def test_in_a_running_loop_and_cancelled():
    evaluation = await aevaluate(SAMPLES, IDS)
    assert len(evaluation) == 5

    class Slow(ScriptedLLM):
        async def complete(self, messages, schema, *, max_tokens=None):
            await asyncio.sleep(0.05)
            return await super().complete(messages, schema, max_tokens=max_tokens)

    llm = Slow(useful)
    judging = aevaluate(judged(100), ["context_relevance"], llm=llm, concurrency=1)
    task = asyncio.create_task(judging)
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    asked = len(llm.calls)
    await asyncio.sleep(0.3)
    assert len(llm.calls) <= asked + 1


def test_from_a_generator_a_file_and_records(tmp_path):
    assert len(evaluate((sample for sample in SAMPLES), IDS)) == 5
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(f"{Sample(**sample).model_dump_json()}\n" for sample in SAMPLES))
    assert evaluate(path, IDS).summary() == evaluate(SAMPLES, IDS).summary()
    chunks = (ctxeval.Chunk(0, "a", "document_id", "text"),)
    record = QueryRecord("r1", "q", retrievals=[Retrieval("q", chunks)])
    record.reference = Sample(id="the question's", reference_context_ids=["a"])
    assert evaluate([record], IDS).values("ndcg@10") == {"the question's": 1.0}


def test_bad_rows_are_raised_or_told():
    samples = [SAMPLES[0], {"id": "bad", "contexts": []}, SAMPLES[1]]
    with pytest.raises(InvalidSampleError, match="contexts"):
        evaluate(samples, IDS)
    bad = []
    assert evaluate(samples, IDS, on_bad=bad.append).ids == ["1", "2"]
    assert len(bad) == 1
    assert "contexts" in str(bad[0])


def test_rows_go_to_a_file_and_come_back(tmp_path):
    path = tmp_path / "run.jsonl"
    streamed, kept = evaluate(SAMPLES, IDS, output=path), evaluate(SAMPLES, IDS)
    assert streamed.summary() == kept.summary()
    assert list(streamed.rows) == list(kept.rows) == list(Evaluation.load(path).rows)
    assert [*streamed.rows[:1], streamed.rows[-1]] == [kept.rows[0], *kept.rows[-1:]]
    assert repr(streamed.rows) == repr(kept.rows) == f"<{len(SAMPLES)} rows>"
    assert [row.id for row in streamed.worst("ndcg@10", 2)] == ["3", "2"]
    assert kept.save(tmp_path / "copy.jsonl").read_text() == path.read_text()


def test_metadata_that_json_lacks_is_written_as_text(tmp_path):
    sample = Sample(
        retrieved_context_ids=["a"],
        reference_context_ids=["a"],
        metadata={"day": datetime.date(2026, 1, 31)},
    )
    evaluate([sample], "auto", output=tmp_path / "run.jsonl")
    (row,) = Evaluation.load(tmp_path / "run.jsonl").rows
    assert row.sample.metadata == {"day": "2026-01-31"}


def test_half_a_surrogate_pair_does_not_break_a_run(tmp_path):
    sample = Sample(
        retrieved_contexts=["broken \ud83d text"], reference_contexts=["broken \ud83d text"]
    )
    evaluation = evaluate([sample], "auto", output=tmp_path / "run.jsonl")
    (row,) = evaluation.rows
    assert row.sample.retrieved_contexts == sample.retrieved_contexts


def test_bad_bytes_cost_one_row(tmp_path):
    line = b'{"retrieved_context_ids": ["a"], "reference_context_ids": ["a"], "response": "%s"}\n'
    (tmp_path / "samples.jsonl").write_bytes(line % b"1" + line % b"\xff" + line % b"3")
    bad = []
    evaluation = evaluate(tmp_path / "samples.jsonl", "auto", on_bad=bad.append)
    assert (len(evaluation), len(bad)) == (2, 1)
    assert "line 2: byte 0xff" in str(bad[0])


def test_a_run_does_not_replace_its_samples(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text('{"retrieved_context_ids": ["a"], "reference_context_ids": ["a"]}\n')
    before = path.read_text()
    with pytest.raises(InvalidArgumentError, match="is the file of the samples"):
        evaluate(path, "auto", output=path)
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("place", "message"), [("", "it is a directory"), ("no/run.jsonl", "does not exist")]
)
def test_an_output_that_cannot_be_written(tmp_path, place, message):
    with pytest.raises(InvalidArgumentError, match=message):
        evaluate([by_id("1", ["a"])], IDS, output=tmp_path / place)


def test_a_table_of_samples_with_different_metrics(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = {"id": "2", "retrieved_contexts": ["a text"], "reference_contexts": ["a text"]}
    run = evaluate([by_id("1", ["a"]), texts], "auto", output=tmp_path / "run.parquet")
    counts = {one.metric: (one.scored, one.skipped, one.coverage) for one in run.summary()}
    assert counts["non_llm_context_recall"] == (1, 1, 0.5)
    table = parquet.read_table(tmp_path / "run.parquet")
    assert table["non_llm_context_recall"].to_pylist() == [None, 1.0]
    assert table["id_based_context_recall_status"].to_pylist() == ["scored", None]


def test_a_run_that_was_broken_off_does_not_look_finished(tmp_path):
    path = tmp_path / "run.jsonl"
    with pytest.raises(InvalidSampleError):
        evaluate([SAMPLES[0], 7], IDS, output=path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", InvalidArgumentError, "is no run of ctxeval"),
        ('{"a": 1}\n', InvalidArgumentError, "is no run of ctxeval"),
        ('{"ctxeval_run": 99}\n', InvalidArgumentError, "has format 99"),
        ('{"ctxeval_run": 1}\n{\n', InvalidSampleError, "line 2"),
    ],
    ids=["empty", "another file", "a newer format", "a broken line"],
)
def test_files_that_are_no_runs(tmp_path, text, error, message):
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(error, match=message):
        Evaluation.load(path)


def test_groups_and_clusters():
    evaluation = evaluate(SAMPLES[:3], IDS)
    groups = evaluation.groups("topic")
    assert {name: group.ids for name, group in groups.items()} == {"x": ["1", "3"], "y": ["2"]}
    assert evaluation.summary(clusters="topic")[0].interval.method == "not estimable"


def test_tables():
    evaluation = evaluate(SAMPLES, IDS)
    frame = pytest.importorskip("pandas") and evaluation.to_pandas()
    assert list(frame["ndcg@10_status"]) == ["scored"] * 3 + ["undefined", "skipped"]
    assert frame["id_based_context_recall"][1] == 0.5
    table = pytest.importorskip("pyarrow") and evaluation.to_arrow()
    assert table.column("id").to_pylist() == ["1", "2", "3", "4", "5"]


def test_an_unknown_metric_names_the_near_ones():
    with pytest.raises(InvalidArgumentError, match="ndcg@10"):
        evaluate(SAMPLES, IDS).values("ndcg@1")


@pytest.mark.parametrize("concurrency", [0, -1, True, 1.5])
def test_an_impossible_concurrency(concurrency):
    with pytest.raises(InvalidArgumentError, match="concurrency"):
        evaluate(SAMPLES, IDS, concurrency=concurrency)


def test_what_a_judging_cost_counts_once_also_when_it_is_read_back(tmp_path):
    llm = ScriptedLLM(relevant={"x"})
    sample = {"user_input": "q", "reference": "r", "response": "s", "retrieved_contexts": ["x"]}
    evaluation = evaluate([sample], llm=llm)
    assert evaluation.usage.requests == len(llm.calls) == 3
    read = Evaluation.load(evaluation.save(tmp_path / "run.jsonl"))
    assert read.usage == evaluation.usage
    assert [row.to_dict() for row in read.rows] == [row.to_dict() for row in evaluation.rows]
