"""The terminal says what the HTML file says."""

import html
import io
import re

import pytest

for needed in ("jinja2", "matplotlib", "rich", "scipy"):
    pytest.importorskip(needed)

from report_runs import captured  # noqa: E402
from rich.console import Console  # noqa: E402

from ctxeval.evaluation.reporting import report_of  # noqa: E402
from ctxeval.report.document import render_report  # noqa: E402
from ctxeval.report.terminal import show_report  # noqa: E402


@pytest.fixture(scope="module")
def report():
    return report_of(captured(seed=1), captured(seed=2))


@pytest.fixture(scope="module")
def printed(report):
    written = io.StringIO()
    show_report(report, Console(file=written, width=200))
    return written.getvalue()


def test_it_has_every_section(report, printed):
    headings = re.findall(r"<h2[^>]*>([^<]*)</h2>", render_report(report))
    assert len(headings) == 10
    for heading in headings[1:]:  # the scores stand first, without one
        assert f"\n{heading}\n" in printed


@pytest.mark.parametrize(
    "section", ["scores", "changes", "funnel", "missing", "agreement"], ids=lambda name: name
)
def test_it_has_every_number_of_the_tables(report, printed, section):
    page = render_report(report)
    begin = page.index(f'id="{section}"')
    part = re.sub(r"<details.*?</details>", "", page[begin : page.index("</section>", begin)])
    part = re.sub(r"<svg.*?</svg>|<details.*", "", part, flags=re.DOTALL)
    cells = re.findall(r'<td[^>]*class="number[^"]*">(.*?)</td>', part)
    numbers = {n for cell in cells for n in re.findall(r"[−+]?\d+\.\d+", html.unescape(cell))}
    assert len(numbers) >= 2
    assert {number for number in numbers if number not in printed} == set()


def test_it_opens_the_worst_queries_to_what_failed(printed):
    opened = printed[printed.index("\nWorst queries\n") :]
    assert "no chunk with this id was retrieved" in opened
    assert "not relevant by id" in opened
    assert "lost after" in opened
