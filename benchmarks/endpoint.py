"""A local endpoint in a process of its own, so that its CPU time is not the client's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def endpoint(latency: float) -> Iterator[str]:
    """Serve the tests' scripted endpoint, and give its address."""
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.endpoint", str(latency)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        yield child.stdout.readline().strip()
    finally:
        child.stdin.close()
        child.wait(10)


def useful(question: str, chunk: str) -> bool:
    """Say that every third chunk is useful."""
    return int(chunk.split()[1]) % 3 == 0


def _serve() -> None:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
    from openai_server import OpenAIServer

    from ctxeval.testing import ScriptedLLM

    llm = ScriptedLLM(useful, lambda claim, chunks: [0])
    with OpenAIServer(llm, latency=float(sys.argv[1])) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    _serve()
