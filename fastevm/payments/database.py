"""What the SQL of the store needs from a database, whichever it is: transactions, locks, news."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

MIGRATION_LOCK: Final = "layout"
EVENTS_LOCK: Final = "events"


class Row(Protocol):
    """A row, by the names of its columns."""

    def __getitem__(self, name: str, /) -> Any: ...


class Cursor(Protocol):
    """What a statement found or changed."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """Inside a transaction. Placeholders are question marks."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Cursor:
        """Run one statement."""
        ...

    def executemany(self, statement: str, values: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of values."""
        ...

    def lock(self, name: str) -> None:
        """Wait until no other transaction has this lock, and keep it until this one ends."""
        ...

    def notify(self, shop: str) -> None:
        """Tell whoever waits that something of this shop has changed, once this is committed."""
        ...


class Watch(Protocol):
    """Waits for changes that others commit. A hint: a change may be missed, or told late."""

    def wait(self, seconds: float) -> bool:
        """Whether something was told within ``seconds``."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


class Database(Protocol):
    """A database with the tables of `fastevm.payments.schema`.

    ``for_update`` and ``skip_locked`` are what a SELECT ends with that locks its rows.
    Every method raises :class:`StoreError`, and :class:`StoreUnavailable` when trying again may
    help; whether a transaction that ended with it was committed is unknown.
    """

    @property
    def for_update(self) -> str: ...
    @property
    def skip_locked(self) -> str: ...
    @property
    def unique_violation(self) -> type[Exception]: ...

    def transaction(self) -> AbstractContextManager[Connection]:
        """All or nothing, on disk when it ends."""
        ...

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of one SELECT."""
        ...

    def watch(self) -> Watch:
        """Begin to listen for changes."""
        ...

    def close(self) -> None:
        """Give the connections back."""
        ...


def marks(count: int) -> str:
    """So many placeholders, for an IN list; NULL is in none."""
    return ", ".join("?" * count) or "NULL"
