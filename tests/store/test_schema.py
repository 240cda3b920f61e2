"""An older store is migrated, a newer one refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, text

from ctxeval import QueryRecord, Store, StoreError
from ctxeval.store import schema
from ctxeval.store.database import Database
from ctxeval.store.place import find

# The tables as version 1 made them, written down by hand, with one text and one record.
VERSION_1 = """
CREATE TABLE ctxeval_state (name VARCHAR(16) PRIMARY KEY, value BIGINT NOT NULL);
INSERT INTO ctxeval_state VALUES ('version', 1), ('texts', 3), ('generation', 0);
CREATE TABLE ctxeval_texts (
    id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, text BLOB NOT NULL, tag BLOB NOT NULL);
CREATE TABLE ctxeval_records (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE, time BIGINT NOT NULL,
    question BLOB NOT NULL, refs BLOB NOT NULL, data BLOB NOT NULL);
CREATE TABLE ctxeval_runs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL, time BIGINT NOT NULL,
    complete BOOLEAN NOT NULL, size BIGINT NOT NULL, data BLOB NOT NULL);
CREATE TABLE ctxeval_rows (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, run BIGINT NOT NULL, question BLOB,
    refs BLOB NOT NULL, data BLOB NOT NULL);
CREATE TABLE ctxeval_cells (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL, digest BLOB NOT NULL,
    time BIGINT NOT NULL, data BLOB NOT NULL, UNIQUE (key, digest));
CREATE TABLE ctxeval_usage (day INTEGER PRIMARY KEY, tokens BIGINT NOT NULL);
INSERT INTO ctxeval_texts VALUES
    (1, x'01', CAST('["ok","",[]]' AS BLOB), x''), (2, x'02', CAST('[]' AS BLOB), x'');
INSERT INTO ctxeval_records (id, time, question, refs, data) VALUES
    (x'00', 0, x'00', x'0100000002000000',
     CAST('["one","q",null,[],[],[],1,[],[],{},null,null,null,0]' AS BLOB));
"""


@pytest.fixture
def old(file: Path) -> Path:
    with sqlite3.connect(file) as connection:
        connection.executescript(VERSION_1)
    connection.close()
    return file


def version_in(file: Path) -> int:
    connection = sqlite3.connect(file)
    version = connection.execute("SELECT value FROM ctxeval_state WHERE name='version'").fetchone()
    connection.close()
    return int(version[0])


def add_a_table(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE ctxeval_later (id INTEGER)"))


def add_a_column(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE ctxeval_records ADD COLUMN later INTEGER"))


def test_version_1_is_read(old: Path) -> None:
    with Store(old) as store:
        assert list(store.records()) == [QueryRecord("one", "q")]
        store.put_records([QueryRecord("two", "q")])
        assert store.add_tokens(__import__("datetime").date.today(), 1) == 1
        assert sorted(one.id for one in store.records()) == ["one", "two"]


def test_the_migrated_tables_are_those_of_new_stores(old: Path, tmp_path: Path) -> None:
    new = Store(tmp_path / "new.db")
    new.stats()
    with Store(old) as migrated:
        migrated.stats()

    def columns(path: Path) -> dict[str, list[str]]:
        database = Database(find(path))
        found = database.read(
            lambda c: {
                table: sorted(column["name"] for column in inspect(c).get_columns(table))
                for table in inspect(c).get_table_names()
            }
        )
        database.close()
        return found

    assert columns(old) == columns(tmp_path / "new.db")
    new.close()


def test_an_older_one_is_migrated_step_by_step(old: Path, monkeypatch) -> None:
    monkeypatch.setattr(schema, "VERSION", 4)
    monkeypatch.setattr(
        schema, "MIGRATIONS", {**schema.MIGRATIONS, 2: add_a_table, 3: add_a_column}
    )
    with Store(old) as store:
        assert [one.id for one in store.records()] == ["one"]
        assert store.stats().schema == 4
    assert version_in(old) == 4
    with Store(old) as store:  # and not a second time
        assert [one.id for one in store.records()] == ["one"]


def test_a_migration_that_fails_changes_nothing(url: str, monkeypatch) -> None:
    with Store(url) as store:
        store.put_records([QueryRecord("one", "q")])

    def fail(connection: Connection) -> None:
        add_a_table(connection)
        add_a_column(connection)
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(schema, "VERSION", 3)
        patch.setattr(schema, "MIGRATIONS", {2: fail})
        with Store(url) as store, pytest.raises(ZeroDivisionError):
            store.stats()
    with Store(url) as store:
        assert store.stats().schema == 2
        assert list(store.records()) == [QueryRecord("one", "q")]
        store.put_records([QueryRecord("two", "q")])
        tables = store._database.read(lambda c: inspect(c).get_table_names())
        assert "ctxeval_later" not in tables


def test_a_newer_one_is_refused(url: str, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(schema, "VERSION", 9)
        with Store(url) as store:
            store.put_records([QueryRecord("one", "q")])
    with (
        Store(url) as store,
        pytest.raises(StoreError, match="is of version 9, and this one knows up to 2: pip install"),
    ):
        list(store.records())


def test_one_too_old_is_refused(old: Path, monkeypatch) -> None:
    monkeypatch.setattr(schema, "VERSION", 3)
    monkeypatch.setattr(schema, "MIGRATIONS", {2: add_a_column})
    with Store(old) as store, pytest.raises(StoreError, match="from which no way leads to 3"):
        store.stats()
    assert version_in(old) == 1
