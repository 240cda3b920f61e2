"""The words and numbers that every renderer shows, and hostile text made harmless."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from unicodedata import category

from ctxeval.judges.votes import compared
from ctxeval.report.view import ChunkView, Found, MetricView, QueryView, UnitView, VerdictView

_BIDI = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "�")
_CONTROLS = {code: "�" for code in [*range(0x20), *range(0x7F, 0xA0)] if chr(code) not in "\t\n"}
_MARKS = r"\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_PILES = re.compile(f"([{_MARKS}]{{8}})[{_MARKS}]+")
_WORDS = re.compile(r"\S+")
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "�")
_HARMLESS = str.maketrans(
    {
        **_BIDI,
        **_CONTROLS,
        **_SURROGATES,
        0x2028: "\n",
        0x2029: "\n",
        0xFFFE: "�",
        0xFFFF: "�",
    }
)


def clean(text: str, limit: int | None = None) -> str:
    r"""Make a text harmless to show: it keeps its lines and loses what steers its reader.

    Control characters, half surrogate pairs and what turns the direction of writing around
    become "�"; of marks that pile up on one letter eight stay.

    Args:
        text: The text.
        limit: How many characters are shown at most; the last one is "…" where it is cut.

    Examples:
        >>> clean("a\x1b[31mb")
        'a�[31mb'
        >>> clean("abcdef", 4)
        'abc…'
    """
    if limit is not None and len(text) > limit:
        text = f"{text[: limit - 1]}…"
    return _PILES.sub(r"\1", text.replace("\r\n", "\n").translate(_HARMLESS))


def line(text: str, limit: int | None = None) -> str:
    """Make a text harmless and fold it into one line."""
    if limit is None or len(text) <= 8 * limit:
        return clean(" ".join(text.split()), limit)
    # A megabyte of blanks need not be folded.
    return clean(f"{' '.join(text[: 8 * limit].split())} …", limit)


def split(text: str, limit: int = 140) -> tuple[str, str]:
    """Part a text at a blank into what is read first, as one line, and the rest.

    Returns:
        Both, or the whole and "" where it is short.

    Examples:
        >>> split("one  two three four", 8)
        ('one two …', '… three four')
    """
    end, used = 0, -1
    for word in _WORDS.finditer(text):
        used += 1 + len(word[0])
        if used <= limit:
            end = word.end()
        elif used > 1.5 * limit:
            break
    else:
        return text, ""
    end = end or limit
    return f"{' '.join(text[:end].split())} …", f"… {text[end:].lstrip()}"


def number(value: float | None) -> str:
    """Write a score, "–" where there is none."""
    return "–" if value is None else f"{value:.3f}"


def change(value: float | None) -> str:
    """Write a difference of scores, with its sign."""
    return "–" if value is None else f"{value:+.3f}".replace("-", "−")


def percent(part: float, whole: float) -> str:
    """Write a share, "–" of nothing; never 100 % or 0 % for what is not quite.

    Examples:
        >>> percent(1, 3), percent(999, 1000), percent(0, 0)
        ('33 %', '>99 %', '–')
    """
    if not whole:
        return "–"
    share = 100 * part / whole
    if 99 < share < 100:
        return ">99 %"
    return "<1 %" if 0 < share < 1 else f"{share:.0f} %"


def count(n: int) -> str:
    """Write a number of things.

    Examples:
        >>> count(10000)
        '10,000'
    """
    return f"{n:,}"


def span(low: float | None, high: float | None, method: str, *, signed: bool = False) -> str:
    """Write an interval, or why there is none."""
    if low is None or high is None:
        return method
    return f"{change(low)} to {change(high)}" if signed else f"{low:.3f}–{high:.3f}"


def bar(share: float, width: int = 20) -> str:
    """Draw a share of 1 in letters.

    Examples:
        >>> bar(0.25, 8)
        '██░░░░░░'
    """
    full = round(share * width)
    return "█" * full + "░" * (width - full)


def spark(counts: Sequence[int]) -> str:
    """Draw a distribution in letters; "·" where nothing is.

    Examples:
        >>> spark([0, 1, 4, 8])
        '·▁▄█'
    """
    most = max(counts, default=0)
    return "".join("▁▂▃▄▅▆▇█"[-(-8 * n // most) - 1] if n else "·" for n in counts)


def title(view: QueryView, limit: int) -> str:
    """Name a query by what was asked, or by its id where that leaves nothing to read."""
    names = (line(name, limit) for name in (view.question, view.id))
    return next((name for name in names if visible(name)), "(no question)")


def visible(text: str) -> bool:
    r"""Say whether anything of a text is to be seen.

    Examples:
        >>> visible("a"), visible(" \u200b")
        (True, False)
    """
    return any(category(letter)[0] not in "CZ" for letter in text)


def holds(found: Found) -> str:
    """Say how much of what was expected a stage holds.

    Examples:
        >>> holds(Found("model", 1, 3, 1))
        '1 of 3 expected by model, 1 unknown'
    """
    unknown = f", {found.unknown} unknown" if found.unknown else ""
    return f"{found.covered} of {found.expected} expected by {line(found.judge, 120)}{unknown}"


def missed(view: QueryView) -> str:
    """Say in one line what went wrong with a query."""
    missing = sum(unit.value is False for unit in view.units)
    parts = [] if view.status == "ok" else [f"ended as {view.status}"]
    parts += [f"failed: {stage.error}" for stage in view.stages if stage.error][:1]
    if missing:
        parts.append(f"{missing} of {len(view.units)} expected missing")
    chunks = view.stages[-1].chunks if view.stages else ()
    values = [{verdict.value for verdict in chunk.verdicts} for chunk in chunks]
    irrelevant = sum(False in said and True not in said for said in values)
    if irrelevant:
        parts.append(f"{irrelevant} of {len(chunks)} chunks not relevant")
    elif view.stages and not chunks:
        parts.append("nothing was retrieved")
    return ", ".join(parts)


def given(value: float | None) -> str:
    """Write what a retriever gave a chunk, on whatever scale it has."""
    return "–" if value is None else f"{value:.4g}"


def evidence(said: VerdictView | UnitView) -> str:
    """Write the numbers behind a verdict that its reason does not tell; "" without any.

    These are similarity and probability, each beside its threshold, and votes.

    Examples:
        >>> evidence(VerdictView("text", True, similarity=0.75, threshold=0.5))
        'similarity 0.75 >= 0.5'
        >>> evidence(VerdictView("text", False, threshold=0.5))
        'similarity < 0.5'
    """
    parts = []
    if said.similarity is not None:
        parts.append(f"similarity {compared(said.similarity, said.threshold)}")
    elif said.threshold is not None and said.value is False:
        parts.append(f"similarity < {said.threshold:g}")
    if said.probability is not None:
        told = compared(said.probability)
        parts += [] if told in said.reason else [f"probability {told}"]
    return ", ".join([*parts, votes(said.votes)] if said.votes else parts)


def seconds(value: float | None) -> str:
    """Write how long something took.

    Examples:
        >>> seconds(0.0042), seconds(1.234), seconds(None)
        ('4.2 ms', '1.2 s', '')
    """
    if value is None:
        return ""
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.1f} s"


def relevance(value: bool | None) -> str:
    """Say of a chunk what its verdict means."""
    return {True: "relevant", False: "not relevant", None: "unread"}[value]


def coverage(value: bool | None) -> str:
    """Say of a unit what its verdict means."""
    return {True: "found", False: "missing", None: "unknown"}[value]


def remark(metric: MetricView) -> str:
    """Write what to know of a value besides its reason, "" where nothing is.

    That is between what it lies, where it could not be had, and what to expect by the
    judge's probabilities.
    """
    parts = []
    if metric.value is None and metric.bounds is not None:
        parts.append(f"between {metric.bounds[0]:.3f} and {metric.bounds[1]:.3f}")
    if metric.expected is not None:
        parts.append(f"{metric.expected:.3f} to be expected")
    return ", ".join(parts)


def lost(unit: UnitView) -> str:
    """Say where a missing unit was last seen, "" where it never was."""
    if unit.lost is None:
        return ""
    stage = f"{unit.lost.kind} {line(unit.lost.name, 80)}".strip()
    return f"lost after {stage}, where it was at rank {unit.lost.rank}"


def chosen(chunks: Sequence[ChunkView], most: int) -> list[ChunkView]:
    """Choose the chunks that are shown: the first ones, and as many relevant ones behind them."""
    behind = [chunk for chunk in chunks[most:] if any(one.value for one in chunk.verdicts)]
    return [*chunks[:most], *behind[:most]]


def grouped(verdicts: Sequence[VerdictView]) -> list[VerdictView]:
    """Say once what several judges, or one for several purposes, say in the same words.

    Examples:
        >>> same = [VerdictView(f"model, for the {what}", True) for what in ("answer", "question")]
        >>> [one.judge for one in grouped(same)]
        ['model, for the answer, for the question']
    """
    groups: dict[VerdictView, list[str]] = {}
    for verdict in verdicts:
        judges = groups.setdefault(replace(verdict, judge=""), [])
        who, _, purpose = verdict.judge.partition(", ")
        named = any(judge.partition(", ")[0] == who for judge in judges)
        judges.append(purpose if named and purpose else verdict.judge)
    return [replace(said, judge=", ".join(judges)) for said, judges in groups.items()]


def votes(cast: tuple[bool | None, ...]) -> str:
    """Write how the repeats voted, "" where there were none."""
    if not cast:
        return ""
    yes, no, unread = cast.count(True), cast.count(False), cast.count(None)
    return f"votes: {yes} yes, {no} no" + (f", {unread} unread" if unread else "")
