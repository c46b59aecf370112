"""One SQLite file, shared by threads and processes: short transactions, one writer at a time."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Final

from fastevm.payments.errors import StoreError
from fastevm.payments.schema import TABLES, VERSION

MEMORY: Final = ":memory:"
BUSY_SECONDS: Final = 10.0  # that a writer waits for another
OWNER_ONLY: Final = stat.S_IRUSR | stat.S_IWUSR


class Database:
    """A connection with its lock. Every change is on disk when its transaction ends."""

    def __init__(self, path: str) -> None:
        if path != MEMORY:
            _make_private(Path(path))
        try:
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.row_factory = sqlite3.Row
            for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                self._connection.execute(f"PRAGMA {setting}")
        except sqlite3.Error as error:
            raise StoreError(f"the store {path} cannot be opened: {error}") from None
        self._lock = RLock()
        self._prepare(path)

    def _prepare(self, path: str) -> None:
        with self.transaction() as connection:
            for statement in TABLES:
                connection.execute(statement)
            row = connection.execute("SELECT version FROM layout").fetchone()
            if row is None:
                connection.execute("INSERT INTO layout VALUES (?)", (VERSION,))
            elif row["version"] != VERSION:
                raise StoreError(
                    f"the store {path} has layout {row['version']}, this version knows {VERSION}"
                )

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing. The first statement waits for other writers, so what it reads is new."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def read(self, statement: str, values: Any = ()) -> list[sqlite3.Row]:
        """The rows of one SELECT."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()


def _make_private(path: Path) -> None:
    """The file is its owner's alone, from before the first byte is in it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
    except OSError as error:
        raise StoreError(f"the store {path} cannot be opened: {error.strerror}") from None
    os.close(descriptor)


def marks(count: int) -> str:
    """So many placeholders, for an IN list."""
    return ", ".join("?" * count)
