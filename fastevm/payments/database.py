"""The interface between the store's SQL and a database: transactions, locks, notifications."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

MIGRATION_LOCK: Final = "layout"
EVENTS_LOCK: Final = "events"


class Row(Protocol):
    """A row, indexed by column name."""

    def __getitem__(self, name: str, /) -> Any: ...


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection inside a transaction. Placeholders are question marks."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Cursor:
        """Runs one statement."""
        ...

    def executemany(self, statement: str, values: Iterable[Sequence[Any]]) -> None:
        """Runs one statement for each row of values."""
        ...

    def lock(self, name: str) -> None:
        """Waits for the lock of this name, and holds the lock until the transaction ends."""
        ...

    def notify(self, shop: str) -> None:
        """Notifies listeners of a change in this shop, when the transaction commits."""
        ...


class Watch(Protocol):
    """Waits for committed changes. A change may be missed or reported late."""

    def wait(self, seconds: float) -> bool:
        """Returns whether a change was reported within ``seconds``."""
        ...

    def close(self) -> None:
        """Releases the connection."""
        ...


class Database(Protocol):
    """A database with the tables of `fastevm.payments.schema`.

    ``for_update`` is the suffix of a SELECT that locks its rows. The suffix ``skip_locked`` also
    leaves out rows that another transaction has locked. ``unique_violation`` is the exception for
    a violated UNIQUE constraint.

    Methods raise :class:`StoreError`, or :class:`StoreUnavailable` if a retry may help. After
    StoreUnavailable it is unknown whether the transaction was committed.
    """

    @property
    def for_update(self) -> str: ...
    @property
    def skip_locked(self) -> str: ...
    @property
    def unique_violation(self) -> type[Exception]: ...

    def transaction(self) -> AbstractContextManager[Connection]:
        """Starts an atomic transaction, which is durable once it has committed."""
        ...

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Returns the rows of one SELECT."""
        ...

    def watch(self) -> Watch:
        """Starts to listen for changes."""
        ...

    def close(self) -> None:
        """Closes the connections."""
        ...


def marks(count: int) -> str:
    """Returns ``count`` placeholders for an IN list. Returns NULL for 0, which matches nothing."""
    return ", ".join("?" * count) or "NULL"
