"""Judging by a model beside ragas and deepeval, all at the same local endpoint.

In the environment of `benchmarks/peers.txt`; a library that is missing there is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from math import ceil
from statistics import median
from typing import Any

from benchmarks.endpoint import Endpoint, endpoint
from benchmarks.measuring import side_by_side

SAMPLES = 200
QUIET = {
    "OPENAI_API_KEY": "not-needed",
    "RAGAS_DO_NOT_TRACK": "true",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "ERROR_REPORTING": "0",
}
"""None of them reports anything to anybody."""


def measure(
    served: Endpoint, name: str, concurrency: int, samples: int = SAMPLES
) -> dict[str, Any]:
    """Measure one library in a process of its own."""
    child = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "benchmarks.judged_by",
            name,
            served.url,
            str(samples),
            str(concurrency),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **QUIET},
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "warm\n", f"{name} failed before it began"
    served.counts()
    child.stdin.write("\n")
    child.stdin.flush()
    found: dict[str, Any] = json.loads(child.stdout.readline())
    child.wait(30)
    return {"name": name, "in flight": concurrency, **found, **served.counts()}


def _row(found: dict[str, Any], latency: float, samples: int = SAMPLES) -> dict[str, Any]:
    row = {
        "by": found["name"],
        "in flight": found["at_once"],
        "requests a sample": found["requests"] / samples,
        "prompt tokens a sample": found["tokens"] / samples,
        "client CPU a request, ms": 1000 * found["cpu"] / found["requests"],
        "client CPU a sample, ms": 1000 * found["cpu"] / samples,
        "wall, s": found["wall"],
    }
    if latency:
        floor = latency * ceil(found["requests"] / found["in flight"])
        row["wall / floor"] = found["wall"] / floor
    row["scores lost"] = found["lost"]
    return row


def _there(name: str) -> bool:
    return find_spec(name.partition(",")[0].split()[0].replace("bare", "openai")) is not None


def main() -> None:
    peers = [
        (name, concurrency)
        for name, concurrency in (
            ("ragas, collections", 1000),
            ("ragas, legacy", 16),
            ("ragas, legacy", 64),
            ("deepeval", 20),
            ("deepeval", 64),
        )
        if _there(name)
    ]
    with endpoint(0.2) as served:
        rows = [
            _row(measure(served, name, concurrency), 0.2)
            for name, concurrency in (
                *((name, n) for n in (16, 64, 256) for name in OURS),
                *peers,
            )
        ]
    side_by_side("judging by a model, 200 ms an answer", rows)
    with endpoint(0) as served:
        side_by_side("judging by a model, 0 ms an answer", _at_once(served, peers))
    rows = []
    faults = {"429": 0.1, "500": 0.1}
    with endpoint(0.05) as clean, endpoint(0.05, faults) as faulty:
        for name, concurrency in (("ctxeval", 16), *peers):
            of_clean = measure(clean, name, concurrency)
            found = measure(faulty, name, concurrency)
            rows.append(
                {
                    "by": name,
                    "requests, none faulty": of_clean["requests"],
                    "requests, a fifth faulty": found["requests"],
                    "faults": found["faults"],
                    "(requests - faults) / clean": (found["requests"] - found["faults"])
                    / of_clean["requests"],
                    "scores lost": found["lost"],
                    "of": 2 * SAMPLES,
                }
            )
    side_by_side("judging by a model, a fifth of the answers 429 or 500", rows)


OURS = ("ctxeval", "ctxeval, aiohttp", "bare create", "bare create, aiohttp")


def _at_once(served: Endpoint, peers: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """Measure CPU time: ctxeval's right beside that of the bare calls, several times."""
    rows = []
    for transport in ("", ", aiohttp"):
        for concurrency in (16, 64, 256):
            pairs = [
                (
                    measure(served, f"ctxeval{transport}", concurrency),
                    measure(served, f"bare create{transport}", concurrency),
                )
                for _ in range(3)
            ]
            ratio = median(ours["cpu"] / bare["cpu"] for ours, bare in pairs)
            for found, told in ((pairs[-1][1], 1.0), (pairs[-1][0], ratio)):
                row = _row(found, 0)
                rows.append({**row, "CPU / bare create": told, "in flight": concurrency})
    rows += [{**_row(measure(served, *peer), 0), "CPU / bare create": ""} for peer in peers]
    return rows


if __name__ == "__main__":
    main()
