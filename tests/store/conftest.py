"""Stores in real SQLite files and in a real PostgreSQL server, which the session starts."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ctxeval import Chunk, QueryRecord, Retrieval, Store

NUMBERS = itertools.count()
PASSWORD = "geheim-4711"

collect_ignore_glob = [] if find_spec("sqlalchemy") else ["*"]


def server_binaries() -> Path | None:
    """Find the folder of initdb and pg_ctl, as Debian's package or a PATH has them."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin")]
    if on_path := shutil.which("initdb"):
        folders.append(Path(on_path).parent)
    return next((one for one in folders if (one / "pg_ctl").exists()), None)


def unprivileged() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: give the options for subprocess of someone who is not."""
    if os.getuid() != 0:
        return {}
    import pwd

    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = known.get("postgres") or known["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Run a server on the loopback interface; give the URL of its first database."""
    pytest.importorskip("psycopg")
    binaries = server_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server on this machine: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="ctxeval-postgres-"))
    someone = unprivileged()
    if someone:
        os.chown(folder, someone["user"], someone["group"])
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(program: str, *arguments: str) -> None:
        command = [str(binaries / program), "-D", str(folder / "data"), *arguments]
        with (folder / "output").open("a") as output:
            done = subprocess.run(
                command, cwd=folder, stdout=output, stderr=output, env={"LC_ALL": "C"}, **someone
            )
        assert done.returncode == 0, (folder / "output").read_text()

    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    try:
        run("initdb", "-U", "ctxeval", "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8")
        run("pg_ctl", "-w", "-o", options, "-l", str(folder / "log"), "start")
        try:
            yield f"postgresql://ctxeval:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def new_database(postgres: str) -> Iterator[Callable[[], str]]:
    """Make a fresh database of PostgreSQL at each call."""
    import psycopg

    made = []

    def make() -> str:
        name = f"store_{uuid.uuid4().hex}"
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        made.append(name)
        return postgres.removesuffix("postgres") + name

    yield make
    with psycopg.connect(postgres, autocommit=True) as connection:
        for name in made:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of a fresh database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    made: str = request.getfixturevalue("new_database")()
    return made


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give the path of an SQLite store that is not there yet."""
    return tmp_path / "store.db"


@pytest.fixture(scope="session")
def record() -> Callable[..., QueryRecord]:
    """Make a record of a question and the texts that were retrieved for it."""

    def make(question: str = "q", *texts: str, id: str = "", **fields: Any) -> QueryRecord:
        chunks = [Chunk(rank, f"id of {t[:9]}", "document_id", t) for rank, t in enumerate(texts)]
        stage = Retrieval(question, tuple(chunks))
        return QueryRecord(id or f"run-{next(NUMBERS)}", question, retrievals=[stage], **fields)

    return make


@pytest.fixture(scope="session")
def start() -> Callable[..., subprocess.Popen[str]]:
    """Start another Python, with `sys.argv[1:]` as given."""

    def popen(code: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
        return subprocess.Popen(
            command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    return popen


@pytest.fixture(scope="session")
def finish() -> Callable[..., list[str]]:
    """Wait for processes, which must end well; give what they printed."""

    def wait(*processes: subprocess.Popen[str]) -> list[str]:
        outputs = [process.communicate()[0] for process in processes]
        for process, output in zip(processes, outputs, strict=True):
            assert process.returncode == 0, output
        return outputs

    return wait
