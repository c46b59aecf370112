"""What was paid for and what was given for it: one payment buys one answer to one request.

The chain knows whether a payment happened, not what for. A grant binds it to the first request that
brought it; asking again with the same payment gives the same answer, another request is refused.
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

MOST_GRANTS: Final = 100_000  # that memory holds
LONGEST_COPY: Final = 262_144  # bytes of an answer that is kept to be given again
BUSY_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer over HTTP."""

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = field(default=b"", repr=False)


class Phase(Enum):
    """How far a grant is: begun, paid (and perhaps answered), or given."""

    BEGUN = "begun"
    PAID = "paid"
    GIVEN = "given"


class Grant(Struct, frozen=True):
    """One payment and its request. ``receipt`` is the header that tells of the settlement."""

    key: str
    request: str
    phase: Phase = Phase.BEGUN
    receipt: str = ""
    reply: Reply | None = None
    expires: float = 0.0


class Grants(Protocol):
    """Keeps grants until their payments cannot be presented any more."""

    def get(self, key: str) -> Grant | None:
        """The grant of a payment."""
        ...

    def put(self, grant: Grant) -> None:
        """Keep it, in place of the one before."""
        ...

    def add(self, grant: Grant) -> Grant | None:
        """Keep a new one; or the one that is there, which stays."""
        ...

    def drop(self, key: str) -> None:
        """Forget one: nothing was paid."""
        ...


class MemoryGrants:
    """Grants of one process; after a restart a paid answer may be given once more."""

    def __init__(self) -> None:
        self._grants: dict[str, Grant] = {}

    def get(self, key: str) -> Grant | None:
        """The grant of a payment."""
        return self._grants.get(key)

    def put(self, grant: Grant) -> None:
        """Keep it; the oldest go when there are too many, those that have expired first."""
        self._grants[grant.key] = without_long_copy(grant)
        if len(self._grants) > MOST_GRANTS:
            now = time.time()
            gone = [key for key, one in self._grants.items() if one.expires < now]
            for key in gone or list(self._grants)[: MOST_GRANTS // 10]:
                del self._grants[key]

    def add(self, grant: Grant) -> Grant | None:
        """Keep a new one; or the one that is there, which stays."""
        known = self._grants.get(grant.key)
        if known is None:
            self.put(grant)
        return known

    def drop(self, key: str) -> None:
        """Forget one."""
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
        """The grant of a payment."""
        with closing(self._open()) as connection:
            return _read(connection, key)

    def put(self, grant: Grant) -> None:
        """Keep it, in place of the one before."""
        with closing(self._open()) as connection, connection:
            connection.execute(
                "INSERT OR REPLACE INTO grants VALUES (?,?,?,?,?,?,?,?)", _row(grant)
            )

    def add(self, grant: Grant) -> Grant | None:
        """Keep a new one; or the one that is there, which stays."""
        with closing(self._open()) as connection, connection:
            added = connection.execute(
                "INSERT OR IGNORE INTO grants VALUES (?,?,?,?,?,?,?,?)", _row(grant)
            )
            return None if added.rowcount else _read(connection, grant.key)

    def drop(self, key: str) -> None:
        """Forget one."""
        with closing(self._open()) as connection, connection:
            connection.execute("DELETE FROM grants WHERE key = ?", (key,))


def without_long_copy(grant: Grant) -> Grant:
    """The grant without an answer that is too long to be kept: it is made again when asked for."""
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


class Turns:
    """One at a time for each payment, within a process."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    async def take(self, key: str) -> None:
        """Wait for the turn."""
        lock, waiting = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = lock, waiting + 1
        await lock.acquire()

    def leave(self, key: str) -> None:
        """Let the next one."""
        lock, waiting = self._locks[key]
        lock.release()
        if waiting == 1:
            del self._locks[key]
        else:
            self._locks[key] = lock, waiting - 1
