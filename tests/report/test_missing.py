"""Which queries lack a value, counted by hand."""

import html
import re

import pytest

import ctxeval
from ctxeval.report.missing import NAMED, OPENED, MissingCollector
from ctxeval.report.reasons import UNASKED
from ctxeval.report.view import MetricView, QueryView
from ctxeval.testing import ScriptedLLM


def query(id="1", *, metrics=()):
    return QueryView(str(id), f"question {id}", "a", "ok", tuple(metrics))


def lacking(name, status, reason="r"):
    return MetricView(name, None, status, reason)


def collected(*views, metrics=()):
    collector = MissingCollector(metrics)
    for view in views:
        collector.add(view)
    return collector


def test_every_query_without_a_value_is_there_those_that_failed_first():
    views = [
        query(1, metrics=[lacking("x", "skipped"), lacking("y", "undefined")]),
        query(2, metrics=[MetricView("x", 1.0, "scored"), MetricView("y", 0.0, "scored")]),
        query(3, metrics=[lacking("x", "skipped"), lacking("y", "failed", "no reply")]),
        query(4, metrics=[MetricView("x", 1.0, "scored")]),
    ]
    found = collected(*views, metrics=("x", "y")).summed(3)
    assert [(one.view, one.lacking) for one in found.opened] == [
        (views[2], (lacking("y", "failed", "no reply"), lacking("x", "skipped"))),
        (views[0], (lacking("y", "undefined"), lacking("x", "skipped"))),
        (views[3], (lacking("y", "skipped", UNASKED),)),
    ]
    assert (found.named, found.left) == ((), 0)


def test_what_is_too_much_to_open_is_named_and_counted_and_no_reason_takes_all_room():
    of_one = OPENED["failed"] // 2
    n = of_one + NAMED + 7
    views = [query(k, metrics=[lacking("x", "failed", f"{k} of 3 unread")]) for k in range(n)]
    found = collected(*views, query("other", metrics=[lacking("x", "failed", "no")])).summed(n + 1)
    assert [one.view.id for one in found.opened] == [*map(str, range(of_one)), "other"]
    assert [one.view.id for one in found.named] == [*map(str, range(of_one, of_one + NAMED))]
    assert {one.view.answer for one in found.named} == {None}
    assert found.left == 7


@pytest.fixture(scope="module")
def run():
    llm = ScriptedLLM(replies=["no idea"] * 4)
    samples = [
        {
            "user_input": f"<b>question {n}",
            "retrieved_contexts": [f"text {n}"],
            "reference": "R.",
            "retrieved_context_ids": ["a"],
            "reference_context_ids": ["a"] * (n < 4),
        }
        for n in range(6)
    ]
    return ctxeval.evaluate(
        [*samples, {"user_input": "lonely", "retrieved_context_ids": ["a"]}],
        ["context_precision", "ndcg@10"],
        llm=llm,
    )


def test_the_page_opens_each_query_without_a_value_and_says_why(run, tmp_path):
    for needed in ("jinja2", "matplotlib", "scipy"):
        pytest.importorskip(needed)
    page = run.report(tmp_path / "r.html").read_text("utf-8")
    begin = page.index('id="unscored"')
    section = page[begin : page.index("</section>", begin)]
    told = [
        " ".join(html.unescape(re.sub(r"<[^>]*>", " ", one)).split())
        for one in re.findall(r'<details class="opened">\n(<summary>.*?</summary>)', section, re.S)
    ]
    unread = "the reply holds no JSON with verdicts: 'no idea'"
    for n in (0, 1):
        assert told[n].startswith(f"<b>question {n} context_precision failed: 1 of 1 verdicts")
        assert unread in told[n]
    assert [one.partition("·")[0].strip() for one in told[2:4]] == [
        f"<b>question {n} ndcg@10 undefined: no id is expected" for n in (4, 5)
    ]
    assert told[4].startswith("lonely context_precision skipped: context_precision needs")
    assert len(told) == 5
    assert f"unread</strong> <small>by model, for the reference; <bdi>{unread}" in html.unescape(
        section
    )


def test_a_terminal_opens_the_first_ones(run):
    for needed in ("rich", "scipy"):
        pytest.importorskip(needed)
    from ctxeval.evaluation.reporting import report_of
    from ctxeval.report.terminal import show_report
    from ctxeval.report.text import as_text

    shown = as_text(lambda console: show_report(report_of(run), console), 200)
    section = shown[shown.index("\nQueries without a value\n") :]
    assert "\ncontext_precision failed\n<b>question 0\n" in section
    assert "the reply holds no JSON with verdicts: 'no idea'" in section
    assert "\n2 more: ctxeval report shows them\n" in section
