"""What is shown of a query, made by hand and compared by hand."""

import html

import pytest

import ctxeval
from ctxeval import Chunk, QueryRecord, Recorder, References, Retrieval, Sample
from ctxeval.report.view import Found, Lost, QueryView, Support, UnitView, VerdictView
from ctxeval.report.viewing import view_of_record, view_of_sample
from ctxeval.report.wording import title
from ctxeval.testing import ScriptedLLM


def chunks(*ids):
    return tuple(Chunk(rank, id, "document_id", f"text {id}") for rank, id in enumerate(ids))


def record(**more):
    return QueryRecord(
        "q1",
        "Where?",
        "There.",
        retrievals=[
            Retrieval("where", chunks("a", "b", "c"), "dense", order=0, parent=1, latency=0.25),
            Retrieval("Where?", chunks("c", "a"), "cross", "rerank", order=1, inputs=(0,)),
        ],
        **more,
    )


def scored(references, llm=None, metrics="auto"):
    recorder = Recorder(metrics, references, llm=llm)
    recorder.submit(0, 0, record)
    recorder.flush()
    return view_of_record(recorder.records[0])


EXPECTED = References([{"user_input": "Where?", "reference_context_ids": ["b", "c"]}])


def test_each_stage_shows_its_chunks_from_rank_1_with_a_verdict():
    inner, outer = scored(EXPECTED).stages
    assert (inner.kind, inner.name, inner.query, inner.latency) == (
        "retrieve",
        "dense",
        "where",
        0.25,
    )
    assert [(one.rank, one.id) for one in inner.chunks] == [(1, "a"), (2, "b"), (3, "c")]
    assert [one.verdict("id").value for one in inner.chunks] == [False, True, True]
    assert [one.verdict("id").value for one in outer.chunks] == [True, False]
    assert inner.chunks[0].verdict("text") is None


def test_a_stage_tells_how_much_of_what_was_expected_it_holds():
    inner, outer = scored(EXPECTED).stages
    assert inner.found == (Found("id", 2, 2),)
    assert outer.found == (Found("id", 1, 2),)


def test_units_name_the_chunks_that_cover_them_or_where_they_were_lost():
    missing = UnitView(
        "id",
        "id",
        "b",
        False,
        "no chunk with this id was retrieved",
        lost=Lost("retrieve", "dense", 2, "b"),
    )
    found = UnitView("id", "id", "c", True, chunks=(Support(1, "c"),))
    assert scored(EXPECTED).units == (missing, found)


def test_what_a_model_says_of_a_text_is_shown_on_earlier_stages_too():
    llm = ScriptedLLM(relevant={"text c"}, supported={"It is there.": {"text c"}})
    references = [{"user_input": "Where?", "reference": "It is there."}]
    inner, outer = scored(references, llm).stages
    judge = "model, for the reference"
    said = VerdictView(judge, True, ("It is there.",), reason="by script")
    assert outer.chunks[0].verdict(judge) == said
    assert inner.chunks[2].verdict(judge) == said
    assert inner.chunks[1].verdict(judge) is None  # "b" never came so far as to be judged


def test_the_purposes_of_a_model_are_told_apart():
    llm = ScriptedLLM(relevant={"text c"})
    references = [{"user_input": "Where?", "reference": "It is there."}]
    labels = [one.judge for one in scored(references, llm).stages[1].chunks[0].verdicts]
    assert labels == [
        "model, for the reference",
        "model, for the question",
        "model, for the answer",
    ]


def test_a_sample_without_stages_shows_one():
    sample = Sample(user_input="q", retrieved_context_ids=[1, 2], reference_context_ids=[2])
    view = view_of_sample(sample, ctxeval.score(sample))
    (stage,) = view.stages
    assert [(one.id, one.text, one.verdict("id").value) for one in stage.chunks] == [
        ("1", "", False),
        ("2", "", True),
    ]
    assert stage.found == (Found("id", 1, 1),)
    assert stage.latency is None


def test_a_sample_is_shown_alike_after_a_way_through_json():
    llm = ScriptedLLM(relevant={"b"}, supported={"One.": {"b"}})
    sample = Sample(
        user_input="q",
        reference="One. Two.",
        retrieved_contexts=["a", "b"],
        reference_contexts=["a", "something else"],
    )
    results = ctxeval.score(sample, "auto", llm)
    read = {n: ctxeval.MetricResult.from_json(one.to_json()) for n, one in results.items()}
    assert view_of_sample(sample, read) == view_of_sample(sample, results)


@pytest.mark.parametrize(
    ("sample", "unit"),
    [
        (
            {"retrieved_context_ids": [], "reference_context_ids": ["a"]},
            UnitView("id", "id", "a", False, "nothing was retrieved"),
        ),
        (
            {
                "retrieved_contexts": ["x"],
                "reference_contexts": ["x"],
                "reference_context_ids": ["a"],
            },
            UnitView("id", "", "a", None, "not judged"),
        ),
    ],
    ids=["nothing retrieved", "not judged"],
)
def test_what_was_expected_is_shown_though_no_judge_spoke(sample, unit):
    sample = Sample(user_input="q", **sample)
    assert unit in view_of_sample(sample, ctxeval.score(sample)).units


def test_two_judges_by_text_are_told_apart():
    sample = Sample(retrieved_contexts=["abcd"], reference_contexts=["abxx"])
    strict, loose = (
        ctxeval.RecallAtK(5, judge=ctxeval.TextJudge(threshold=threshold))
        for threshold in (0.9, 0.5)
    )
    results = {"strict": strict.score(sample), "loose": loose.score(sample)}
    (chunk,) = view_of_sample(sample, results).stages[0].chunks
    assert [one.value for one in chunk.verdicts] == [False, True]
    assert len({one.judge for one in chunk.verdicts}) == 2


def test_probabilities_are_shown():
    pytest.importorskip("jinja2")
    from ctxeval.report.html import render_queries

    verdicts = ctxeval.Verdicts(
        [ctxeval.Verdict(True, "a", probability=0.75)],
        [ctxeval.Verdict(False, "c", probability=0.25)],
        judge="llm(x)",
    )
    result = ctxeval.MetricResult(1.0, "scored", verdicts=verdicts, expected=0.625)
    sample = Sample(user_input="q", retrieved_contexts=["a"], reference="c")
    view = view_of_sample(sample, {"context_precision": result})
    shown = render_queries([view])
    for said in ("probability 0.75", "probability 0.25", "0.625 to be expected"):
        assert said in shown


def test_a_number_is_told_once_and_beside_its_threshold():
    pytest.importorskip("jinja2")
    from ctxeval.report.html import render_queries

    llm = ScriptedLLM(relevant=lambda question, chunk: 0.73)
    judge = ctxeval.LLMJudge(llm, "logprob", threshold=0.75)
    sample = Sample(user_input="q", retrieved_contexts=["abcd", "xyz"], reference_contexts=["abxx"])
    results = ctxeval.score(sample, [ctxeval.ContextRelevance(judge), "non_llm_context_recall"])
    view = view_of_sample(sample, results)
    shown = html.unescape(render_queries([view]))
    assert shown.count("0.73 < 0.75") == shown.count("probability") == 2
    assert "similarity 0.50 >= 0.5" in shown
    assert "similar to no reference context</bdi>; similarity < 0.5" in shown


def test_a_stage_that_gave_nothing_holds_nothing_of_what_was_expected():
    def emptied():
        cut = Retrieval("Where?", (), "cut", "rerank", order=1, inputs=(0,))
        return QueryRecord(
            "q1", "Where?", retrievals=[Retrieval("Where?", chunks("b"), order=0), cut]
        )

    recorder = Recorder(references=EXPECTED)
    recorder.submit(0, 0, emptied)
    recorder.flush()
    view = view_of_record(recorder.records[0])
    assert [stage.found for stage in view.stages] == [(Found("id", 1, 2),), (Found("id", 0, 2),)]
    assert [unit.lost for unit in view.units] == [Lost("retrieve", "", 1, "b"), None]


def test_a_verdict_that_could_not_be_read_is_not_one_that_nothing_was_found():
    llm = ScriptedLLM(replies=["no idea"] * 2)
    sample = Sample(user_input="q", reference="R.", retrieved_contexts=["x"])
    (stage,) = view_of_sample(sample, ctxeval.score(sample, ["context_recall"], llm)).stages
    assert stage.found == (Found("model, for the reference", 0, 1, 1),)


@pytest.mark.parametrize(
    ("question", "id", "shown"),
    [("q", "1", "q"), (" \u200b", "1", "1"), ("", "\u200b", "(no question)")],
)
def test_a_query_has_a_title_to_be_seen(question, id, shown):
    assert title(QueryView(id, question, None, "ok"), 80) == shown
