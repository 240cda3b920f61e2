"""Contestants measured each in a process of its own, by CPU time and memory."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

QUIET = {"RAGAS_DO_NOT_TRACK": "true", "PYTHONWARNINGS": "ignore"}
"""None of them reports anything to anybody."""


def alone(module: str, name: str, n: int) -> dict[str, Any] | None:
    """Measure one contestant in a process of its own; None where it is not installed."""
    done = subprocess.run(
        [sys.executable, "-m", module, name, str(n)],
        capture_output=True,
        text=True,
        env={**os.environ, **QUIET},
    )
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        print(f"{name} is left out: {reason[0]}", file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps({"contestant": name, "n": n, **found}), flush=True)
    return found


def measured(call: Callable[[], Any], rounds: int = 3) -> dict[str, Any]:
    """Give the least CPU and wall time of a call, the most memory above the start, and its result.

    Memory is what the process holds at most, as Linux tells it; None elsewhere.
    """
    cpu = wall = float("inf")
    peak = 0.0
    result = None
    for _ in range(rounds):
        result = None
        gc.collect()
        before = _reset_peak()
        began, clock = time.process_time(), time.perf_counter()
        result = call()
        cpu = min(cpu, time.process_time() - began)
        wall = min(wall, time.perf_counter() - clock)
        if before is not None:
            peak = max(peak, (_memory("VmHWM") or 0) - before)
    return {"cpu": cpu, "wall": wall, "MB": peak, "result": result}


def answer(contestants: Mapping[str, Callable[[int], dict[str, Any]]]) -> None:
    """Be the process of one contestant: named, with a size, on the command line."""
    print(json.dumps(contestants[sys.argv[1]](int(sys.argv[2]))))


def _reset_peak() -> float | None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return _memory("VmRSS")


def _memory(field: str) -> float | None:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    return None
