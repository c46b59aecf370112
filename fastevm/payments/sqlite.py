"""The default database: one SQLite file, shared by threads and processes of one machine."""

import os
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Final

from fastevm.payments.errors import StoreError, StoreUnavailable
from fastevm.payments.migrations import prepare
from fastevm.payments.schema import SQLITE, SQLITE_GUARDS

MEMORY: Final = ":memory:"
BUSY_SECONDS: Final = 10.0  # that a writer waits for another
OWNER_ONLY: Final = stat.S_IRUSR | stat.S_IWUSR
LOOK_SECONDS: Final = 0.02  # between two looks whether another process has written

_SETTINGS: Final = (
    "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON",
)  # fmt: skip


class SqliteConnection:
    """A connection inside a transaction, which is the only one that writes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run one statement."""
        return self._connection.execute(statement, values)

    def executemany(self, statement: str, values: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of values."""
        self._connection.executemany(statement, values)

    def lock(self, name: str) -> None:
        """Nothing to do: this transaction has the whole file."""

    def notify(self, shop: str) -> None:
        """Nothing to do: who waits sees that the file has changed."""


class SqliteDatabase:
    """A connection with its lock. Every change is on disk when its transaction ends."""

    for_update = ""
    skip_locked = ""
    unique_violation = sqlite3.IntegrityError

    def __init__(self, path: str) -> None:
        if path != MEMORY:
            _make_private(Path(path))
        try:
            self._connection = _connected(path)
            for setting in _SETTINGS:
                self._connection.execute(f"PRAGMA {setting}")
        except sqlite3.Error as error:
            raise StoreError(f"the store {path} cannot be opened: {error}") from None
        self.path = path
        self._lock = RLock()
        with self.transaction() as connection:
            prepare(connection, path, SQLITE, SQLITE_GUARDS)

    @contextmanager
    def transaction(self) -> Iterator[SqliteConnection]:
        """All or nothing. The first statement waits for other writers, so what it reads is new."""
        with self._lock:
            self._run("BEGIN IMMEDIATE")
            try:
                yield SqliteConnection(self._connection)
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._run("COMMIT")

    def _run(self, statement: str) -> None:
        try:
            self._connection.execute(statement)
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"the store {self.path}: {error}") from None

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of one SELECT."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def watch(self) -> "SqliteWatch":
        """Begin to look at the file's counter of changes."""
        return SqliteWatch(self)

    def changes(self) -> tuple[int, int]:
        """Two numbers that are others after a change, by another connection or by this one."""
        with self._lock:
            (others,) = self._connection.execute("PRAGMA data_version").fetchone()
            return others, self._connection.total_changes

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()


class SqliteWatch:
    """Looks again and again: a file tells nobody that it has changed."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._known = database.changes()

    def wait(self, seconds: float) -> bool:
        """Whether something has changed within ``seconds``."""
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
        """Nothing to give back."""


def _connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    return connection


def _make_private(path: Path) -> None:
    """The file is its owner's alone, from before the first byte is in it, or from now on."""
    try:
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
    except OSError as error:
        raise StoreError(f"the store {path} cannot be opened: {error.strerror}") from None
