"""A local endpoint in a process of its own, so that its CPU time is not the client's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Endpoint:
    """The tests' scripted endpoint, which answers the prompts of peers too.

    Attributes:
        url: Its address.
    """

    def __init__(self, latency: float, faults: Mapping[str, float]) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.endpoint", str(latency), json.dumps(faults)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def counts(self) -> dict[str, Any]:
        """Say what came since the last time: requests, faults, tokens, how many at once."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        counts: dict[str, Any] = json.loads(self._line())
        return counts

    def stop(self) -> None:
        """Stop it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


@contextmanager
def endpoint(latency: float, faults: Mapping[str, float] | None = None) -> Iterator[Endpoint]:
    """Serve while the block runs.

    Args:
        latency: Seconds before every answer.
        faults: The shares of the faults, by the names that the tests' server gives them.
    """
    started = Endpoint(latency, faults or {})
    try:
        yield started
    finally:
        started.stop()


def useful(question: str, chunk: str) -> bool:
    """Say that every third chunk is useful."""
    return int(chunk.split()[1]) % 3 == 0


def _serve() -> None:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
    from openai_server import FAULTS, OpenAIServer, Reply, completion

    from benchmarks.answers import answer
    from ctxeval.testing import ScriptedLLM

    class Server(OpenAIServer):
        """Answers peers by their schemas."""

        letters = 0

        def answer(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Reply:
            self.letters += sum(len(str(message["content"])) for message in body["messages"])
            self.letters += len(json.dumps([body.get("response_format"), body.get("tools")]))
            if str(body["messages"][-1]["content"]).startswith("<data "):
                return super().answer(path, headers, body)
            self.bodies.append({})
            if kind := self._fault(json.dumps(body["messages"])):
                self.faulty[kind] += 1
                return FAULTS[kind]("")
            text, tools = answer(body)
            return Reply(body=completion(text, tool_calls=tools or None))

    llm = ScriptedLLM(useful, lambda claim, chunks: [0])
    latency, faults = float(sys.argv[1]), json.loads(sys.argv[2])
    with Server(llm, latency=latency, faults=faults) as server:
        print(server.url, flush=True)
        for _ in sys.stdin:
            counts = {
                "requests": server.requests,
                "faults": sum(server.faulty.values()),
                "tokens": server.letters // 4,
                "at_once": server.max_in_flight,
            }
            server.letters = server.max_in_flight = 0
            server.bodies.clear()
            server.faulty.clear()
            print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    _serve()
