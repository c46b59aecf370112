"""Tests files that a caller names as a store. Files of other programs stay unchanged."""

import os
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from fastevm.payments import open_store
from fastevm.payments.errors import StoreError, StoreUnavailable, UnreadableRow
from fastevm.payments.sqlite import SqliteDatabase
from fastevm.payments.x402.grants import FileGrants, Grant


def store_at(path: Path) -> None:
    open_store(f"sqlite:///{path}").close()


OPENERS = [store_at, FileGrants]
Opener = Callable[[Path], object]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("opened", OPENERS)
def test_a_file_that_is_no_database_stays_as_it_is(tmp_path: Path, opened: Opener) -> None:
    path = tmp_path / "passwd"
    path.write_text("root:x:0:0:root:/root:/bin/bash\n")
    path.chmod(0o644)
    with pytest.raises(StoreError, match="is not an SQLite database"):
        opened(path)
    assert mode_of(path) == 0o644
    assert path.read_text().startswith("root:x:0")


@pytest.mark.parametrize("opened", OPENERS)
def test_a_database_of_another_program_stays_as_it_is(tmp_path: Path, opened: Opener) -> None:
    path = tmp_path / "cookies.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE cookies (name TEXT)")
    path.chmod(0o644)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is a database of another program"):
        opened(path)
    assert mode_of(path) == 0o644
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("opened", OPENERS)
def test_a_pipe_and_a_folder_are_refused_without_waiting(tmp_path: Path, opened: Opener) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(StoreError, match="is not a regular file"):
            opened(path)


@pytest.mark.parametrize("opened", OPENERS)
def test_new_empty_and_own_files_become_private(tmp_path: Path, opened: Opener) -> None:
    new, empty = tmp_path / "new.db", tmp_path / "empty.db"
    empty.touch(mode=0o644)
    for path in (new, empty, new):
        opened(path)
        assert mode_of(path) == 0o600
        path.chmod(0o644)


def test_a_full_disk_is_an_error_of_the_store_and_changes_nothing(tmp_path: Path) -> None:
    database = SqliteDatabase(str(tmp_path / "orders.db"))
    (pages,) = database.read("PRAGMA page_count")[0]
    database.read(f"PRAGMA max_page_count = {pages + 1}")
    with (
        pytest.raises(StoreUnavailable, match=r"store .*orders\.db: database or disk is full"),
        database.transaction() as connection,
    ):
        connection.execute("CREATE TABLE filler (bytes BLOB)")
        connection.execute("INSERT INTO filler VALUES (zeroblob(1000000))")
    database.read("PRAGMA max_page_count = 100000")
    with database.transaction() as connection:
        connection.execute("CREATE TABLE filler (bytes BLOB)")
    assert database.read("SELECT * FROM filler") == []
    database.close()


def test_a_damaged_file_and_a_closed_store_are_errors_of_the_store(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    database = SqliteDatabase(str(path))
    with database.transaction() as connection:
        connection.execute("CREATE TABLE filler (bytes BLOB)")
        connection.execute("INSERT INTO filler VALUES (zeroblob(100000))")
    database.close()
    database = SqliteDatabase(str(path))
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    for _ in range(2):
        with pytest.raises(StoreError, match=r"store .*orders\.db"):
            database.read("SELECT sum(length(bytes)) FROM filler")
    database.close()
    with pytest.raises(StoreError, match="closed database"):
        database.read("SELECT 1")
    with pytest.raises(StoreError, match="closed database"), database.transaction():
        pass


def test_errors_of_a_file_of_grants_are_errors_of_the_store(tmp_path: Path) -> None:
    path = tmp_path / "grants.db"
    grants = FileGrants(path)
    now = time.time()
    grant = Grant(
        key="a", request="r", payload="p", secret="s", claim="c", holder="h", since=now,
        expires=now + 600,
    )  # fmt: skip
    assert grants.add(grant) is None and grants.get("a") == grant
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE payments SET phase = 'odd'")
    with pytest.raises(UnreadableRow, match=r"store .*grants\.db: the grant a cannot be read"):
        grants.get("a")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE payments SET phase = 'given', status = 200, headers = '[1]'")
    with pytest.raises(UnreadableRow):
        grants.get("a")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE payments")
        connection.execute("CREATE TABLE payments (key TEXT PRIMARY KEY CHECK (key = 'b'))")
    calls = [
        lambda: grants.get("a"),
        lambda: grants.add(grant),
        lambda: grants.put(grant, "h"),
        lambda: grants.drop("a", "h"),
        lambda: grants.renew("a", "h", now),
    ]
    for call in calls:
        with pytest.raises(StoreError, match=r"store .*grants\.db: "):
            call()
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 8000)
    for call in calls:
        with pytest.raises(StoreError, match=r"store .*grants\.db: "):
            call()
