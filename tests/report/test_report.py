"""The report as a file: complete, self-contained, and hostile text in it is only text."""

import html
import re

import pytest

for needed in ("jinja2", "matplotlib", "scipy"):
    pytest.importorskip(needed)

from report_runs import captured  # noqa: E402

import ctxeval  # noqa: E402
from ctxeval import (  # noqa: E402
    Chunk,
    Evaluation,
    InvalidArgumentError,
    QueryRecord,
    Recorder,
    Retrieval,
    evaluate,
)
from ctxeval.testing import ScriptedLLM  # noqa: E402


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    captured(seed=1).save(folder / "now.jsonl")
    captured(seed=2).save(folder / "before.jsonl")
    run = Evaluation.load(folder / "now.jsonl", keep=False)
    return run.report(folder / "report.html", folder / "before.jsonl").read_text("utf-8")


def words(page):
    """What is read of a page: its text without styles, white space folded."""
    page = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


@pytest.mark.parametrize(
    "heading",
    [
        "Scores",
        "What changed",
        "Where relevant chunks get lost",
        "Rank by rank",
        "Queries that lost most",
        "Worst queries",
        "Missing values",
        "Queries without a value",
        "Reasons",
        "Agreement of the judge",
        "Cost",
    ],
)
def test_every_section_is_there(page, heading):
    assert re.search(rf"<h[23][^>]*>{heading}</h[23]>", page)


def test_it_names_runs_stages_and_numbers(page):
    said = words(page)
    for part in ("now", "before", "retrieve dense", "rerank cross", "prompt", "Tokens sent"):
        assert part in said
    values = captured(seed=1).values("ndcg@10").values()
    assert f"{sum(values) / len(values):.3f}" in said


def test_a_worst_query_names_the_chunk_and_the_claim_that_failed(page):
    opened = words(page[page.index('id="worst"') :])
    assert "missing no chunk with this id was retrieved" in opened
    assert "not relevant by id" in opened
    assert re.search(r"claim missing by script", opened)


def test_the_numbers_of_every_plot_stand_beside_it(page):
    assert page.count("<svg") == page.count('aria-hidden="true"')
    assert "0.9–1" in words(page)  # the distributions are a table too


def test_it_needs_nothing_and_runs_nothing(page):
    assert "<script" not in page
    assert not re.search(r'\b(?:src|href)="(?!#)', page)
    assert "default-src 'none'" in page
    assert " style=" not in page  # the policy would forbid it


def test_without_a_baseline_and_in_memory(tmp_path):
    samples = [
        {"id": n, "retrieved_context_ids": ["a", "b"], "reference_context_ids": ["b"]}
        for n in range(3)
    ]
    said = words(evaluate(samples).report(tmp_path / "r.html").read_text("utf-8"))
    assert "3 queries" in said
    assert "What changed" not in said
    assert "No model was asked" in said


@pytest.mark.parametrize("samples", [[], [{"user_input": "q"}]], ids=["none", "unscorable"])
def test_a_run_without_values_is_told_all_the_same(tmp_path, samples):
    evaluation = evaluate(samples, ["ndcg@10"])
    said = words(evaluation.report(tmp_path / "r.html").read_text("utf-8"))
    assert f"{len(samples)} quer" in said
    assert "ndcg@10" in said or not samples


def test_a_baseline_that_shares_no_metric_is_refused(tmp_path):
    sample = {"id": 1, "retrieved_context_ids": ["a"], "reference_context_ids": ["a"]}
    now, before = evaluate([sample], ["ndcg@10"]), evaluate([sample], ["hit_rate@1"])
    with pytest.raises(InvalidArgumentError, match="share no metric"):
        now.report(tmp_path / "r.html", before)
    assert not list(tmp_path.iterdir())


def test_a_report_never_replaces_a_run(tmp_path):
    sample = {"id": 1, "retrieved_context_ids": ["a"], "reference_context_ids": ["a"]}
    run = evaluate([sample], ["ndcg@10"]).save(tmp_path / "run.jsonl")
    kept = run.read_bytes()
    with pytest.raises(InvalidArgumentError, match=r"'\.jsonl' is no suffix of a report"):
        Evaluation.load(run, keep=False).report(run)
    assert run.read_bytes() == kept


@pytest.mark.parametrize("path", [None, 3])
def test_what_is_no_path_is_refused(tmp_path, path):
    with pytest.raises(InvalidArgumentError, match=r"path: .* is no path"):
        evaluate([]).report(path)
    baseline = path or "none.jsonl"
    with pytest.raises(InvalidArgumentError, match=r"is no Evaluation|none\.jsonl"):
        evaluate([]).report(tmp_path / "r.html", baseline)


def test_an_empty_run_is_not_called_complete(tmp_path):
    said = words(evaluate([]).report(tmp_path / "r.html").read_text("utf-8"))
    assert "There was nothing to score" in said
    assert "Every query has a value" not in said


def test_queries_that_retrieved_nothing_count_in_the_funnel(tmp_path):
    samples = [
        {"id": n, "retrieved_context_ids": ["a"] * (n < 5), "reference_context_ids": ["a"]}
        for n in range(10)
    ]
    said = words(evaluate(samples).report(tmp_path / "r.html").read_text("utf-8"))
    assert "retrieve gave nothing in 5 queries 10 50 % 5 of 10" in said


def test_a_judge_that_gave_no_verdict_makes_no_funnel_of_zeros(tmp_path):
    llm = ScriptedLLM(replies=["no idea"] * 99)
    sample = {"user_input": "q", "retrieved_contexts": ["x"], "reference": "R."}
    page = evaluate([sample], llm=llm).report(tmp_path / "r.html").read_text("utf-8")
    funnel = words(page[page.index('id="funnel"') : page.index('id="ranks"')])
    assert "1 chunk not judged 1 of what was expected not judged 1 – – 1.0 – – –" in funnel


@pytest.mark.parametrize("path", ["nowhere/r.html", "."])
def test_where_it_cannot_be_written_is_said_at_once(tmp_path, path):
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        evaluate([]).report(tmp_path / path)


def test_a_cost_is_told(tmp_path):
    llm = ScriptedLLM(relevant={"a"})
    sample = {"user_input": "q", "retrieved_contexts": ["a"], "reference": "r"}
    evaluation = ctxeval.evaluate([sample], llm=llm)
    said = words(evaluation.report(tmp_path / "r.html").read_text("utf-8"))
    assert f"Requests {len(llm.calls)} {len(llm.calls)}.0" in said


def test_queries_of_hundreds_of_stages_do_not_burst_a_report(tmp_path):
    chunks = tuple(Chunk(rank, str(rank), "document_id", "word " * 200) for rank in range(20))
    recorder = Recorder(references=[{"user_input": "q", "reference_context_ids": ["z"]}])
    for n in range(10):
        stages = [Retrieval(f"asked {k}", chunks, f"tool {k}", order=k) for k in range(150)]
        recorder.submit(n, n, lambda n=n, s=stages: QueryRecord(str(n), "q", retrievals=s))
    recorder.flush()
    page = recorder.evaluation().report(tmp_path / "r.html").read_text("utf-8")
    assert len(page.encode()) < 5_000_000
    assert "more, which would be too long here" in words(page)
    assert "120 more stages" in words(page)
