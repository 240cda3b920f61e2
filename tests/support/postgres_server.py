"""A PostgreSQL server of the tests' own, on the loopback interface."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "geheim-4711"


def binaries() -> Path | None:
    """Find the folder of initdb and pg_ctl, as Debian's package or a PATH has them."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin")]
    if on_path := shutil.which("initdb"):
        folders.append(Path(on_path).parent)
    return next((one for one in folders if (one / "pg_ctl").exists()), None)


def _unprivileged() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: give the options for subprocess of someone who is not."""
    if os.getuid() != 0:
        return {}
    import pwd

    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = known.get("postgres") or known["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class PostgresServer:
    """A server that runs until `stop`.

    Attributes:
        url: Of its first database.
    """

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder, self._programs, self._someone = folder, programs, _unprivileged()
        if self._someone:
            os.chown(folder, self._someone["user"], self._someone["group"])
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        )
        self.url = f"postgresql://ctxeval:{PASSWORD}@127.0.0.1:{port}/postgres"
        self._run("initdb", "-U", "ctxeval", "-A", "scram-sha-256", f"--pwfile={secret}", "-EUTF8")
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._run("pg_ctl", "-w", "-o", self._options, "-l", str(self._folder / "log"), "start")

    def stop(self) -> None:
        """Stop it as a power cut would."""
        self._run("pg_ctl", "-m", "immediate", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self._folder / "data"), *arguments]
        with (self._folder / "output").open("a") as output:
            done = subprocess.run(
                command,
                cwd=self._folder,
                stdout=output,
                stderr=output,
                env={"LC_ALL": "C"},
                **self._someone,
            )
        assert done.returncode == 0, (self._folder / "output").read_text()


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Run a server; skip the test where there is none on the machine."""
    pytest.importorskip("psycopg")
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL server on this machine: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="ctxeval-postgres-"))
    try:
        server = PostgresServer(folder, programs)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
