"""Servers on the loopback interface: recording ones, and Phoenix and MLflow themselves."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from recording_server import RecordingServer, serving

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # it is read when MLflow is imported

SERVERS = "CTXEVAL_SERVERS"
"""The variable with the folder of Phoenix' and MLflow's programs, if not beside this Python."""

STARTING_SECONDS = 300
"""How long a server may take to start: on a busy machine Phoenix makes its tables in minutes."""


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    """Give a server that keeps what it is sent."""
    with serving(RecordingServer()) as running:
        yield running


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


@contextmanager
def running(
    program: str, arguments: Sequence[str], health: str, folder: Path, **environment: str
) -> Iterator[None]:
    """Run a program until it is not needed any more."""
    binary = Path(os.environ.get(SERVERS, Path(sys.executable).parent)) / program
    if not binary.exists():
        pytest.skip(f"no {binary}: set {SERVERS}, see CONTRIBUTING.md")
    log = folder / f"{program}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(binary), *arguments],
            cwd=folder,
            stdout=output,
            stderr=output,
            env={**_without_python_path(os.environ), **environment},
        )
    try:
        deadline = time.monotonic() + STARTING_SECONDS
        while not _answers(health):
            assert process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < deadline, log.read_text()[-2000:]
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _without_python_path(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name != "PYTHONPATH"}


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="session")
def phoenix_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run Phoenix; give its address."""
    pytest.importorskip("phoenix.client", reason="arize-phoenix-client is not installed")
    folder = tmp_path_factory.mktemp("phoenix")
    port, grpc = free_ports(2)
    url = f"http://127.0.0.1:{port}"
    environment = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with running("phoenix", ["serve"], f"{url}/healthz", folder, **environment):
        yield url


@pytest.fixture(scope="session")
def mlflow_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run MLflow's server; give its address."""
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    folder = tmp_path_factory.mktemp("mlflow")
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    arguments = [
        *("server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        *("--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"),
        *("--artifacts-destination", str(folder / "artifacts")),
    ]
    with running("mlflow", arguments, f"{url}/health", folder, MLFLOW_DISABLE_TELEMETRY="true"):
        yield url
