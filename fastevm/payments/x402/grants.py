"""Grants bind a payment to one request and keep the answer.

The chain shows that a payment happened, but not for which request. A grant binds the payment to the
first request that presented it with a valid signature. One process holds a grant: it runs the
handler and stores the answer.
"""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from pathlib import Path
from sqlite3 import Connection, IntegrityError, connect
from typing import Any, Final, Protocol

from msgspec import Struct

from fastevm.core.primitives.replace import replace
from fastevm.payments.arguments import checked
from fastevm.payments.errors import StoreError, UnreadableRow
from fastevm.payments.hidden import hiding
from fastevm.payments.sqlite import make_private, store_errors
from fastevm.payments.x402.messages import Malformed, Requirements
from fastevm.payments.x402.reasons import Unavailable

MOST_GRANTS: Final = 100_000  # kept in memory
MOST_BYTES: Final = 256 * 1024 * 1024  # of answers kept in memory
LONGEST_COPY: Final = 262_144  # bytes; longer answers are deleted after LONG_COPY_SECONDS
LONG_COPY_SECONDS: Final = 600.0  # enough for a payer to ask again after a broken connection
BUSY_SECONDS: Final = 10.0
SWEEP_SECONDS: Final = 60.0  # seconds between deletions of expired grants


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response."""

    status: int
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)  # may contain cookies
    body: bytes = field(default=b"", repr=False)


class Phase(Enum):
    """The state of a grant.

    BEGUN: accepted. SETTLING: the transaction may be on the chain. PAID: the payment is
    confirmed. GIVEN: the answer was sent.
    """

    BEGUN = "begun"
    SETTLING = "settling"
    PAID = "paid"
    GIVEN = "given"


@hiding("payload", "secret", "claim", "holder")
class Grant(Struct, frozen=True, kw_only=True):
    """A payment and its request.

    ``key`` identifies the payment, ``request`` is a hash of the request. ``payload`` is a hash of
    the signed payload, ``secret`` a hash of the payload and the payment's secret id: each of these
    hashes can prove that a caller is the payer (see `purchase`). ``claim`` is the random key for
    `Engine.settle`. ``holder`` is the id of the paywall that works on the grant, or empty;
    ``since`` is when the paywall last stored or renewed the grant. ``proved`` is when the newest
    answered challenge was made, in Unix milliseconds. ``receipt`` is the value of the payment
    response header. ``offer`` is the offer that the payer accepted. It applies to this payment even
    if the price of the sale changes later.
    """

    key: str
    request: str
    payload: str
    secret: str
    claim: str
    holder: str
    since: float
    expires: float
    phase: Phase = Phase.BEGUN
    proved: int = 0
    receipt: str = ""
    reply: Reply | None = None
    offer: Requirements | None = None


class Grants(Protocol):
    """Stores grants until they expire; an expired grant counts as missing. Methods are atomic."""

    def get(self, key: str) -> Grant | None:
        """Returns the grant of a payment."""
        ...

    def add(self, grant: Grant) -> Grant | None:
        """Adds a grant. If the key exists, returns the existing grant unchanged.

        Raises GrantsFull if the store is full of grants whose answer was not sent yet.
        """
        ...

    def put(self, grant: Grant, holder: str, proved: int | None = None) -> bool:
        """Replaces the stored grant if ``holder`` holds it. Returns whether it was replaced.

        With ``proved``, the stored grant must also have this value of ``proved``.
        """
        ...

    def renew(self, key: str, holder: str, since: float) -> None:
        """Sets ``since`` of a grant, and nothing else, if ``holder`` holds it."""
        ...

    def drop(self, key: str, holder: str) -> None:
        """Deletes a grant if ``holder`` holds it. Call it when nothing was paid."""
        ...


class GrantsFull(Unavailable):
    """The store of grants is full. Nothing was charged. The paywall answers with status 503."""


@checked
class MemoryGrants:
    """Grants in the memory of one process. After a restart a paid answer cannot be sent again.

    Several processes of a server, such as workers, need `FileGrants`: otherwise each process
    answers 409 to payments that another process accepted.

    Above ``most`` grants, the oldest answered grants are deleted. Above ``most_bytes`` of answers,
    the oldest sent answers are deleted. Grants without a sent answer stay until they expire. If
    they fill the memory, new payments are refused.
    """

    def __init__(
        self,
        *,
        most: int = MOST_GRANTS,
        most_bytes: int = MOST_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.most, self.most_bytes, self._clock = most, most_bytes, clock
        self._grants: dict[str, Grant] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> Grant | None:
        """Returns the grant of a payment."""
        with self._lock:
            return self._get(key)

    def add(self, grant: Grant) -> Grant | None:
        """Adds a grant. If the key exists, returns the existing grant unchanged."""
        with self._lock:
            known = self._get(grant.key)
            if known is None:
                self._check_room()
                self._set(grant)
            return known

    def put(self, grant: Grant, holder: str, proved: int | None = None) -> bool:
        """Replaces the stored grant if ``holder`` holds it. Returns whether it did."""
        with self._lock:
            known = self._get(grant.key)
            if known is None or not _replaceable(known, holder, proved):
                return False
            self._set(grant)
            return True

    def renew(self, key: str, holder: str, since: float) -> None:
        """Sets ``since`` of a grant, and nothing else, if ``holder`` holds it."""
        with self._lock:
            known = self._get(key)
            if known is not None and known.holder == holder:
                self._grants[key] = replace(known, since=since)

    def drop(self, key: str, holder: str) -> None:
        """Deletes a grant if ``holder`` holds it."""
        with self._lock:
            known = self._get(key)
            if known is not None and known.holder == holder:
                self._remove(key)

    def _get(self, key: str) -> Grant | None:
        found = self._grants.get(key)
        if found is not None and found.expires <= self._clock():
            self._remove(key)
            return None
        if found is not None:
            kept = without_long_copy(found, self._clock())
            if kept is not found:
                self._bytes -= _length(found)
                self._grants[key] = found = kept
        return found

    def _set(self, grant: Grant) -> None:
        """Stores a grant as the newest."""
        self._remove(grant.key)
        self._grants[grant.key] = grant
        self._bytes += _length(grant)
        if self._bytes > self.most_bytes:
            self._forget_answers(grant.key)

    def _remove(self, key: str) -> None:
        known = self._grants.pop(key, None)
        self._bytes -= 0 if known is None else _length(known)

    def _check_room(self) -> None:
        """Deletes expired grants or, if none has expired, the oldest answered grants.

        Deletes answered grants up to about a tenth of ``most``. Raises GrantsFull if the store
        stays full.
        """
        if len(self._grants) >= self.most:
            now = self._clock()
            gone = [key for key, grant in self._grants.items() if grant.expires <= now]
            if not gone:
                given = (key for key, grant in self._grants.items() if grant.phase is Phase.GIVEN)
                gone = list(islice(given, self.most // 10 + 1))
            for key in gone:
                self._remove(key)
        if self._bytes > self.most_bytes:
            self._forget_answers("")
        if len(self._grants) >= self.most or self._bytes > self.most_bytes:
            raise GrantsFull("too many payments without an answer: try again later")

    def _forget_answers(self, newest: str) -> None:
        """Deletes answers that were sent, the oldest first, until half of the limit is free.

        Keeps the grants, so that no payment gets a second answer. Also keeps the answer of
        ``newest``.
        """
        for key, known in list(self._grants.items()):
            if self._bytes <= self.most_bytes // 2:
                return
            if known.phase is Phase.GIVEN and known.reply is not None and key != newest:
                self._bytes -= _length(known)
                self._grants[key] = replace(known, reply=None)


_COLUMNS: Final = (
    "key", "request", "payload", "secret", "claim", "holder", "since", "expires", "phase",
    "proved", "receipt", "status", "headers", "body", "offer",
)  # fmt: skip
OWN_TABLES: Final = frozenset({"payments", "grants"})  # older versions have the table "grants"
_INSERT: Final = f"INTO payments VALUES ({', '.join('?' * len(_COLUMNS))})"


@checked
class FileGrants:
    """Grants in an SQLite file, shared by the processes of a server and kept over restarts.

    The file is readable by its owner only: it contains paid answers. Methods raise StoreError, or
    StoreUnavailable if a retry may help.
    """

    def __init__(self, path: Path | str, *, clock: Callable[[], float] = time.time) -> None:
        self.path, self._clock, self._swept = str(path), clock, 0.0
        make_private(Path(path), OWN_TABLES)
        with self._open() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("DROP TABLE IF EXISTS grants")  # the table of an older version
            connection.execute(
                "CREATE TABLE IF NOT EXISTS payments (key TEXT PRIMARY KEY, request TEXT NOT NULL,"
                " payload TEXT NOT NULL, secret TEXT NOT NULL, claim TEXT NOT NULL,"
                " holder TEXT NOT NULL, since REAL NOT NULL, expires REAL NOT NULL,"
                " phase TEXT NOT NULL, proved INTEGER NOT NULL, receipt TEXT NOT NULL,"
                " status INTEGER, headers TEXT, body BLOB, offer TEXT)"
            )
            columns = connection.execute("SELECT name FROM pragma_table_info('payments')")
            if ("offer",) not in columns.fetchall():  # the file of an older version
                connection.execute("ALTER TABLE payments ADD COLUMN offer TEXT")

    @contextmanager
    def _open(self) -> Iterator[Connection]:
        """Yields a connection. Commits the writes if the ``with`` block ends without an error."""
        try:
            with (
                store_errors(self.path),
                closing(connect(self.path, timeout=BUSY_SECONDS)) as connection,
                connection,
            ):
                yield connection
        except IntegrityError as error:  # another program altered the table
            raise StoreError(f"store {self.path}: {error}") from None

    def get(self, key: str) -> Grant | None:
        """Returns the grant of a payment."""
        with self._open() as connection:
            return self._read(connection, key)

    def add(self, grant: Grant) -> Grant | None:
        """Adds a grant. If the key exists, returns the existing grant unchanged."""
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            known = self._read(connection, grant.key)
            if known is None:
                self._sweep(connection)
                connection.execute(f"INSERT OR REPLACE {_INSERT}", _row(grant))
            return known

    def put(self, grant: Grant, holder: str, proved: int | None = None) -> bool:
        """Replaces the stored grant if ``holder`` holds it. Returns whether it did."""
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            known = self._read(connection, grant.key)
            if known is None or not _replaceable(known, holder, proved):
                return False
            connection.execute(f"REPLACE {_INSERT}", _row(grant))
            return True

    def drop(self, key: str, holder: str) -> None:
        """Deletes a grant if ``holder`` holds it."""
        with self._open() as connection:
            connection.execute("DELETE FROM payments WHERE key = ? AND holder = ?", (key, holder))

    def renew(self, key: str, holder: str, since: float) -> None:
        """Sets ``since`` of a grant, and nothing else, if ``holder`` holds it."""
        with self._open() as connection:
            connection.execute(
                "UPDATE payments SET since = ? WHERE key = ? AND holder = ?", (since, key, holder)
            )

    def _sweep(self, connection: Connection) -> None:
        """Deletes expired grants, at most every ``SWEEP_SECONDS``."""
        now = self._clock()
        if now - self._swept >= SWEEP_SECONDS:
            self._swept = now
            connection.execute("DELETE FROM payments WHERE expires <= ?", (now,))
            connection.execute(
                "UPDATE payments SET status = NULL, headers = NULL, body = NULL"
                " WHERE phase = ? AND since <= ? AND length(body) > ?",
                (Phase.GIVEN.value, now - LONG_COPY_SECONDS, LONGEST_COPY),
            )

    def _read(self, connection: Connection, key: str) -> Grant | None:
        row = connection.execute(
            "SELECT * FROM payments WHERE key = ? AND expires > ?", (key, self._clock())
        ).fetchone()
        if row is None:
            return None
        try:
            grant = _grant(row)
        except (TypeError, ValueError, Malformed) as error:
            text = f"store {self.path}: the grant {key[:80]} cannot be read: {type(error).__name__}"
            raise UnreadableRow(text) from None
        return without_long_copy(grant, self._clock())


def _grant(row: Sequence[Any]) -> Grant:
    """Returns the grant of a row.

    Raises TypeError, ValueError or Malformed if a value is damaged.
    """
    members = dict(zip(_COLUMNS, row, strict=True))
    status, headers, body, offer = (
        members.pop(name) for name in ("status", "headers", "body", "offer")
    )
    reply = None
    if status is not None:
        reply = Reply(status, [(name, value) for name, value in json.loads(headers)], body)
    accepted = None if offer is None else Requirements.read(json.loads(offer), 2)
    members |= {"phase": Phase(members["phase"]), "reply": reply, "offer": accepted}
    return Grant(**members)


def _replaceable(known: Grant, holder: str, proved: int | None) -> bool:
    return known.holder == holder and proved in (None, known.proved)


def without_long_copy(grant: Grant, now: float) -> Grant:
    """Returns the grant; without a long answer that was sent ``LONG_COPY_SECONDS`` ago."""
    long = grant.phase is Phase.GIVEN and _length(grant) > LONGEST_COPY
    return replace(grant, reply=None) if long and grant.since <= now - LONG_COPY_SECONDS else grant


def _length(grant: Grant) -> int:
    return 0 if grant.reply is None else len(grant.reply.body)


def _row(grant: Grant) -> tuple[object, ...]:
    reply = grant.reply
    status, headers, body = (
        (reply.status, json.dumps(list(reply.headers)), reply.body) if reply else (None, None, None)
    )
    return (
        grant.key, grant.request, grant.payload, grant.secret, grant.claim, grant.holder,
        grant.since, grant.expires, grant.phase.value, grant.proved, grant.receipt, status,
        headers, body, None if grant.offer is None else json.dumps(grant.offer.show()),
    )  # fmt: skip


class PaymentLocks:
    """Locks each payment within a process."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    def held(self, key: str) -> bool:
        """Whether the lock of a payment is held."""
        return key in self._locks

    async def acquire(self, key: str) -> None:
        """Acquires the lock of a payment."""
        lock, waiting = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = lock, waiting + 1
        try:
            await lock.acquire()
        except BaseException:  # the client disconnected while it waited for the lock
            self._leave(key)
            raise

    @asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        """Holds the lock of a payment in an ``async with`` block."""
        await self.acquire(key)
        try:
            yield
        finally:
            self.release(key)

    def release(self, key: str) -> None:
        """Releases the lock of a payment."""
        self._leave(key).release()

    def _leave(self, key: str) -> asyncio.Lock:
        lock, waiting = self._locks[key]
        if waiting == 1:
            del self._locks[key]
        else:
            self._locks[key] = lock, waiting - 1
        return lock
