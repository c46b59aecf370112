"""What a durable store has to do, and how one is opened by its address.

The store sees secrets only sealed. Each method is one database transaction, may block for
milliseconds, and may be called from any thread.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

from fastevm.payments.errors import StoreError
from fastevm.payments.events import ChainLog, Checkpoint, LogKey
from fastevm.payments.orders import (
    PAGE,
    START,
    AuditEntry,
    Draft,
    Order,
    Progress,
    Purpose,
    Submission,
)
from fastevm.payments.reasons import Reason
from fastevm.payments.sqlite import SqliteStore
from fastevm.payments.states import State, Trigger

SQLITE: Final = "sqlite:///"


class OrderStore(Protocol):
    """Orders, the transactions sent for them, and the trail of what happened."""

    def add(self, order: Order) -> Order:
        """Keep a new order. The same id with the same terms answers the one that is there.

        :class:`DuplicateOrder` for other terms, or a (payer, nonce) of another order.
        """
        ...

    def order(self, order_id: str) -> Order:
        """One order; :class:`UnknownOrder`."""
        ...

    def orders(
        self,
        states: Collection[State] | None = None,
        *,
        chain_id: int | None = None,
        token: str | None = None,
        payer: str | None = None,
        after: str = "",
        limit: int = PAGE,
    ) -> list[Order]:
        """Orders by id, those after ``after``."""
        ...

    def payers(
        self,
        chain_id: int,
        states: Collection[State],
        recent: Collection[State],
        since: float,
    ) -> list[str]:
        """Who has an order in one of ``states``, or one in ``recent`` that changed ``since``."""
        ...

    def change(
        self, order_id: str, trigger: Trigger, *, version: int | None = None, **members: Any
    ) -> Order:
        """Apply a transition, with its line in the trail.

        ``members``: ``sealed``, ``settlement``, ``reason``, ``detail``. :class:`IllegalTransition`;
        :class:`StaleOrder` when ``version`` is not the order's any more.
        """
        ...

    def submit(
        self,
        order_id: str,
        trigger: Trigger,
        purpose: Purpose,
        *,
        sender: str,
        least_nonce: int,
        draft: Callable[[int], Draft],
    ) -> Submission:
        """Apply a transition and record its transaction, both or neither.

        ``draft(account_nonce)`` signs; the nonce is ``least_nonce``, or follows the newest that was
        ever recorded for ``sender``. Of two who try, one gets :class:`IllegalTransition`.
        """
        ...

    def replace(
        self,
        old: Submission,
        purpose: Purpose,
        draft: Callable[[int], Draft],
    ) -> Submission | None:
        """Record a replacement under the same nonce; None when somebody has replaced it already."""
        ...

    def submissions(
        self,
        *,
        order_id: str | None = None,
        chain_id: int | None = None,
        sender: str | None = None,
        waiting: bool = False,
        least_nonce: int | None = None,
        account_nonce: int | None = None,
    ) -> list[Submission]:
        """Transactions by sender, nonce and bump."""
        ...

    def note(
        self,
        transaction_hash: str,
        progress: Progress,
        reason: Reason | None = None,
        detail: str = "",
    ) -> None:
        """Write down how far a transaction has come."""
        ...

    def audit(self, order_id: str) -> list[AuditEntry]:
        """The trail of an order, oldest first."""
        ...

    def reseal(self, again: Callable[[bytes, str], bytes | None]) -> int:
        """Replace sealed values by what ``again(sealed, place)`` answers; how many there were."""
        ...

    def close(self) -> None:
        """Give the connection back."""
        ...


class LedgerStore(Protocol):
    """Logs of the canonical chain, each counted once, and how far they were read."""

    def take(self, chain_id: int, logs: Iterable[ChainLog]) -> int:
        """Keep logs; how many were new or had been removed. A known log changes nothing.

        A transaction is in one canonical block only: its logs in other blocks are removed.
        """
        ...

    def drop(self, chain_id: int, keys: Iterable[LogKey]) -> int:
        """Mark logs as removed by a reorganisation; how many were not yet."""
        ...

    def drop_blocks(self, chain_id: int, block_hashes: Iterable[str]) -> int:
        """Mark all logs of these blocks as removed; how many were not yet."""
        ...

    def blocks(self, chain_id: int, first: int) -> list[Checkpoint]:
        """The blocks from number ``first`` on that hold logs which count."""
        ...

    def logs(
        self,
        chain_id: int,
        *,
        transaction_hash: str | None = None,
        first: int = 0,
        last: int | None = None,
        after: tuple[int, int] = START,
        removed: bool = False,
        limit: int = PAGE,
    ) -> list[ChainLog]:
        """Logs by block and index; those that count, or also the removed ones.

        ``after``: block number and index of the last one of the page before.
        """
        ...

    def spendings(self, chain_id: int, token: str, payer: str, nonce: str) -> list[ChainLog]:
        """The AuthorizationUsed and AuthorizationCanceled of a nonce that count."""
        ...

    def unsettled(self, chain_id: int) -> list[ChainLog]:
        """Spendings, removed ones too, that are not applied to orders yet."""
        ...

    def settled(self, chain_id: int, logs: Iterable[ChainLog]) -> None:
        """These have been applied to orders; one that changed meanwhile has not."""
        ...

    def find(self, chain_id: int, token: str, payer: str, nonce: str) -> Order | None:
        """The order of an authorization."""
        ...

    def checkpoints(self, scope: str) -> list[Checkpoint]:
        """How far logs were read, newest first. ``scope`` names what was looked for."""
        ...

    def check(self, scope: str, point: Checkpoint, *, gone: Sequence[Checkpoint] = ()) -> None:
        """Logs are read up to ``point``; forget the points that are not canonical any more."""
        ...


class Store(OrderStore, LedgerStore, Protocol):
    """Everything in one place, as the back end uses it."""


def open_store(url: str = "sqlite:///payments.db") -> Store:
    """Open ``sqlite:///relative/path`` or ``sqlite:////absolute/path``, made when missing.

    ``sqlite:///:memory:`` lives as long as the store. Any other store is an object that a program
    makes itself: whoever implements :class:`Store` serves. :class:`StoreError`.
    """
    if not url.startswith(SQLITE) or url == SQLITE:
        scheme = url.split(":", 1)[0]
        raise StoreError(f"no store for {scheme!r} addresses: expected {SQLITE}path")
    return SqliteStore(url.removeprefix(SQLITE))


def every_log(
    store: LedgerStore,
    chain_id: int,
    *,
    transaction_hash: str | None = None,
    first: int = 0,
    last: int | None = None,
) -> Iterator[ChainLog]:
    """All logs that count, page by page."""
    after = START
    while page := store.logs(
        chain_id, transaction_hash=transaction_hash, first=first, last=last, after=after
    ):
        yield from page
        after = page[-1].block_number, page[-1].key.log_index


def every_order(
    store: OrderStore,
    states: Collection[State] | None = None,
    *,
    chain_id: int | None = None,
    token: str | None = None,
    payer: str | None = None,
) -> Iterator[Order]:
    """All orders, page by page."""
    after = ""
    while page := store.orders(states, chain_id=chain_id, token=token, payer=payer, after=after):
        yield from page
        after = page[-1].id
