"""Small plots for the rows of tables, by matplotlib, as SVG that takes the page's colours."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ctxeval.extras import load

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SVG = "http://www.w3.org/2000/svg"

# What is drawn in these colours gets a class of this name, which the style sheet colours.
_COLOURS = {
    "#000001": "ink",
    "#000002": "line",
    "#000003": "fill",
    "#000004": "before",
    "#000005": "lost",
}
INK, LINE, FILL, BEFORE, LOST = _COLOURS

_KEPT = {"fill", "stroke", "stroke-width", "stroke-linecap", "stroke-dasharray", "opacity"}


def bar(share: float, before: float = 0) -> str:
    """Draw a share of 1 as a bar, and behind it what it was before."""

    def draw(axes: Axes) -> None:
        axes.barh(0, 1, height=1, color=LINE)
        if before > share:
            axes.barh(0, before, height=1, color=LOST)
        axes.barh(0, share, height=1, color=FILL)
        axes.set(xlim=(0, 1), ylim=(-0.5, 0.5))

    return _draw(draw, 120, 10)


def interval(mean: float, low: float | None, high: float | None, most: float | None = None) -> str:
    """Draw a mean with its interval.

    Args:
        mean: The mean.
        low: The interval's lower end; None: no interval.
        high: Its upper end.
        most: Draw from -most to most, with a line at 0; None: from 0 to 1.
    """

    def draw(axes: Axes) -> None:
        least = 0.0 if most is None else -most
        end = 1.0 if most is None else most
        room = (end - least) / 25
        axes.plot([least, end], [0, 0], color=LINE, linewidth=1)
        if most is not None:
            axes.plot([0, 0], [-1, 1], color=INK, linewidth=1)
        if low is not None and high is not None:
            axes.plot([low, high], [0, 0], color=FILL, linewidth=3, solid_capstyle="butt")
        axes.plot([mean, mean], [-0.75, 0.75], color=FILL, linewidth=3, solid_capstyle="butt")
        axes.set(xlim=(least - room, end + room), ylim=(-1, 1))

    return _draw(draw, 140, 14)


def distribution(counts: Sequence[int], before: Sequence[int] | None = None) -> str:
    """Draw how many values lie where, and as an outline the same of the baseline."""

    def draw(axes: Axes) -> None:
        places = range(len(counts))
        shares = [count / max(1, sum(counts)) for count in counts]
        axes.bar(places, shares, width=0.8, color=FILL)
        tops = [*shares]
        if before is not None:
            old = [count / max(1, sum(before)) for count in before]
            tops += old
            for place, share in [one for one in enumerate(old) if one[1]]:
                ends = [place - 0.5, place + 0.5]
                axes.plot(ends, [share, share], color=BEFORE, linewidth=1.5)
        axes.plot([-0.6, len(counts) - 0.4], [0, 0], color=INK, linewidth=1)
        axes.set(xlim=(-0.7, len(counts) - 0.3), ylim=(-0.02, max(tops) * 1.05 or 1))

    return _draw(draw, 140, 34)


def _draw(draw: Callable[[Any], None], width: int, height: int) -> str:
    """Draw a picture of so many pixels, without axes; its numbers stand beside it."""
    load("matplotlib", "a plot", "report")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "ctxeval", "path.simplify": False}):
        figure = Figure(figsize=(width / 72, height / 72))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        draw(axes)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    return _plain(written.getvalue(), width, height)


def _plain(svg: str, width: int, height: int) -> str:
    """Keep the shapes: no ids, which would be there twice, no styles, which a page may forbid."""
    root = ElementTree.fromstring(svg)
    shapes = []
    for shape in root.iter(f"{{{SVG}}}path"):
        style = dict(re.findall(r"([\w-]+): ([^;]+)", shape.get("style", "")))
        if style.get("fill") == "none" and "stroke" not in style:
            continue
        shapes.append(_shape(shape.get("d", ""), style))
    return (
        f'<svg xmlns="{SVG}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-hidden="true" focusable="false">{"".join(shapes)}</svg>'
    )


def _shape(d: str, style: dict[str, str]) -> str:
    d = re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}", " ".join(d.split()))
    classes, kept = [], []
    for name, value in style.items():
        if value in _COLOURS:
            classes.append(f"{name}-{_COLOURS[value]}")
        elif name in _KEPT:
            kept.append(f' {name}="{value}"')
    return f'<path class="{" ".join(classes)}"{"".join(kept)} d="{d}"/>'
