"""What an output holds, whatever is in the records: its size, its forms, hostile text."""

from __future__ import annotations

import html
from html.parser import HTMLParser

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("rich")

from ctxeval import Chunk, QueryRecord, Recorder, Retrieval, trace

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "handler": "<img src=x onerror=alert(1)>",
    "closing": "</td></table></details></div></style>",
    "template": "{{ 7 * 7 }}{% raw %}{# #}",
    "quote": "\"'`>",
    "bidi": "a\u202eb\u2066c",
    "NUL": "a\0b",
    "surrogate": "a\ud800b",
    "ANSI": "a\x1b[31mb\x1b]0;title\x07\x9b2J",
    "markup of rich": "[red]a[/red][link=file:///etc]b[/link]",
    "lines": "a\n\r\n\x0b\x0c\u2028b\u2029c",
    "long": "x" * 1_000_000,
    "blank": "",
}


def record(number, text="text", chunks=2, stages=1):
    found = tuple(
        Chunk(rank, f"{text[:50]}{rank}", "document_id", text, 0.5) for rank in range(chunks)
    )
    return QueryRecord(
        f"q{number}",
        f"question {number} {text}",
        text,
        retrievals=[
            Retrieval(f"asked {text}", found, text[:99], order=order) for order in range(stages)
        ],
    )


def shown(*records, references=None):
    recorder = Recorder(references=references)
    recorder.quiet()
    for order, one in enumerate(records):
        recorder.submit(order, order, lambda one=one: one)
    return recorder._repr_mimebundle_()


TAGS = {"bdi", "br", "caption", "code", "details", "div", "p", "small", "span", "strong", "style"}
TAGS |= {"summary", "table", "tbody", "td", "th", "thead", "tr"}


class Tags(HTMLParser):
    """The tags of a text, and whether they are nested as they must be."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.attributes = [], set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_is_only_text(kind):
    text = HOSTILE[kind]
    reference = {
        "user_input": f"question 1 {text}",
        "reference": text or "r",
        "reference_contexts": [text or "r", "r"],
        "reference_context_ids": [f"{text[:50]}1", "no"],
    }
    both = shown(record(1, text), references=[reference])
    tags = Tags(both["text/html"])
    assert tags.open == []
    assert tags.seen <= TAGS
    assert tags.attributes <= {"class", "open", "scope", "style"}
    both["text/html"].encode()
    both["text/plain"].encode()
    assert not [char for char in both["text/plain"] if not char.isprintable() and char != "\n"]
    if kind in ("script", "handler", "closing", "template"):
        assert html.escape(text) in both["text/html"]
    if kind == "markup of rich":
        assert text in both["text/plain"]


@pytest.mark.parametrize("text", ["word " * 500, "<&\"'>" * 200, "漢字" * 1000, "😀" * 1000])
def test_an_output_is_no_larger_than_300_kb(text):
    both = shown(*(record(n, text, chunks=30, stages=3) for n in range(40)))
    assert 150_000 < len(both["text/html"].encode()) <= 300_000
    assert len(both["text/plain"]) <= 100_000
    assert "20 more chunks" in both["text/html"]
    assert "more queries" in both["text/html"]
    assert "more queries" in both["text/plain"]


def test_20_queries_of_10_chunks_are_shown_and_the_rest_is_counted():
    both = shown(*(record(n, chunks=12) for n in range(25)))
    for form in both.values():
        assert "question 19" in form
        assert "question 20" not in form
        assert "5 more queries" in form
        assert form.count("2 more chunks") == 20


def test_the_first_three_stand_open():
    assert (
        shown(*(record(n) for n in range(5)))["text/html"].count('<details class="query" open>')
        == 3
    )


def test_without_queries_it_says_so():
    with trace() as t:
        pass
    both = t._repr_mimebundle_()
    assert both["text/plain"].startswith("No query was captured so far.")
    assert "give references, or a model" in both["text/plain"]
    assert "No query was captured so far." in t._repr_html_()


def test_queries_without_retrieval_are_told():
    recorder = Recorder("ndcg@10")
    recorder.count_without_retrieval()
    assert "1 ended without any retrieval." in recorder._repr_mimebundle_()["text/plain"]
    assert "Metrics: ndcg@10; 0 references." in recorder._repr_mimebundle_()["text/plain"]


def test_what_was_left_out_is_told():
    recorder = Recorder(max_records=1)
    recorder.quiet()
    for number in range(3):
        recorder.submit(number, number, lambda number=number: record(number))
    for form in recorder._repr_mimebundle_().values():
        assert "2 so far left out: more than max_records" in form


@pytest.mark.parametrize(("module", "extra"), [("jinja2", "report"), ("rich", "report")])
def test_a_missing_package_is_told_with_the_line_that_installs_it(monkeypatch, module, extra):
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    from ctxeval.report import html as rendering

    rendering.environment.cache_clear()
    monkeypatch.delitem(sys.modules, "ctxeval.report.text", raising=False)
    both = shown(record(1))
    rendering.environment.cache_clear()
    assert f"pip install 'ctxeval[{extra}]'" in both["text/plain"]
    assert ("text/html" in both) == (module != "jinja2")
