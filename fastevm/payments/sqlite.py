"""The default database: one SQLite file, shared by threads and processes of one machine."""

import os
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Final

from fastevm.payments.errors import StoreError, StoreUnavailable
from fastevm.payments.migrations import prepare
from fastevm.payments.schema import (
    APPEND_ONLY,
    OLDER_APPEND_ONLY,
    SQLITE,
    SQLITE_GUARDS,
    SQLITE_OPENED,
    TABLES,
)

MEMORY: Final = ":memory:"
BUSY_SECONDS: Final = 10.0  # seconds that a writer waits for another writer
HEADER: Final = b"SQLite format 3\0"  # the first bytes of every SQLite database file
OWN_TABLES: Final = frozenset({"layout"})
OWNER_ONLY: Final = stat.S_IRUSR | stat.S_IWUSR
LOOK_SECONDS: Final = 0.02  # seconds between polls for changes

_SETTINGS: Final = (
    "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON",
)  # fmt: skip


AUDIT_INDEX: Final = "audit_by_order"

# Name, type, NOT NULL, default, part of the primary key, hidden: as PRAGMA table_xinfo shows them.
AUDIT_COLUMNS: Final = [
    ("number", "INTEGER", 0, None, 1, 0),
    ("shop", "TEXT", 1, None, 0, 0),
    ("order_id", "TEXT", 1, None, 0, 0),
    ("at", "DOUBLE PRECISION", 1, None, 0, 0),
    *((name, "TEXT", 1, None, 0, 0) for name in ("actor", "what", "before", "after", "detail")),
]


@contextmanager
def store_errors(path: str) -> Iterator[None]:
    """Turns SQLite's errors, except violated constraints, into StoreUnavailable and StoreError."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(f"store {path}: {error}") from None
    except (sqlite3.Error, OverflowError) as error:  # a number has more than 64 bits
        raise StoreError(f"store {path}: {error}") from None


class SqliteConnection:
    """A connection inside the only write transaction."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection, self._path = connection, path

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Runs one statement."""
        with store_errors(self._path):
            return self._connection.execute(statement, values)

    def executemany(self, statement: str, values: Iterable[Sequence[Any]]) -> None:
        """Runs one statement for each row of values."""
        with store_errors(self._path):
            self._connection.executemany(statement, values)

    def lock(self, name: str) -> None:
        """Does nothing: a write transaction locks the whole file."""

    def notify(self, shop: str) -> None:
        """Does nothing: watchers poll the file."""


class SqliteDatabase:
    """An SQLite connection with a lock. Transactions are durable when they commit."""

    for_update = ""
    skip_locked = ""
    unique_violation = sqlite3.IntegrityError

    def __init__(self, path: str) -> None:
        if path != MEMORY:
            make_private(Path(path), OWN_TABLES)
        try:
            self._connection = _connected(path)
            for setting in _SETTINGS:
                self._connection.execute(f"PRAGMA {setting}")
        except sqlite3.Error as error:
            raise StoreError(f"store {path} cannot be opened: {error}") from None
        self.path = path
        self._lock = RLock()
        with self.transaction() as connection:
            prepare(connection, path, SQLITE, SQLITE_GUARDS)
            check_audit_table(connection, path)
            for statement in SQLITE_OPENED:
                connection.execute(statement)
            check_audit_triggers(connection, path)

    @contextmanager
    def transaction(self) -> Iterator[SqliteConnection]:
        """Starts an atomic write transaction. Waits for other writers before it begins."""
        with self._lock:
            connection = SqliteConnection(self._connection, self.path)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # if the disk is full, SQLite has already ended the transaction
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Returns the rows of one SELECT."""
        with self._lock, store_errors(self.path):
            return self._connection.execute(statement, values).fetchall()

    def watch(self) -> "SqliteWatch":
        """Starts to poll the file's change counter."""
        return SqliteWatch(self)

    def changes(self) -> tuple[int, int]:
        """Returns the number of changes by other connections, and by this connection."""
        with self._lock, store_errors(self.path):
            (others,) = self._connection.execute("PRAGMA data_version").fetchone()
            return others, self._connection.total_changes

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._connection.close()


def check_audit_table(connection: SqliteConnection, path: str) -> None:
    """Raises StoreError if the columns of the audit trail were altered."""
    rows = connection.execute("PRAGMA table_xinfo(audit)").fetchall()
    found = [tuple(row)[1:] for row in rows]
    if found != AUDIT_COLUMNS:
        names = ", ".join(str(column[0]) for column in found) or "none"
        raise StoreError(f"store {path}: the table of the audit trail was altered: columns {names}")


def check_audit_triggers(connection: SqliteConnection, path: str) -> None:
    """Raises StoreError if the triggers or indices of the audit trail were altered.

    A further index is refused, because a unique index would let INSERT OR REPLACE delete entries.
    """
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_master"
        " WHERE type IN ('trigger', 'index') AND lower(tbl_name) = 'audit'"
    ).fetchall()
    found = {row["name"]: _words(row["sql"]) for row in rows if row["type"] == "trigger"}
    indices = {row["name"]: row["sql"] for row in rows if row["type"] == "index"}
    made = next(each for each in TABLES if f" {AUDIT_INDEX} " in each)
    if {name: _words(sql or "") for name, sql in indices.items()} != {AUDIT_INDEX: _words(made)}:
        names = ", ".join(sorted(indices)) or "none"
        raise StoreError(f"store {path}: the indices of the audit trail are altered: {names}")
    wanted = {
        (words := _words(statement)).split()[2]: words
        for statement in (*SQLITE_GUARDS, *SQLITE_OPENED)
    }
    wrong = sorted(
        name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)
    )
    if wrong:
        names = ", ".join(wrong)
        text = f"store {path}: triggers of the audit trail are missing or altered: {names}"
        raise StoreError(text)


def _words(statement: str) -> str:
    now = statement.replace("IF NOT EXISTS ", "").replace(OLDER_APPEND_ONLY, APPEND_ONLY)
    return " ".join(now.split())


class SqliteWatch:
    """Waits for changes by polling, because SQLite has no notifications across processes."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._known = database.changes()

    def wait(self, seconds: float) -> bool:
        """Returns whether something changed within ``seconds``."""
        deadline = time.monotonic() + seconds
        while True:
            now = self._database.changes()
            if now != self._known:
                self._known = now
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(LOOK_SECONDS)

    def close(self) -> None:
        """Does nothing."""


def _connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    return connection


def make_private(path: Path, own: Set[str]) -> None:
    """Lets only the owner read and write a database file. Creates a missing file.

    ``own`` are the names of this package's tables. Raises StoreError if the file is not empty and
    has none of these tables. The file then stays unchanged.
    """
    try:
        if path.exists():
            _check_is_own(path, own)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
        try:
            if os.fstat(descriptor).st_mode & ~OWNER_ONLY & 0o777:
                os.fchmod(descriptor, OWNER_ONLY)
        finally:
            os.close(descriptor)
        for suffix in ("-wal", "-shm"):
            beside = path.with_name(path.name + suffix)
            if beside.exists():
                beside.chmod(OWNER_ONLY)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = getattr(error, "strerror", None) or str(error)
        raise StoreError(f"store {path} cannot be opened: {why}") from None


def _check_is_own(path: Path, own: Set[str]) -> None:
    """Raises StoreError if the file is neither empty nor a database of this package."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise StoreError(f"store {path} is not a regular file")
    with path.open("rb") as file:
        beginning = file.read(len(HEADER))
    if not beginning:
        return
    if beginning != HEADER:
        raise StoreError(f"store {path} is not an SQLite database")
    uri = f"{path.resolve().as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {str(name) for (name,) in rows}
    except sqlite3.Error as error:
        raise StoreError(f"store {path} cannot be opened: {error}") from None
    if names and not names & own:
        raise StoreError(f"store {path} is a database of another program")
