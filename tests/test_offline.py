"""No telemetry: what all the other tests run speaks to this machine only."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import offline
import pytest

ELSEWHERE = "192.0.2.1"  # of a block that is set aside for examples


@pytest.fixture
def attempts(monkeypatch):
    """What is tried in a test of trying is not held against the run."""
    tried = []
    monkeypatch.setattr(offline, "ATTEMPTS", tried)
    return tried


def test_another_machine_is_refused_and_remembered(attempts):
    with pytest.raises(PermissionError, match="this machine only"):
        socket.create_connection((ELSEWHERE, 80), timeout=1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        with pytest.raises(PermissionError):
            datagrams.sendto(b"", (ELSEWHERE, 53))
        with pytest.raises(PermissionError):
            datagrams.connect((ELSEWHERE, 53))
    with pytest.raises(PermissionError):
        socket.getaddrinfo("example.org", 80)
    assert len(attempts) == 4


def test_asynchronous_code_is_refused_too(attempts):
    with pytest.raises(PermissionError):
        asyncio.run(asyncio.open_connection(ELSEWHERE, 80))
    assert attempts


def test_this_machine_is_spoken_to():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()
    assert offline.ATTEMPTS == []


def test_a_run_that_speaks_to_another_machine_fails(tmp_path):
    """Also where the thread that was refused tells nobody."""
    (tmp_path / "test_leak.py").write_text(
        "import socket, threading\n"
        "def leak():\n"
        "    try:\n"
        f"        socket.create_connection(({ELSEWHERE!r}, 80), timeout=1)\n"
        "    except OSError:\n"
        "        pass\n"
        "def test_leaks():\n"
        "    thread = threading.Thread(target=leak)\n"
        "    thread.start()\n"
        "    thread.join()\n"
    )
    support = Path(offline.__file__).parent
    conftest = (support.parent / "conftest.py").read_text()
    path = f"import sys\nsys.path.insert(0, {str(support)!r})\n"
    (tmp_path / "conftest.py").write_text(path + conftest)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    assert "1 passed" in run.stdout
    assert "spoke to another machine: socket.getaddrinfo '192.0.2.1'" in run.stdout
    assert run.returncode == 1
