"""Phoenix and MLflow themselves, on the loopback interface."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from ctxeval import ExportError

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # it is read when MLflow is imported

SERVERS = "CTXEVAL_SERVERS"
"""The variable with the folder of Phoenix' and MLflow's programs."""

STARTING_SECONDS = 300
"""How long a server may take to start: on a busy machine Phoenix makes its tables in minutes."""


def free_ports(n: int) -> list[int]:
    """Find ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(n)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Program:
    """A program that runs until it is not needed any more.

    Args:
        name: The program's.
        arguments: How it is started.
        url: Where it listens.
        health: What answers, there, once it is up.
        folder: Where it works.
        environment: What it is told besides.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        url: str,
        health: str,
        folder: Path,
        **environment: str,
    ) -> None:
        self.url = url
        self.process: subprocess.Popen[bytes] | None = None
        self._health = f"{url}{health}"
        self.folder = folder
        self._log = folder / "log"
        self._binary = Path(os.environ.get(SERVERS, "")) / name
        if SERVERS in os.environ:
            known = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            with self._log.open("w") as output:
                self.process = subprocess.Popen(
                    [str(self._binary), *arguments],
                    cwd=folder,
                    stdout=output,
                    stderr=output,
                    env={**known, **environment},
                )

    def wait(self) -> str:
        """Wait until it is up, and give its URL."""
        if self.process is None:
            pytest.skip(f"{SERVERS} does not say where {self._binary} is: see CONTRIBUTING.md")
        deadline = time.monotonic() + STARTING_SECONDS
        while not self._answers():
            assert self.process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() < deadline, self._log.read_text()[-2000:]
            time.sleep(0.2)
        return self.url

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self._health, timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Program]]:
    """Start both servers at once: each takes its time."""
    ports = free_ports(3)
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    phoenix, mlflow = tmp_path_factory.mktemp("phoenix"), tmp_path_factory.mktemp("mlflow")
    started = {
        "phoenix": Program(
            "phoenix",
            ["serve"],
            urls[0],
            "/healthz",
            phoenix,
            PHOENIX_WORKING_DIR=str(phoenix),
            PHOENIX_HOST="127.0.0.1",
            PHOENIX_PORT=str(ports[0]),
            PHOENIX_GRPC_PORT=str(ports[1]),
            PHOENIX_TELEMETRY_ENABLED="false",
        ),
        "mlflow": Program(
            "mlflow",
            [
                *("server", "--host", "127.0.0.1", "--port", str(ports[2]), "--workers", "1"),
                *("--backend-store-uri", f"sqlite:///{mlflow / 'mlflow.db'}"),
                *("--artifacts-destination", str(mlflow / "artifacts")),
            ],
            urls[2],
            "/health",
            mlflow,
        ),
    }
    yield started
    for one in started.values():
        one.stop()


@pytest.fixture(scope="session")
def phoenix_url(servers: dict[str, Program]) -> str:
    """Give the address of a Phoenix that runs."""
    return servers["phoenix"].wait()


@pytest.fixture(scope="session")
def mlflow_url(servers: dict[str, Program]) -> str:
    """Give the address of an MLflow server that runs."""
    return servers["mlflow"].wait()


def patiently(export: Callable[[], object]) -> None:
    """Export once the spans have arrived: Phoenix takes them later than it says."""
    for _ in range(100):
        try:
            export()
        except ExportError as error:
            if "404" not in str(error):
                raise
            time.sleep(0.2)
        else:
            return
    export()
