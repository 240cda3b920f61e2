"""Hostile text in a report and in a terminal: it is shown, and it does nothing."""

import io
import unicodedata
from html.parser import HTMLParser

import pytest

for needed in ("jinja2", "matplotlib", "rich", "scipy"):
    pytest.importorskip(needed)

from hostile import HOSTILE, hostile_run  # noqa: E402
from rich.cells import cell_len  # noqa: E402
from rich.console import Console  # noqa: E402

from ctxeval import Evaluation  # noqa: E402
from ctxeval.evaluation.reporting import report_of, view_of_row  # noqa: E402
from ctxeval.report.terminal import show_report  # noqa: E402
from ctxeval.report.text import show_queries  # noqa: E402

ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "nav"),
    *("section", "div", "span", "p", "h1", "h2", "h3", "h4", "ul", "li", "a", "dl", "dt", "dd"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary"),
    *("strong", "small", "code", "bdi", "br", "svg", "path"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = hostile_run().save(tmp_path_factory.mktemp("hostile") / "run.jsonl")
    return Evaluation.load(path, keep=False)


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    return run.report(tmp_path_factory.mktemp("page") / "r.html", run).read_text("utf-8")


@pytest.fixture(scope="module")
def printed(run):
    written = io.StringIO()
    console = Console(file=written, width=120, force_terminal=False)
    show_report(report_of(run, run), console)
    show_queries([view_of_row(row) for row in run.rows], console)
    return written.getvalue()


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.open = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {(name, value) for name, value in attrs if name in ("href", "src")}
        self.attributes |= {(name, "") for name, _ in attrs if name.startswith("on")}
        if tag not in ("meta", "br", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "path":
            assert self.open.pop() == tag


def test_a_report_has_no_element_but_its_own_and_each_is_closed(page):
    reader = Reader()
    reader.feed(page)
    assert reader.tags <= ALLOWED
    assert reader.open == []
    assert all(name == "href" and value.startswith("#") for name, value in reader.attributes)


def test_a_report_of_megabytes_is_small(page):
    assert len(page.encode()) < 1_500_000


@pytest.mark.parametrize("where", ["page", "printed"])
def test_nothing_is_left_that_steers_a_reader(where, request):
    text = request.getfixturevalue(where)
    steering = {char for char in text if unicodedata.category(char) in ("Cc", "Cs")} - {"\n", "\t"}
    steering |= {char for char in text if char in "\u202a\u202b\u202d\u202e\u2066\u2067\u2068"}
    assert steering == set()


def test_a_terminal_shows_markup_as_it_stands(printed):
    assert "[bold red]rich[/]" in printed
    assert ":smile:" in printed
    assert "recall@3[text]" in printed
    assert "�[31mred" in printed


def test_a_terminal_prints_no_line_of_a_megabyte(printed):
    assert max(map(cell_len, printed.splitlines())) <= 3 * 120  # reasons aren't wrapped
    assert len(printed) < 500_000


@pytest.mark.parametrize("where", ["page", "printed"])
def test_marks_do_not_pile_up(where, request):
    assert "\u0301" * 8 in request.getfixturevalue(where)
    assert "\u0301" * 9 not in request.getfixturevalue(where)


def test_every_hostile_question_is_a_query_of_the_run(run):
    assert len(run) == len(HOSTILE)
