"""What can be wrong with a store is said in one line: where, what, and what to do."""

from __future__ import annotations

import os
import pickle
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from ctxeval import MissingExtraError, Store, StoreError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param("", r"'' is no store: give a path, or a URL", id="nothing"),
        pytest.param(7, r"7 is no store", id="a number"),
        pytest.param("mysql://u:pw@h/d", r"'mysql://u:\*\*\*@h/d': mysql is no d", id="mysql"),
        pytest.param("postgresql+asyncpg://u:pw@h/d", r"asyncpg is no database", id="driver"),
        pytest.param(
            "postgresql://u:pw@h:port/d", r"'postgresql://u:\*\*\*@h:port/d' is", id="port"
        ),
        pytest.param("sqlite:///a.db?mode=ro", r"a path is all that SQLite takes", id="parameters"),
        pytest.param("sqlite://", r"a store in memory would be gone", id="in memory"),
        pytest.param(":memory:", r"a store in memory would be gone", id="in memory too"),
        pytest.param("file://a.db", r"file is no database for a store", id="no database"),
    ],
)
def test_what_can_be_no_store(given: str, said: str) -> None:
    with pytest.raises(StoreError, match=said) as raised:
        Store(given)
    assert "pw" not in str(raised.value)
    assert "pw" not in str(raised.value.__cause__)


def test_what_redacts_must_be_callable() -> None:
    with pytest.raises(StoreError, match="redact: 'x' can't be called: give a function"):
        Store("a.db", redact="x")  # type: ignore[arg-type]


def test_a_file_that_is_no_database(file: Path) -> None:
    file.write_text("These are notes, and no database. " * 100)
    before = file.read_bytes()
    said = f"{re.escape(str(file))}: this file is no SQLite database: give another path"
    with Store(file) as store, pytest.raises(StoreError, match=said):
        store.stats()
    assert file.read_bytes() == before


def test_a_damaged_file(file: Path) -> None:
    with Store(file) as store:
        store.add_tokens(__import__("datetime").date.today(), 1)
    content = bytearray(file.read_bytes())
    content[100:4000] = b"\xff" * 3900
    file.write_bytes(content)
    with Store(file) as store, pytest.raises(StoreError, match="damaged: move it away"):
        store.stats()


def test_a_folder_that_is_missing_and_one_in_the_files_place(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "store.db", tmp_path):
        with Store(path) as store, pytest.raises(StoreError) as raised:
            store.stats()
        assert str(path) in str(raised.value)
    with pytest.raises(StoreError, match="is its folder there"):
        Store(tmp_path / "missing" / "store.db").stats()


@contextmanager
def nobody() -> Iterator[None]:
    """Be no one in particular, for whom permissions count."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_no_permission(tmp_path: Path, record) -> None:
    folder = tmp_path / "private"
    folder.mkdir()
    with Store(folder / "store.db") as store:
        store.put_records([record()])
    (folder / "store.db").chmod(0o444)
    folder.chmod(0o555)
    for parent in (tmp_path, *tmp_path.parents[:2]):  # to be found by anyone
        parent.chmod(parent.stat().st_mode | 0o111)
    try:
        with nobody():
            for path in (folder / "store.db", folder / "new.db"):
                with (
                    Store(path) as store,
                    pytest.raises(StoreError, match=r"writable|may not be written") as raised,
                ):
                    store.put_records([record()])
                assert str(path) in str(raised.value)
    finally:
        folder.chmod(0o755)


def test_a_full_disk_keeps_what_was_there(file: Path, record) -> None:
    def small(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA max_page_count=60").close()

    kept = record("q", "a text")
    with Store(file) as store:
        store.put_records([kept])
    event.listen(Engine, "connect", small)
    try:
        with Store(file) as store:
            with pytest.raises(StoreError, match="the disk is full: make room"):
                store.put_records(record("q", f"{n}" * 9000) for n in range(400))
            assert list(store.records()) == [kept]
            store.put_records([record("q", "a text")])
    finally:
        event.remove(Engine, "connect", small)


def test_locked_for_too_long(file: Path, monkeypatch) -> None:
    monkeypatch.setattr("ctxeval.store.database.PATIENCE", 0.2)
    with Store(file) as store:
        store.stats()
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            assert store.get_many(["key"]) == {}  # reading goes on
            with pytest.raises(StoreError, match="kept writing to it for too long: try again"):
                store.put_many([("key", {"value": True})])
        finally:
            other.execute("ROLLBACK")
            other.close()
        store.put_many([("key", {"value": True})])


def test_a_server_that_is_not_there() -> None:
    pytest.importorskip("psycopg")
    with (
        Store("postgres://me:geheim@127.0.0.1:1/d") as store,
        pytest.raises(StoreError, match="can't be reached: is the server running") as raised,
    ):
        store.stats()
    assert "geheim" not in str(raised.value) + repr(store) + store.place
    assert "127.0.0.1:1" in store.place


def test_a_wrong_password_and_a_wrong_database(postgres: str) -> None:
    for wrong in (postgres.replace("geheim", "falsch"), postgres.replace("/postgres", "/missing")):
        with Store(wrong) as store, pytest.raises(StoreError, match="can't be reached") as raised:
            store.stats()
        assert "4711" not in str(raised.value)


def test_no_right_to_make_tables(new_database) -> None:
    import psycopg

    url = new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'gast'")
    guest = url.replace("ctxeval:geheim-4711", "guest:gast")
    with Store(guest) as store, pytest.raises(StoreError, match="ask for the right to make"):
        store.stats()


@pytest.mark.parametrize(
    ("package", "given", "said"),
    [
        ("sqlalchemy", "a.db", r"the store needs sqlalchemy.*ctxeval\[store\]"),
        ("psycopg", "postgresql://h/d", r"PostgreSQL needs psycopg.*ctxeval\[postgres\]"),
    ],
)
def test_a_missing_extra(package: str, given: str, said: str, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(MissingExtraError, match=said):
        Store(given)


def test_sqlalchemy_is_loaded_when_a_store_is_made(start, finish) -> None:
    code = (
        "import sys, ctxeval; ctxeval.Store; assert 'sqlalchemy' not in sys.modules;"
        "ctxeval.Store('never.db'); assert 'sqlalchemy' in sys.modules;"
        "import os; assert not os.path.exists('never.db')"
    )
    finish(start(code))


def test_a_store_is_sent_by_its_url(new_database, record) -> None:
    one = Store(new_database())
    one.put_records([kept := record("q", "a text")])
    with pickle.loads(pickle.dumps(one)) as other:
        assert other.place == one.place
        assert list(other.records()) == [kept]
    one.close()


def test_a_relative_path_stays_the_same(tmp_path: Path, monkeypatch, record) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store()
    monkeypatch.chdir("/")
    store.put_records([record()])
    store.close()
    assert (tmp_path / "ctxeval.db").exists()
    assert store.place == str(tmp_path / "ctxeval.db")
    assert repr(store) == f"Store({store.place!r})"
    assert sum(1 for _ in store.records()) == 1  # a closed one opens again
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hun@ter3@127.0.0.1:1/x",
        "sqlite:///x.db?password=hunter3",
        "host=127.0.0.1 port=1 password=hunter3",
    ],
)
def test_a_password_in_an_address_that_is_none_is_told_nobody(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError) as caught:
        Store(url)
    assert "hun" not in str(caught.value)
    assert "ter3" not in str(caught.value)
    assert not list(tmp_path.iterdir()), "nothing is taken for a file's name"


def test_a_password_among_the_options_of_an_address_is_told_nobody():
    pytest.importorskip("psycopg")
    store = Store("postgresql://127.0.0.1:1/x?sslpassword=hunter3")
    assert "hunter3" not in repr(store)
    with pytest.raises(StoreError) as caught:
        store.stats()
    assert "hunter3" not in str(caught.value)


@pytest.mark.parametrize("before", [1.5e9, "2027-01-01"])
def test_what_is_no_moment_is_refused(before, tmp_path):
    store = Store(tmp_path / "a.db")
    for removed in (lambda: store.delete(before=before), lambda: store.prune(before)):
        with pytest.raises(StoreError, match="give a datetime"):
            removed()
