"""Plots: what is drawn lies where the numbers say, in the page's own colours."""

import re

import pytest

pytest.importorskip("matplotlib")

from ctxeval.report.plots import bar, distribution, interval


def shapes(svg, colour):
    """The left, right, top and bottom of what is drawn in a colour."""
    found = []
    for classes, d in re.findall(r'<path class="([^"]*)"[^>]* d="([^"]*)"', svg):
        if colour in classes:
            numbers = [float(number) for number in re.findall(r"-?[\d.]+", d)]
            across, down = numbers[::2], numbers[1::2]
            found.append((min(across), max(across), min(down), max(down)))
    return found


def test_a_bar_is_as_long_as_its_share():
    assert shapes(bar(0.25), "fill-fill") == [(0, 30, 0, 10)]  # of 120
    assert shapes(bar(0.25), "fill-lost") == []
    assert shapes(bar(0.25, before=0.75), "fill-lost") == [(0, 90, 0, 10)]


def test_an_interval_reaches_from_end_to_end_with_its_mean_inside():
    line, mean = shapes(interval(0.5, 0.25, 1.0), "stroke-fill")
    left, right = 140 / 27, 140 * 26 / 27  # 0 and 1, with a margin of 1/25 on either side
    assert line[0] == pytest.approx(left + (right - left) / 4, abs=0.1)
    assert line[1] == pytest.approx(right, abs=0.1)
    assert mean[:2] == (70, 70)
    assert len(shapes(interval(0.5, None, None), "stroke-fill")) == 1


def test_a_difference_lies_around_a_line_at_0():
    svg = interval(0.5, 0.25, 0.75, most=1.0)
    assert shapes(svg, "stroke-ink")[0][:2] == (70, 70)
    assert all(shape[0] > 70 for shape in shapes(svg, "stroke-fill"))


def test_a_distribution_has_a_bar_per_bin_as_high_as_its_share():
    bars = shapes(distribution([1, 0, 3]), "fill-fill")
    heights = [bottom - top for _, _, top, bottom in bars]
    assert heights[0] * 3 == pytest.approx(heights[-1], abs=0.3)
    assert len(shapes(distribution([1, 0, 3], [2, 2, 0]), "stroke-before")) == 2


@pytest.mark.parametrize("svg", [bar(0.5), interval(0.5, 0.4, 0.6), distribution([1, 2])])
def test_a_page_may_forbid_styles_and_have_many(svg):
    assert " style=" not in svg
    assert " id=" not in svg
    assert "#" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert 'aria-hidden="true"' in svg
