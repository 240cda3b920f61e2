"""Judging by a model beside ragas and deepeval, all at the same local endpoint.

In the environment of `benchmarks/peers.txt`; a library that is missing there is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from math import ceil
from statistics import median
from typing import Any

from benchmarks.endpoint import Endpoint, endpoint
from benchmarks.measuring import side_by_side

SAMPLES, ROUNDS = 200, 7
QUIET = {
    "OPENAI_API_KEY": "not-needed",
    "RAGAS_DO_NOT_TRACK": "true",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_RESULTS_FOLDER": "/dev/null",
    "ERROR_REPORTING": "0",
}
"""None of them reports anything to anybody."""

OURS = ("ctxeval", "ctxeval, aiohttp", "bare create", "bare create, aiohttp")
PEERS = (
    ("ragas, collections", 1000),
    ("ragas, legacy", 16),
    ("ragas, legacy", 64),
    ("deepeval", 20),
    ("deepeval", 64),
)
"""With how many at once as most: the first of each is its default, but for the collections,
whose batch has no limit."""


class Judged:
    """One library in a process of its own, ready to score.

    Args:
        served: The endpoint.
        name: As of `benchmarks.judged_by`.
        concurrency: How many at once as most: calls of ctxeval, samples of others.
    """

    def __init__(self, served: Endpoint, name: str, concurrency: int) -> None:
        """Start it."""
        self._served = served
        self.name, self.concurrency = name, concurrency
        given = [name, served.url, str(SAMPLES), str(concurrency)]
        self._child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.judged_by", *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **QUIET},
        )
        assert self._line() == "warm\n", f"{name} failed before it began"

    def _line(self) -> str:
        assert self._child.stdout is not None
        return self._child.stdout.readline()

    def score(self) -> dict[str, Any]:
        """Score all samples, and say what that took."""
        self._served.counts()
        assert self._child.stdin is not None
        self._child.stdin.write("\n")
        self._child.stdin.flush()
        return {**json.loads(self._line()), **self._served.counts()}

    def stop(self) -> None:
        """Stop it."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(30)


@contextmanager
def judged(served: Endpoint, name: str, concurrency: int) -> Iterator[Judged]:
    """Have a library ready while the block runs."""
    ready = Judged(served, name, concurrency)
    try:
        yield ready
    finally:
        ready.stop()


def measure(served: Endpoint, name: str, concurrency: int) -> dict[str, Any]:
    """Score by one library once."""
    with judged(served, name, concurrency) as ready:
        return ready.score()


def _row(name: str, found: dict[str, Any]) -> dict[str, Any]:
    return {
        "by": name,
        "in flight": found["at_once"],
        "requests a sample": found["requests"] / SAMPLES,
        "prompt tokens a sample": found["tokens"] / SAMPLES,
        "client CPU a request, ms": 1000 * found["cpu"] / found["requests"],
        "client CPU a sample, ms": 1000 * found["cpu"] / SAMPLES,
        "wall, s": found["wall"],
    }


def _slow(served: Endpoint, latency: float, peers: list[tuple[str, int]]) -> Iterator[Any]:
    for concurrency in (16, 64, 256):
        for name in OURS:
            found = measure(served, name, concurrency)
            floor = latency * ceil(found["requests"] / concurrency)
            yield {
                **_row(name, found),
                "wall / floor": found["wall"] / floor,
                "lost": found["lost"],
            }
    for name, concurrency in peers:
        found = measure(served, name, concurrency)
        yield {**_row(name, found), "wall / floor": "", "lost": found["lost"]}


def _at_once(served: Endpoint, peers: list[tuple[str, int]]) -> Iterator[Any]:
    """Measure CPU time: ctxeval's in turn with that of the bare calls, several times."""
    for transport in ("", ", aiohttp"):
        for concurrency in (16, 64, 256):
            with (
                judged(served, f"bare create{transport}", concurrency) as bare,
                judged(served, f"ctxeval{transport}", concurrency) as ours,
            ):
                rounds = [(bare.score(), ours.score()) for _ in range(ROUNDS)]
            ratio = median(our["cpu"] / its["cpu"] for its, our in rounds)
            for name, place, told in (("bare create", 0, 1.0), ("ctxeval", 1, ratio)):
                found = sorted((one[place] for one in rounds), key=lambda one: one["cpu"])
                row = _row(f"{name}{transport}", found[ROUNDS // 2])
                yield {**row, "in flight": concurrency, "CPU / bare create": told}
    for name, concurrency in peers:
        row = _row(name, measure(served, name, concurrency))
        yield {**row, "in flight": concurrency, "CPU / bare create": ""}


def _faulty(clean: Endpoint, faulty: Endpoint, peers: list[tuple[str, int]]) -> Iterator[Any]:
    for name, concurrency in (("ctxeval", 16), *peers):
        of_clean = measure(clean, name, concurrency)
        found = measure(faulty, name, concurrency)
        answered = found["requests"] - found["faults"]
        yield {
            "by": name,
            "requests, none faulty": of_clean["requests"],
            "requests, a fifth faulty": found["requests"],
            "faults": found["faults"],
            "(requests - faults) / none faulty": answered / of_clean["requests"],
            "scores lost": found["lost"],
            "of": 2 * SAMPLES,
        }


def main() -> None:
    peers = [(name, n) for name, n in PEERS if find_spec(name.partition(",")[0])]
    with endpoint(0.2) as served:
        side_by_side("judging by a model, 200 ms an answer", list(_slow(served, 0.2, peers)))
    with endpoint(0) as served:
        side_by_side("judging by a model, 0 ms an answer", list(_at_once(served, peers)))
    with endpoint(0.05) as clean, endpoint(0.05, {"429": 0.1, "500": 0.1}) as faulty:
        rows = list(_faulty(clean, faulty, peers))
    side_by_side("judging by a model, a fifth of the answers 429 or 500", rows)


if __name__ == "__main__":
    main()
