"""Grants: bind a payment to one request, and keep its answer.

The chain shows that a payment happened, not for which request. A grant binds it to the first
request that presented it. The same request with the same payment gets the same answer; another
request is refused.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from sqlite3 import Connection, connect
from typing import Final, Protocol

from msgspec import Struct

from fastevm.core.primitives.replace import replace

MOST_GRANTS: Final = 100_000  # kept in memory
LONGEST_COPY: Final = 262_144  # bytes; longer answers are not kept
BUSY_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response."""

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = field(default=b"", repr=False)


class Phase(Enum):
    """The progress of a grant: BEGUN, PAID (perhaps answered), GIVEN (answered)."""

    BEGUN = "begun"
    PAID = "paid"
    GIVEN = "given"


class Grant(Struct, frozen=True):
    """A payment and its request. ``receipt`` is the value of the payment response header."""

    key: str
    request: str
    phase: Phase = Phase.BEGUN
    receipt: str = ""
    reply: Reply | None = None
    expires: float = 0.0


class Grants(Protocol):
    """Stores grants until their payments have expired."""

    def get(self, key: str) -> Grant | None:
        """Returns the grant of a payment."""
        ...

    def put(self, grant: Grant) -> None:
        """Stores a grant; replaces the old one."""
        ...

    def add(self, grant: Grant) -> Grant | None:
        """Adds a grant. If the key exists, returns the existing grant unchanged."""
        ...

    def drop(self, key: str) -> None:
        """Deletes a grant: nothing was paid."""
        ...


class MemoryGrants:
    """Grants in memory; after a restart a paid answer may be given once more."""

    def __init__(self) -> None:
        self._grants: dict[str, Grant] = {}

    def get(self, key: str) -> Grant | None:
        """Returns the grant of a payment."""
        return self._grants.get(key)

    def put(self, grant: Grant) -> None:
        """Stores a grant; beyond ``MOST_GRANTS`` deletes expired grants, or else the oldest."""
        self._grants[grant.key] = without_long_copy(grant)
        if len(self._grants) > MOST_GRANTS:
            now = time.time()
            gone = [key for key, grant in self._grants.items() if grant.expires < now]
            for key in gone or list(self._grants)[: MOST_GRANTS // 10]:
                del self._grants[key]

    def add(self, grant: Grant) -> Grant | None:
        """Adds a grant. If the key exists, returns the existing grant unchanged."""
        known = self._grants.get(grant.key)
        if known is None:
            self.put(grant)
        return known

    def drop(self, key: str) -> None:
        """Deletes a grant."""
        self._grants.pop(key, None)


class FileGrants:
    """Grants in an SQLite file, shared by the processes of a server and kept over restarts."""

    def __init__(self, path: Path | str) -> None:
        self.path = str(path)
        with closing(self._open()) as connection, connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS grants (key TEXT PRIMARY KEY, request TEXT NOT NULL,"
                " phase TEXT NOT NULL, receipt TEXT NOT NULL, status INTEGER, headers TEXT,"
                " body BLOB, expires REAL NOT NULL)"
            )
            connection.execute("DELETE FROM grants WHERE expires < ?", (time.time(),))

    def _open(self) -> Connection:
        return connect(self.path, timeout=BUSY_SECONDS)

    def get(self, key: str) -> Grant | None:
        """Returns the grant of a payment."""
        with closing(self._open()) as connection:
            return _read(connection, key)

    def put(self, grant: Grant) -> None:
        """Stores a grant; replaces the old one."""
        with closing(self._open()) as connection, connection:
            connection.execute(
                "INSERT OR REPLACE INTO grants VALUES (?,?,?,?,?,?,?,?)", _row(grant)
            )

    def add(self, grant: Grant) -> Grant | None:
        """Adds a grant. If the key exists, returns the existing grant unchanged."""
        with closing(self._open()) as connection, connection:
            added = connection.execute(
                "INSERT OR IGNORE INTO grants VALUES (?,?,?,?,?,?,?,?)", _row(grant)
            )
            return None if added.rowcount else _read(connection, grant.key)

    def drop(self, key: str) -> None:
        """Deletes a grant."""
        with closing(self._open()) as connection, connection:
            connection.execute("DELETE FROM grants WHERE key = ?", (key,))


def without_long_copy(grant: Grant) -> Grant:
    """Returns the grant without an answer above ``LONGEST_COPY``; the handler then runs again."""
    long = grant.reply is not None and len(grant.reply.body) > LONGEST_COPY
    return replace(grant, reply=None) if long else grant


def _row(grant: Grant) -> tuple[object, ...]:
    reply = without_long_copy(grant).reply
    status, headers, body = (
        (reply.status, json.dumps(list(reply.headers)), reply.body) if reply else (None, None, None)
    )
    return (
        grant.key, grant.request, grant.phase.value, grant.receipt, status, headers, body,
        grant.expires,
    )  # fmt: skip


def _read(connection: Connection, key: str) -> Grant | None:
    row = connection.execute("SELECT * FROM grants WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    _, request, phase, receipt, status, headers, body, expires = row
    reply = None
    if status is not None:
        reply = Reply(status, [(name, value) for name, value in json.loads(headers)], body)
    return Grant(key, request, Phase(phase), receipt, reply, expires)


class PaymentLocks:
    """Locks by payment, within a process."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    async def acquire(self, key: str) -> None:
        """Acquires the lock of a payment."""
        lock, waiting = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = lock, waiting + 1
        await lock.acquire()

    def release(self, key: str) -> None:
        """Releases the lock of a payment."""
        lock, waiting = self._locks[key]
        lock.release()
        if waiting == 1:
            del self._locks[key]
        else:
            self._locks[key] = lock, waiting - 1
