"""The recorder scores behind the application's back, and loses nothing silently."""

import itertools
import os
import threading
from datetime import UTC, date, datetime

import pytest

from ctxeval import (
    Chunk,
    Evaluation,
    InvalidArgumentError,
    InvalidSampleError,
    QueryRecord,
    Recorder,
    References,
    Retrieval,
    Sample,
    Store,
    StoreError,
    Usage,
    compare,
    evaluate,
)
from ctxeval.capture.budget import Budget
from ctxeval.record.query import TEXT_HASH
from ctxeval.testing import ScriptedLLM

NUMBERS = itertools.count()


def chunk(rank, id, text="", source="document_id"):
    return Chunk(rank, id, source, text or f"text of {id}")


def record(question="q", ids=("a", "b"), **fields):
    chunks = tuple(chunk(rank, id) for rank, id in enumerate(ids))
    return QueryRecord(
        f"run-{next(NUMBERS)}", question, retrievals=[Retrieval(question, chunks)], **fields
    )


def taken(recorder, *records):
    for order, one in enumerate(records):
        recorder.submit(order, order, lambda one=one: one)
    assert recorder.flush(10)
    return recorder.records


def test_a_record_is_scored_against_its_reference():
    recorder = Recorder(references=[{"user_input": "Q ", "reference_context_ids": ["b"]}])
    (one,) = taken(recorder, record())
    assert one.scores["reciprocal_rank"].value == 0.5
    assert one.retrievals[0].scores["id_based_context_recall"].value == 1
    assert one.reference.reference_context_ids == ("b",)


def test_an_explicit_id_goes_before_the_question():
    references = [
        {"id": "1", "user_input": "q", "reference_context_ids": ["a"]},
        {"id": "2", "user_input": "q", "reference_context_ids": ["b"]},
    ]
    by_id, by_question = taken(
        Recorder(references=references), record(metadata={"ctxeval_id": "2"}), record()
    )
    assert by_id.scores["reciprocal_rank"].value == 0.5
    assert by_question.unreferenced == "2 references for this question, pass ctxeval_id"
    assert "reciprocal_rank" not in by_question.scores


def test_a_named_metric_without_a_reference_is_skipped_and_says_why():
    (one,) = taken(Recorder(["ndcg@10"]), record())
    assert one.scores["ndcg@10"].status == "skipped"
    assert "no references were given" in one.scores["ndcg@10"].reason


def test_records_come_in_the_order_of_asking():
    recorder = Recorder()
    for order in (2, 0, 1):
        recorder.submit(order, order, lambda order=order: record(str(order)))
    assert [one.question for one in recorder.records] == ["0", "1", "2"]


def test_a_model_judges_later():
    gate = threading.Event()

    def relevant(question, text):
        gate.wait(10)
        return text == "text of b"

    recorder = Recorder(["context_relevance"], llm=ScriptedLLM(relevant))
    recorder.submit(0, 0, record)
    (one,) = recorder.records
    assert one.pending == {"context_relevance"}
    assert one.scores == {}
    assert not recorder.flush(0.01)
    gate.set()
    assert recorder.flush(10)
    assert one.pending == frozenset()
    assert one.scores["context_relevance"].value == 0.5


def test_a_model_that_fails_is_a_failed_score():
    llm = ScriptedLLM(replies=[ValueError("out of order")])
    (one,) = taken(Recorder(["context_relevance"], llm=llm), record())
    assert one.scores["context_relevance"].status == "failed"
    assert "out of order" in one.scores["context_relevance"].reason


def test_the_answer_counts_only_of_queries_that_ended_well():
    llm = ScriptedLLM(lambda question, text: True)
    ok, cut = taken(
        Recorder(["context_utilization"], llm=llm),
        record(answer="x"),
        record(answer="x", status="incomplete"),
    )
    assert ok.scores["context_utilization"].value == 1
    assert cut.scores["context_utilization"].status == "skipped"


def test_ids_that_are_only_hashes_are_no_ids():
    chunks = (chunk(0, "5f", source=TEXT_HASH), chunk(1, "6f", source=TEXT_HASH))
    bare = QueryRecord("run", "q", retrievals=[Retrieval("q", chunks)])
    for metrics in ("auto", ["id_based_context_recall"]):
        recorder = Recorder(metrics, [{"user_input": "q", "reference_context_ids": ["a"]}])
        (one,) = taken(recorder, bare)
        assert one.scores["id_based_context_recall"].status == "skipped"
        assert "no ids were captured" in one.scores["id_based_context_recall"].reason


def test_hashes_count_where_one_is_expected():
    chunks = (chunk(0, "5f", source=TEXT_HASH),)
    bare = QueryRecord("run", "q", retrievals=[Retrieval("q", chunks)])
    recorder = Recorder(references=[{"user_input": "q", "reference_context_ids": ["5f"]}])
    assert taken(recorder, bare)[0].scores["id_based_context_recall"].value == 1


def test_a_chunk_without_an_id_is_noted():
    chunks = (chunk(0, "a"), chunk(1, "5f", source=TEXT_HASH))
    mixed = QueryRecord("run", "q", retrievals=[Retrieval("q", chunks)])
    recorder = Recorder(references=[{"user_input": "q", "reference_context_ids": ["a", "b"]}])
    result = taken(recorder, mixed)[0].scores["id_based_context_recall"]
    assert (result.value, result.status) == (0.5, "scored")
    assert result.reason == "1 of 2 chunks have no id but a hash of their text"


def test_several_retrievals_are_pooled_and_have_no_ranks():
    first = Retrieval("q", (chunk(0, "a"), chunk(1, "b")), order=0)
    second = Retrieval("q", (chunk(0, "b"), chunk(1, "c")), order=1)
    inner = Retrieval("q", (chunk(0, "z"),), order=2, parent=1)
    pooled = QueryRecord("run", "q", retrievals=[first, second, inner])
    assert [one.id for one in pooled.chunks()] == ["a", "b", "c"]
    assert [one.order for one in pooled.stages()] == [2, 0, 1]
    recorder = Recorder(references=[{"user_input": "q", "reference_context_ids": ["c"]}])
    (one,) = taken(recorder, pooled)
    assert one.scores["id_based_context_recall"].value == 1
    assert one.scores["reciprocal_rank"].status == "skipped"
    assert one.retrievals[1].scores["reciprocal_rank"].value == 0.5


def test_what_does_not_fit_is_dropped_and_counted(caplog):
    started, gate = threading.Event(), threading.Event()

    def slow():
        started.set()
        gate.wait(10)
        return record()

    recorder = Recorder(max_pending=2)
    recorder.submit(0, 0, slow)
    assert started.wait(10)
    for order in range(1, 6):
        recorder.submit(order, order, record)
    gate.set()
    assert len(recorder.records) == 3
    assert recorder.dropped == {"too many were waiting": 3}
    assert caplog.text.count("ctxeval leaves records out") == 1


def test_a_record_that_cannot_be_read_is_counted(caplog):
    def broken():
        raise KeyError("x")

    recorder = Recorder()
    recorder.submit(0, 0, broken)
    assert recorder.records == []
    assert recorder.dropped == {"it could not be read": 1}


def test_after_closing_records_are_counted_as_dropped(caplog):
    recorder = Recorder()
    assert recorder.close(10)
    recorder.submit(0, 0, record)
    assert recorder.records == []
    assert recorder.dropped == {"the recorder is closed": 1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_it_works_in_a_forked_child():
    recorder = Recorder(references=[{"user_input": "q", "reference_context_ids": ["b"]}])
    taken(recorder, record())
    pid = os.fork()
    if pid == 0:
        recorder.submit(1, 1, record)
        good = recorder.flush(10) and recorder.records[-1].scores["reciprocal_rank"].value == 0.5
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_record_becomes_ground_truth():
    sample = record("Who?").as_reference(["b", 7])
    assert sample == Sample(user_input="Who?", reference_context_ids=["b", "7"])
    assert References([sample]).lookup("who?").sample is sample


@pytest.mark.parametrize("max_pending", [0, -1, True, 1.5, "7"])
def test_an_impossible_queue(max_pending):
    with pytest.raises(InvalidArgumentError, match="max_pending"):
        Recorder(max_pending=max_pending)


class TestReferences:
    def test_equal_ones_merge(self):
        one = {"user_input": "q", "reference_context_ids": ["a"]}
        assert References([one, {**one, "user_input": " Q "}]).lookup("q").sample is not None

    def test_different_ones_for_a_question_are_refused_when_strict(self):
        samples = [{"user_input": "q", "reference": "x"}, {"user_input": "q", "reference": "y"}]
        assert References(samples).lookup("q").sample is None
        with pytest.raises(InvalidArgumentError, match="2 different ones for 'q'"):
            References(samples, strict=True)

    def test_the_first_known_form_of_the_question_counts(self):
        references = References([{"user_input": "condensed", "reference": "x"}])
        assert references.lookup("as typed", "condensed").sample.reference == "x"

    def test_an_unknown_id_is_not_replaced_by_the_question(self):
        found = References([{"user_input": "q", "reference": "x"}]).lookup("q", id="7")
        assert found == (None, "no reference has the id '7'")

    def test_one_id_with_two_meanings(self):
        with pytest.raises(
            InvalidArgumentError, match=r"references\[1\]: id 'a' stands there twice"
        ):
            References([{"id": "a", "reference": "x"}, {"id": "a", "reference": "y"}])

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ([{"reference": "x"}], r"references\[0\]: it has neither id nor user_input"),
            ([{"question": "q"}], r"references\[0\]: unknown field 'question'"),
            ([7], r"references\[0\]: 7 \(int\) is no sample"),
        ],
    )
    def test_bad_ones(self, given, message):
        with pytest.raises(InvalidSampleError, match=message):
            References(given)

    @pytest.mark.parametrize("given", ["a text", {"user_input": "q"}, 7])
    def test_no_list(self, given):
        with pytest.raises(InvalidArgumentError, match="is no list"):
            References(given)

    def test_from_a_file(self, tmp_path):
        path = tmp_path / "references.jsonl"
        path.write_text('{"user_input": "q", "reference": "x"}\n\n{"user_input": "r"}\n')
        assert len(list(References.of(path))) == 2
        assert len(list(References.of(str(path)))) == 2

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("{", "line 2: no JSON"),
            ("[1]", r"line 2: \[1\] is no JSON object"),
            ('{"user_input": "q", "reference_context_ids": "a"}', "line 2: reference_context_ids"),
        ],
    )
    def test_a_bad_line_is_named(self, tmp_path, line, message):
        path = tmp_path / "references.jsonl"
        path.write_text('{"user_input": "q"}\n' + line + "\n")
        with pytest.raises(InvalidSampleError, match=message):
            References.from_jsonl(path)


class TestMetadata:
    def test_what_came_along_goes_before_the_references(self):
        recorder = Recorder(references=[{"user_input": "q", "reference_context_ids": ["a"]}])
        along = {"ctxeval_reference_ids": ["b"], "ctxeval_reference": "x"}
        (one,) = taken(recorder, record(metadata=along))
        assert one.reference == Sample(reference_context_ids=["b"], reference="x")
        assert one.scores["reciprocal_rank"].value == 0.5

    def test_what_is_no_reference_is_said(self):
        (one,) = taken(Recorder(["ndcg"]), record(metadata={"ctxeval_reference_ids": "b"}))
        assert "reference_context_ids: 'b' is one string" in one.scores["ndcg"].reason


class TestSampling:
    def test_the_share_is_kept_and_the_rest_counted(self):
        recorder = Recorder(sample_rate=0.5)
        records = taken(recorder, *(record() for _ in range(400)))
        assert 140 <= len(records) <= 260
        assert recorder.dropped == {"not sampled": 400 - len(records)}

    def test_the_same_queries_are_kept_each_time(self):
        kept = [
            {one.question for one in taken(Recorder(sample_rate=0.3), *map(record, "abcdefghij"))}
            for _ in range(2)
        ]
        assert kept[0] == kept[1]

    @pytest.mark.parametrize("rate", [-0.1, 1.1, "1", True])
    def test_an_impossible_rate(self, rate):
        with pytest.raises(InvalidArgumentError, match="sample_rate"):
            Recorder(sample_rate=rate)


class TestBudget:
    def test_requests_a_minute(self):
        now = [0.0]
        budget = Budget(3, None, clock=lambda: now[0])
        assert budget.admit(2) == ""
        assert budget.admit(2) == "the budget of 3 requests a minute is spent"
        budget.settle(2, [Usage(requests=1)])
        assert budget.admit(2) == ""
        budget.settle(2, [Usage(requests=2)])
        assert budget.admit(1)
        now[0] = 60.0
        assert budget.admit(3) == ""

    def test_tokens_a_day(self):
        day = [date(2026, 1, 1)]
        budget = Budget(None, 100, today=lambda: day[0])
        assert budget.admit(1) == ""
        budget.settle(1, [Usage(1, prompt_tokens=60, completion_tokens=40)])
        assert budget.admit(1) == "the budget of 100 tokens a day is spent"
        day[0] = date(2026, 1, 2)
        assert budget.admit(1) == ""

    def test_a_record_that_takes_anothers_place_is_not_judged_again(self):
        llm = ScriptedLLM(relevant={"text of a"})
        recorder = Recorder("context_relevance", llm=llm, max_requests_per_minute=1)
        (first,) = taken(recorder, record(status="incomplete"))
        second = record(answer="A.")
        second.id = first.id
        (kept,) = taken(recorder, second)
        assert kept is second
        assert kept.scores["context_relevance"].value == 0.5
        assert not kept.pending
        assert not recorder.dropped
        assert len(llm.calls) == 1

    def test_it_gets_what_the_other_one_still_waits_for(self):
        go = threading.Event()
        llm = ScriptedLLM(relevant=lambda question, chunk: go.wait(10) and chunk == "text of a")
        metrics = ["context_relevance", "context_utilization"]
        recorder = Recorder(metrics, llm=llm, max_requests_per_minute=2)
        first, second = record(status="incomplete"), record(answer="A.")
        second.id = first.id
        for one in (first, second):
            recorder.submit(0, 0, lambda one=one: one)
        assert recorder.records == [second]
        assert second.pending == set(metrics)
        go.set()
        assert recorder.flush(10)
        assert {name: one.value for name, one in second.scores.items()} == {
            "context_relevance": 0.5,
            "context_utilization": 1.0,
        }
        assert not recorder.dropped
        assert len(llm.calls) == 2

    def test_other_chunks_are_judged_again(self):
        llm = ScriptedLLM(relevant={"text of a"})
        recorder = Recorder("context_relevance", llm=llm)
        (first,) = taken(recorder, record(ids=("a", "b")))
        second = record(ids=("b",))
        second.id = first.id
        (kept,) = taken(recorder, second)
        assert kept.scores["context_relevance"].value == 0

    def test_what_is_over_budget_is_skipped_and_counted(self, caplog):
        llm = ScriptedLLM(lambda question, text: True)
        recorder = Recorder(["context_relevance"], llm=llm, max_tokens_per_day=1)
        taken(recorder, record("q1"))
        _, over = taken(recorder, record("q1"), record("q2"))[-2:]
        assert over.scores["context_relevance"].status == "skipped"
        assert recorder.dropped["the budget of 1 tokens a day is spent"] >= 1
        assert len(llm.calls) == 1


def test_only_the_newest_records_are_kept():
    recorder = Recorder(max_records=3)
    kept = taken(recorder, *(record(str(n)) for n in range(5)))
    assert [one.question for one in kept] == ["2", "3", "4"]
    assert recorder.dropped == {"more than max_records": 2}


def test_a_record_takes_the_place_of_an_earlier_one_with_its_id():
    recorder = Recorder()
    for answer in (None, "A"):
        recorder.submit(0, 0, lambda answer=answer: QueryRecord("same", "q", answer=answer))
    assert [one.answer for one in recorder.records] == ["A"]


def test_a_record_is_scored_again_against_another_expectation():
    recorder = Recorder()
    (one,) = taken(recorder, record())
    assert one.scores == {}
    recorder.rescore(one, {"reference_context_ids": ["b"]})
    assert one.scores["reciprocal_rank"].value == 0.5


def test_advice_is_logged_once(caplog):
    chunks = (Chunk(0, "5f", TEXT_HASH, "text", metadata={"source": "s1"}),)
    recorder = Recorder(references=[{"user_input": "q", "reference_context_ids": ["s1"]}])
    taken(recorder, *(QueryRecord(str(n), "q", retrievals=[Retrieval("q", chunks)]) for n in "ab"))
    assert recorder.advice == [
        "2 of 2 ids are text hashes: set ids when you index",
        "in 2 queries no expected id was captured, but the chunks' metadata 'source' holds some: "
        "give id_key='source'",
    ]
    assert recorder.id_sources == {"text_hash": 2}
    assert caplog.text.count("text hashes") == 1
    assert caplog.text.count("id_key='source'") == 1


def test_it_says_once_that_nothing_can_be_scored(caplog):
    taken(Recorder(), record("q1"), record("q2"))
    assert caplog.text.count("nothing can be scored of 'q1': no references were given") == 1
    assert "'q2'" not in caplog.text


def test_a_data_frame():
    pytest.importorskip("pandas")
    recorder = Recorder(references=[{"user_input": "q", "reference_context_ids": ["b"]}])
    taken(recorder, record(), record("other"))
    frame = recorder.to_pandas()
    assert list(frame["question"]) == ["q", "other"]
    assert list(frame["retrieved_context_ids"]) == [["a", "b"], ["a", "b"]]
    assert frame["reciprocal_rank"][0] == 0.5
    assert frame["reciprocal_rank_status"][0] == "scored"
    assert frame["reciprocal_rank"].isna()[1]


def test_the_records_as_an_evaluation():
    pytest.importorskip("scipy")
    recorder = Recorder(references=[{"user_input": "q", "reference_context_ids": ["b"]}])
    taken(recorder, record(), record("other"))
    evaluation = recorder.evaluation()
    assert len(evaluation) == 2
    assert list(evaluation.values("reciprocal_rank").values()) == [0.5]
    assert evaluation.summary()[0].scored == 1


def test_two_captures_of_the_same_questions_are_compared():
    pytest.importorskip("scipy")
    references = [
        {"user_input": "q", "reference_context_ids": ["b"]},
        {"id": "named", "user_input": "r", "reference_context_ids": ["b"]},
    ]

    def captured(ids):
        recorder = Recorder("reciprocal_rank", references)
        taken(recorder, *(record(question, ids) for question in ("q", "r", "q")))
        return recorder

    before, now = captured(["a", "b"]), captured(["b", "a"])
    change = compare(before.evaluation(), now.evaluation())["reciprocal_rank"]
    assert (change.pairs, change.baseline, change.candidate) == (3, 0.5, 1.0)
    assert "named" in now.evaluation().ids
    assert evaluate(now.records, ["reciprocal_rank"]).ids == now.evaluation().ids


def test_the_stages_are_saved_with_an_evaluation(tmp_path):
    pytest.importorskip("scipy")
    found, kept = (chunk(0, "a"), chunk(1, "b")), (chunk(0, "b"),)
    stages = [
        Retrieval("q", found),
        Retrieval("q", kept, "cut", "rerank", order=1, inputs=(0,)),
    ]
    recorder = Recorder(references=[{"user_input": "q", "reference_context_ids": ["b"]}])
    taken(recorder, QueryRecord("1", "q", retrievals=stages))
    saved = recorder.evaluation().save(tmp_path / "run.jsonl")
    (row,) = Evaluation.load(saved).rows
    assert row.stages == tuple(recorder.records[0].stages())
    assert [one.scores["id_based_context_precision"].value for one in row.stages] == [0.5, 1]


class TestStore:
    @pytest.fixture
    def path(self, tmp_path):
        pytest.importorskip("sqlalchemy")
        return tmp_path / "ctxeval.db"

    def test_records_are_kept_with_their_scores(self, path):
        llm = ScriptedLLM(lambda question, text: text == "text of b")
        references = [{"user_input": "q", "reference_context_ids": ["b"]}]
        recorder = Recorder(references=references, llm=llm, store=path)
        taken(recorder, *(record() for _ in range(70)))
        kept = list(Store.of(path).records())
        assert {one.id for one in kept} == {one.id for one in recorder.records}
        for one in kept:
            assert one.scores["reciprocal_rank"].value == 0.5
            assert one.scores["context_relevance"].value == 0.5

    def test_a_judgement_is_never_paid_for_twice(self, path):
        class Named(ScriptedLLM):
            identity = {"model": "the same"}  # noqa: RUF012  # a constant of the fake

        for asked in (1, 0):
            llm = Named(lambda question, text: True)
            taken(Recorder(["context_relevance"], llm=llm, store=path), record())
            assert len(llm.calls) == asked
            Store.of(path).close()

    def test_processes_share_the_tokens_of_a_day(self, path):
        llm = ScriptedLLM(lambda question, text: True)
        options = {"llm": llm, "store": path, "max_tokens_per_day": 1}
        taken(Recorder(["context_relevance"], **options), record("q1"))
        (second,) = taken(Recorder(["context_relevance"], **options), record("q2"))
        assert second.scores["context_relevance"].status == "skipped"

    def test_a_store_that_fails_costs_no_scores(self, path, caplog):
        path.write_text("this is no database, and long enough to be looked at as one" * 20)
        recorder = Recorder(
            references=[{"user_input": "q", "reference_context_ids": ["b"]}], store=path
        )
        (one,) = taken(recorder, record())
        assert one.scores["reciprocal_rank"].value == 0.5
        assert recorder.dropped == {"the store failed": 1}
        assert caplog.text.count("records could not be stored") == 1


def test_tokens_that_a_store_can_t_count_stop_nobody_and_are_counted_later(tmp_path):
    pytest.importorskip("sqlalchemy")

    class Failing(Store):
        fails = True

        def add_tokens(self, day, tokens):
            if self.fails:
                raise StoreError("the disk is full")
            return super().add_tokens(day, tokens)

        def tokens_of(self, day):
            if self.fails:
                raise StoreError("the disk is full")
            return super().tokens_of(day)

    store = Failing(tmp_path / "store.db")
    llm = ScriptedLLM(lambda question, text: True)
    recorder = Recorder(["context_relevance"], llm=llm, store=store, max_tokens_per_day=10**6)
    for question in ("q1", "q2"):
        recorder.submit(0, 0, lambda question=question: record(question))
    assert recorder.flush(20)
    assert [one.scores["context_relevance"].value for one in recorder.records] == [1, 1]
    Failing.fails = False
    recorder.submit(0, 0, lambda: record("q3"))
    assert recorder.flush(20)
    assert len(llm.calls) == 3
    spent = sum(one.scores["context_relevance"].usage.prompt_tokens for one in recorder.records)
    assert store.tokens_of(datetime.now(UTC).date()) > spent
    store.close()


def test_a_record_without_a_time_is_of_now():
    """What sends it would date it 1970, or give it another time with each try."""
    before = datetime.now(UTC)
    recorder = Recorder(["hit_rate@1"])
    recorder.submit(0, "1", lambda: QueryRecord("1", "q"))
    assert recorder.flush(10)
    [record] = recorder.records
    assert before <= record.started <= datetime.now(UTC)
    assert record.ended is None
