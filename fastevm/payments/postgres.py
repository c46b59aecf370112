"""Stores payments in PostgreSQL, which several machines can share.

Transactions lock rows. LISTEN and NOTIFY report changes to other processes. Each transaction uses a
connection of the pool. Broken connections are closed, so the store recovers after a restart of the
server.
"""

import queue
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg
from psycopg.rows import dict_row

from fastevm.payments.errors import StoreError, StoreUnavailable
from fastevm.payments.hidden import unchained
from fastevm.payments.migrations import prepare
from fastevm.payments.schema import APPEND_ONLY, OLDER_APPEND_ONLY, POSTGRES, POSTGRES_GUARDS
from fastevm.rpc_client.messages import shown_address

CONNECTIONS: Final = 8  # idle connections kept open; further ones are closed after use
CONNECT_SECONDS: Final = 5
STATEMENT_SECONDS: Final = 30  # statement timeout, including the wait for locks
CHANNEL: Final = "fastevm_payments"

# Of each column: name, type, whether NULL is allowed, default, generation expression.
AUDIT_COLUMNS: Final = [
    ("number", "bigint", "NO", None, None),
    ("shop", "text", "NO", None, None),
    ("order_id", "text", "NO", None, None),
    ("at", "double precision", "NO", None, None),
    *((name, "text", "NO", None, None) for name in ("actor", "what", "before", "after", "detail")),
]
_COLUMNS: Final = (
    "SELECT column_name, data_type, is_nullable, column_default, generation_expression"
    " FROM information_schema.columns WHERE table_schema = current_schema()"
    " AND table_name = 'audit' ORDER BY ordinal_position"
)
STATEMENT_GUARD: Final = 2 + 8 + 16 + 32  # pg_trigger.tgtype: BEFORE, DELETE, UPDATE, TRUNCATE
GUARD_SOURCE: Final = f"BEGIN RAISE EXCEPTION '{APPEND_ONLY}'; END"
# Selects rules too, because a rule can replace a statement by another statement.
_GUARDS: Final = (
    "SELECT tgname::text AS name, tgenabled::text AS enabled, tgtype::integer AS type,"
    " coalesce(pg_get_expr(tgqual, tgrelid), '') AS condition, tgattr::text AS columns,"
    " prosrc AS source"
    " FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid"
    " WHERE tgrelid = to_regclass('audit') AND NOT tgisinternal"
    " UNION ALL SELECT rulename::text, 'rule', 0, '', '', definition FROM pg_rules"
    " WHERE schemaname = current_schema() AND tablename = 'audit' ORDER BY name"
)


class PostgresConnection:
    """A connection inside a transaction."""

    def __init__(self, connection: "psycopg.Connection[dict[str, Any]]") -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Runs one statement."""
        return self._connection.execute(_translated(statement), values)

    def executemany(self, statement: str, values: Iterable[Sequence[Any]]) -> None:
        """Runs one statement for each row of values."""
        with self._connection.cursor() as cursor:
            cursor.executemany(_translated(statement), list(values))

    def lock(self, name: str) -> None:
        """Waits for the lock of this name and holds it until the transaction ends."""
        self._connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (name,))

    def notify(self, shop: str) -> None:
        """Notifies listeners when the transaction commits."""
        self._connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, shop))


class PostgresDatabase:
    """A connection pool to one server. ``url`` is a libpq URL and includes the password."""

    for_update = " FOR UPDATE"
    skip_locked = " FOR UPDATE SKIP LOCKED"
    unique_violation = psycopg.errors.UniqueViolation

    def __init__(self, url: str) -> None:
        self._url, self.name = url, shown(url)
        self._idle: queue.LifoQueue[psycopg.Connection[dict[str, Any]]] = queue.LifoQueue()
        self._closed = False
        with self.transaction() as connection:
            prepare(connection, self.name, POSTGRES, POSTGRES_GUARDS)
            check_audit(connection, self.name)

    @contextmanager
    def transaction(self) -> Iterator[PostgresConnection]:
        """Starts a transaction. Raises :class:`StoreUnavailable` if the connection breaks."""
        with self._connected() as connection, connection.transaction():
            yield PostgresConnection(connection)

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Returns the rows of one SELECT."""
        with self._connected() as connection:
            return connection.execute(_translated(statement), values).fetchall()

    def watch(self) -> "PostgresWatch":
        """Starts to listen for changes."""
        return PostgresWatch(self._connect())

    def close(self) -> None:
        """Closes the connections. A connection in use is closed when it is released."""
        self._closed = True
        while not self._idle.empty():
            with suppress(queue.Empty):
                self._idle.get_nowait().close()

    @contextmanager
    def _connected(self) -> "Iterator[psycopg.Connection[dict[str, Any]]]":
        """Lends a connection; a broken one is not returned to the pool."""
        connection = self._take()
        try:
            yield connection
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            connection.close()
            raise StoreUnavailable(f"store {self.name}: {type(error).__name__}") from None
        except psycopg.errors.DatabaseError as error:
            if isinstance(error, self.unique_violation):
                raise
            raise StoreError(f"store {self.name}: {type(error).__name__}") from error
        finally:
            self._give_back(connection)

    def _take(self) -> "psycopg.Connection[dict[str, Any]]":
        while True:
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                return self._connect()
            if not connection.closed:
                return connection

    def _give_back(self, connection: "psycopg.Connection[dict[str, Any]]") -> None:
        if connection.closed:
            return
        if self._closed or self._idle.qsize() >= CONNECTIONS:
            connection.close()
        else:
            self._idle.put(connection)

    def _connect(self) -> "psycopg.Connection[dict[str, Any]]":
        with unchained():
            try:
                return psycopg.connect(
                    self._url,
                    autocommit=True,
                    row_factory=dict_row,
                    connect_timeout=CONNECT_SECONDS,
                    options=f"-c statement_timeout={STATEMENT_SECONDS}s -c synchronous_commit=on",
                )
            except psycopg.OperationalError as error:
                raise StoreUnavailable(
                    f"store {self.name} is unreachable: {type(error).__name__}"
                ) from None
            except (psycopg.Error, ValueError):
                raise StoreError("invalid PostgreSQL URL of the store") from None


def check_audit(connection: PostgresConnection, name: str) -> None:
    """Raises StoreError if the columns or the guard of the audit trail were altered.

    Like the check on SQLite, this one detects ALTER and DROP, but not changed rows.
    """
    columns = [tuple(row.values()) for row in connection.execute(_COLUMNS).fetchall()]
    if columns != AUDIT_COLUMNS:
        names = ", ".join(str(column[0]) for column in columns) or "none"
        raise StoreError(f"store {name}: the table of the audit trail was altered: columns {names}")
    guards = [tuple(row.values()) for row in connection.execute(_GUARDS).fetchall()]
    wanted = [("audit_is_not_changed", "O", STATEMENT_GUARD, "", "", GUARD_SOURCE)]
    if [(*guard[:-1], _words(guard[-1])) for guard in guards] != wanted:
        names = ", ".join(str(guard[0]) for guard in guards) or "none"
        text = f"store {name}: the guards of the audit trail are missing or altered: {names}"
        raise StoreError(text)


def _words(source: str) -> str:
    return " ".join(source.replace(OLDER_APPEND_ONLY, APPEND_ONLY).split())


class PostgresWatch:
    """A connection that listens for changes. A broken connection reports no changes."""

    def __init__(self, connection: "psycopg.Connection[dict[str, Any]]") -> None:
        self._connection = connection
        connection.execute(f"LISTEN {CHANNEL}")

    def wait(self, seconds: float) -> bool:
        """Whether a change came within ``seconds``. Raises :class:`StoreUnavailable`."""
        try:
            return any(self._connection.notifies(timeout=seconds, stop_after=1))
        except psycopg.OperationalError:
            raise StoreUnavailable("the connection that listens for changes broke") from None

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


def _translated(statement: str) -> str:
    return statement.replace("%", "%%").replace("?", "%s")


def shown(url: str) -> str:
    """Returns the URL without user, password and options."""
    address = shown_address(url)
    return address if address.endswith("***") else address + urlsplit(url).path
