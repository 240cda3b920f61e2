"""Stores in real SQLite files and in a real PostgreSQL server, which the session starts."""

from __future__ import annotations

import itertools
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from postgres_server import running_postgres

from ctxeval import Chunk, QueryRecord, Retrieval, Store

NUMBERS = itertools.count()

collect_ignore_glob = [] if find_spec("sqlalchemy") else ["*"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Run a server on the loopback interface; give the URL of its first database."""
    with running_postgres() as server:
        yield server.url


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
