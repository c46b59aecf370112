"""What a durable store has to do, and how one is opened by its address.

The store sees secrets only sealed. Each method is one database transaction, may block for
milliseconds, and may be called from any thread. A store shows one shop: a chain, a token and a
recipient; orders, transactions and logs of others in the same database are not seen.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Protocol

from fastevm.payments.database import Database, Watch
from fastevm.payments.errors import PaymentError, StoreError
from fastevm.payments.events import ChainLog, Checkpoint
from fastevm.payments.movements import Movement, MovementTrigger
from fastevm.payments.orders import (
    PAGE,
    SIGN_SECONDS,
    START,
    AuditEntry,
    Draft,
    Order,
    Progress,
    Purpose,
    Submission,
)
from fastevm.payments.outbox import Delivery, DeliveryState, Endpoint, Notice
from fastevm.payments.reasons import Reason
from fastevm.payments.sql_store import SqlStore
from fastevm.payments.sqlite import SqliteDatabase
from fastevm.payments.states import State, Trigger

SQLITE: Final = "sqlite:///"
POSTGRES: Final = ("postgresql://", "postgres://")


class OrderStore(Protocol):
    """Orders and the trail of what happened. ``unreadable`` tells of rows that were put aside."""

    unreadable: dict[str, None]

    def add(self, order: Order) -> Order:
        """Keep a new order. The same id with the same terms answers the one that is there.

        :class:`DuplicateOrder` for other terms, or a (payer, nonce) of another order.
        """
        ...

    def order(self, order_id: str) -> Order:
        """One order; :class:`UnknownOrder`, :class:`UnreadableRow`."""
        ...

    def orders(
        self,
        states: Collection[State] | None = None,
        *,
        payer: str | None = None,
        ended_at: int | None = None,
        after: str = "",
        limit: int = PAGE,
    ) -> list[Order]:
        """Orders by id, those after ``after``. Rows that cannot be read are left out.

        ``ended_at``: only those whose window is closed at this second.
        """
        ...

    def states(self, order_ids: Collection[str]) -> dict[str, State]:
        """The states of these orders, as far as they are there and can be read."""
        ...

    def counts(self) -> dict[State, tuple[int, int, float]]:
        """Of each state: how many orders, their sum in units, and when the oldest changed last."""
        ...

    def payers(
        self, states: Collection[State], recent: Collection[State], since: float
    ) -> list[str]:
        """Who has an order in one of ``states``, or one in ``recent`` that changed ``since``."""
        ...

    def find(self, token: str, payer: str, nonce: str) -> Order | None:
        """The order of an authorization."""
        ...

    def change(
        self, order_id: str, trigger: Trigger, *, version: int | None = None, **members: Any
    ) -> Order:
        """Apply a transition, with its line in the trail and its notice.

        ``members``: ``sealed``, ``annex``, ``settlement``, ``reason``, ``detail``.
        :class:`IllegalTransition`; :class:`StaleOrder` when ``version`` is not the order's now.
        """
        ...

    def explain(self, order_id: str, reason: Reason | None, detail: str = "") -> None:
        """Say why an order waits, without a transition."""
        ...

    def audit(self, order_id: str) -> list[AuditEntry]:
        """The trail of an order, oldest first."""
        ...

    def reseal(self, again: Callable[[bytes, str], bytes | None]) -> int:
        """Replace sealed values by what ``again(sealed, place)`` answers; how many there were."""
        ...


class SubmissionStore(Protocol):
    """Transactions, and the movements that they carry."""

    def submit(
        self,
        order_id: str,
        trigger: Trigger,
        purpose: Purpose,
        *,
        sender: str,
        least_nonce: int,
        draft: Callable[[int], Draft],
        most_today: int | None = None,
    ) -> Submission:
        """Apply a transition and reserve its transaction, both or neither.

        ``draft(account_nonce)`` makes it, unsigned; the nonce is ``least_nonce``, or follows the
        newest that was ever reserved for ``sender``. Of two who try, one gets
        :class:`IllegalTransition`. :class:`LimitReached` when the captures of the day would be more
        than ``most_today`` units.
        """
        ...

    def submit_many(
        self,
        order_ids: Sequence[str],
        trigger: Trigger,
        purpose: Purpose,
        *,
        chain_id: int,
        sender: str,
        least_nonce: int,
        draft: Callable[[int, Sequence[str]], Draft],
        most_today: int | None = None,
    ) -> tuple[Submission | None, dict[str, PaymentError]]:
        """Apply a transition to several orders and reserve one transaction for them.

        What `submit` would raise for an order stands in the second answer by its id, and the others
        go without it: ``draft(account_nonce, order_ids)`` makes the transaction for these. None
        when no order is left.
        """
        ...

    def move(
        self,
        movement: Movement,
        *,
        chain_id: int,
        sender: str,
        least_nonce: int,
        draft: Callable[[int], Draft],
        check: Callable[[list[Movement]], None],
    ) -> tuple[Movement, Submission | None]:
        """Keep a movement and reserve its transaction, both or neither.

        ``check(movements)`` is told the order's other movements under the order's lock, and raises
        what the caller shall get. Asking again with the same key and terms answers what is there,
        and no transaction.
        """
        ...

    def resubmit(
        self,
        movement: Movement,
        *,
        chain_id: int,
        sender: str,
        least_nonce: int,
        draft: Callable[[int], Draft],
    ) -> Submission:
        """Reserve another transaction for a movement that has failed."""
        ...

    def movement(self, key: str) -> Movement | None:
        """One movement."""
        ...

    def movements(self, order_id: str | None = None, *, open_only: bool = False) -> list[Movement]:
        """Movements of one order or of all, oldest first; ``open_only``: those not at their end."""
        ...

    def advance(self, key: str, trigger: MovementTrigger, **members: Any) -> Movement:
        """Apply a transition of a movement, with its line in the trail and its notice."""
        ...

    def signed(self, number: int, transaction_hash: str, sealed: bytes) -> Submission | None:
        """Keep the signed bytes of a reserved transaction; None when somebody else was faster."""
        ...

    def claim(self, number: int, seconds: float = SIGN_SECONDS) -> bool:
        """Whether this caller may sign a reserved transaction now, for ``seconds`` alone."""
        ...

    def postpone(self, number: int, reason: Reason, detail: str, until: float) -> None:
        """A reserved transaction could not be signed: others may try from ``until`` on."""
        ...

    def replace(
        self,
        old: Submission,
        purpose: Purpose,
        draft: Callable[[int], Draft],
    ) -> Submission | None:
        """Reserve a replacement under the same nonce; None when somebody has replaced it already.

        What was reserved and not signed before can then not be signed any more.
        """
        ...

    def submissions(
        self,
        *,
        order_id: str | None = None,
        movement: str | None = None,
        chain_id: int | None = None,
        sender: str | None = None,
        waiting: bool = False,
        least_nonce: int | None = None,
        account_nonce: int | None = None,
        state: State | None = None,
    ) -> list[Submission]:
        """Transactions by sender, nonce and bump; ``state`` is that of their order.

        One of several orders is there once for each of them, as that order sees it.
        """
        ...

    def open_submissions(
        self, chain_id: int, sender: str, least_nonce: int | None
    ) -> list[Submission]:
        """Transactions of every account nonce whose outcome is open, by nonce and bump.

        Open are nonces from ``least_nonce`` on, those with a transaction that waits, and those of
        orders and movements that are under way.
        """
        ...

    def outstanding(self, chain_id: int, sender: str) -> int:
        """The wei that transactions of an account, of whatever shop, may still cost."""
        ...

    def note(
        self,
        number: int,
        progress: Progress,
        reason: Reason | None = None,
        detail: str = "",
        cost: int | None = None,
        failures: Mapping[str, tuple[Reason, str]] | None = None,
    ) -> None:
        """Write down how far a transaction has come, and what it cost in wei.

        ``failures``: whose calls failed inside one of several orders, and why; the other orders'
        calls did not. None says nothing of them.
        """
        ...


class LedgerStore(Protocol):
    """Logs of the canonical chain, each counted once, and how far they were read."""

    def take(self, chain_id: int, logs: Iterable[ChainLog]) -> int:
        """Keep logs; how many were new or had been removed. A known log changes nothing.

        A transaction is in one canonical block only: its logs in other blocks are removed.
        """
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

    def checkpoints(self, scope: str) -> list[Checkpoint]:
        """How far logs were read, newest first. ``scope`` names what was looked for."""
        ...

    def check(self, scope: str, point: Checkpoint, *, gone: Sequence[Checkpoint] = ()) -> None:
        """Logs are read up to ``point``; forget the points that are not canonical any more."""
        ...


class OutboxStore(Protocol):
    """Notices of changes, and what endpoints of webhooks still have to get."""

    def notices(
        self, after: int = 0, *, order_id: str | None = None, limit: int = PAGE
    ) -> list[Notice]:
        """Notices by number, those after ``after``."""
        ...

    def newest_notice(self) -> int:
        """The number of the newest notice; 0 when there is none."""
        ...

    def watch(self) -> Watch:
        """Begin to listen for changes of the store."""
        ...

    def add_endpoint(self, endpoint: Endpoint) -> None:
        """Send notices there from now on; :class:`InvalidTerms` when the id is taken."""
        ...

    def endpoints(self) -> list[Endpoint]:
        """All of them, by id."""
        ...

    def change_endpoint(self, endpoint_id: str, **members: Any) -> None:
        """Set ``url``, ``sealed``, ``previous``, ``disabled`` or ``failing_since``."""
        ...

    def claim_deliveries(
        self, seconds: float, limit: int, skip: Sequence[str] = ()
    ) -> list[Delivery]:
        """Deliveries that are due, for ``seconds`` this caller's alone.

        One of each order and endpoint, and only when everything before it has arrived there.
        """
        ...

    def delivered(
        self, delivery: Delivery, state: DeliveryState, status: str, due: float = 0.0
    ) -> bool:
        """Say how a delivery went; whether it was still the caller's to say."""
        ...

    def deliveries(
        self, endpoint: str | None = None, state: DeliveryState | None = None, limit: int = PAGE
    ) -> list[Delivery]:
        """Deliveries by notice."""
        ...

    def replay(self, endpoint: str, first: int, last: int | None = None) -> int:
        """Deliver notices ``first`` to ``last`` again, in their order; how many."""
        ...

    def backlog(self) -> tuple[int, float]:
        """How many deliveries wait, and since when the oldest does (0.0 when none does)."""
        ...


class Store(OrderStore, SubmissionStore, LedgerStore, OutboxStore, Protocol):
    """Everything in one place, as the back end of one shop uses it."""

    def scoped(self, shop: str) -> "Store":
        """The same store as another shop sees it; closing either closes both."""
        ...

    def shops(self) -> list[str]:
        """Every shop that has an order here."""
        ...

    def close(self) -> None:
        """Give the connections back."""
        ...


def open_store(url: str = "sqlite:///payments.db") -> Store:
    """Open ``sqlite:///relative/path``, ``sqlite:////absolute/path`` or ``postgresql://host/name``.

    A file is made when it is missing, a database of PostgreSQL is not; tables are made in both.
    ``sqlite:///:memory:`` lives as long as the store. PostgreSQL needs the extra
    ``payments-postgres``. :class:`StoreError`.
    """
    if url.startswith(POSTGRES):
        return SqlStore(_postgres(url))
    if not url.startswith(SQLITE) or url == SQLITE:
        scheme = url.split(":", 1)[0]
        raise StoreError(
            f"no store for {scheme!r} addresses: expected {SQLITE}path or {POSTGRES[0]}host/name"
        )
    return SqlStore(SqliteDatabase(url.removeprefix(SQLITE)))


def _postgres(url: str) -> Database:
    try:  # psycopg is loaded by who needs it
        module = import_module("fastevm.payments.postgres")
    except ImportError as error:
        raise StoreError(
            f"PostgreSQL needs psycopg, pip install 'fastevm[payments-postgres]': {error}"
        ) from None
    made: Database = module.PostgresDatabase(url)
    return made


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
    payer: str | None = None,
    ended_at: int | None = None,
) -> Iterator[Order]:
    """All orders that can be read, page by page."""
    after = ""
    while page := store.orders(states, payer=payer, ended_at=ended_at, after=after):
        yield from page
        after = page[-1].id
