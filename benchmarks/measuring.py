"""CPU time per call, and ratios of it within one run: these are what a busy machine leaves true."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

LINES: list[tuple[str, str, str, str]] = []


def cpu_per_call(call: Callable[[], object], calls: int, rounds: int = 7) -> float:
    """Give the least CPU seconds per call over several rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(calls):
            call()
        best = min(best, (time.process_time() - start) / calls)
    return best


def report(name: str, figure: float, unit: str, limit: float | None = None) -> None:
    """Print one figure as a JSON line, and keep it for the table."""
    print(json.dumps({"benchmark": name, "figure": figure, "unit": unit, "limit": limit}))
    told = "" if limit is None else f"≤ {limit:g}"
    verdict = "" if limit is None else ("ok" if figure <= limit else "ABOVE")
    LINES.append((name, f"{figure:.3g} {unit}", told, verdict))


def table() -> str:
    """Write the figures as a Markdown table."""
    rows = [("benchmark", "figure", "limit", ""), ("---",) * 4, *LINES]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def lines_of(name: str) -> list[tuple[str, str, str, str]]:
    """Run a benchmark, and give the lines of its figures; what it prints, it prints."""
    import_module(f"benchmarks.{name}").main()
    return LINES


def side_by_side(name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print what was measured of several at once: one JSON line, and a table."""
    print(json.dumps({"benchmark": name, "rows": rows}))
    print(f"\n### {name}\n\n{markdown(rows)}\n", flush=True)


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Write rows of columns as a Markdown table."""
    names = list(dict.fromkeys(column for row in rows for column in row))
    lines = [[_cell(row.get(name, "")) for name in names] for row in rows]
    return "\n".join(
        "| " + " | ".join(line) + " |" for line in (names, ["---"] * len(names), *lines)
    )


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
