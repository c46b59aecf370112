"""The interface of the durable store, and `open_store`.

Secrets are encrypted before they reach the store. Each method writes in one database transaction,
may block for milliseconds, and can be called from any thread. A store shows one shop (chain, token
and recipient), not the orders, transactions and logs of other shops in the same database.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

from fastevm.errors import install_command
from fastevm.payments.arguments import checked
from fastevm.payments.database import Database, Watch
from fastevm.payments.errors import PaymentError, StoreError, StoreUnavailable
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
from fastevm.payments.policy import Exposure
from fastevm.payments.reasons import Reason
from fastevm.payments.sql_store import SqlStore
from fastevm.payments.sqlite import MEMORY, SqliteDatabase
from fastevm.payments.states import State, Trigger

SQLITE: Final = "sqlite:///"
POSTGRES: Final = ("postgresql://", "postgres://")


class OrderStore(Protocol):
    """Stores orders and their audit trail. ``unreadable`` has a message for each skipped row."""

    unreadable: dict[str, None]

    def add(self, order: Order, besides: Sequence[str] = ()) -> Order:
        """Adds an order, or returns the existing order if id and terms are equal.

        Raises :class:`DuplicateOrder` if the id has other terms, or if another order of this shop
        or of the shops ``besides`` has the same payer and nonce. Also detects such an order if
        another process adds it concurrently with this shop in its ``besides``.
        """
        ...

    def order(self, order_id: str) -> Order:
        """Returns an order. Raises :class:`UnknownOrder` or :class:`UnreadableRow`."""
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
        """Returns a page of orders, by id. The ids follow ``after``. Skips unreadable rows.

        With ``ended_at`` (Unix seconds), returns only orders with a window that has closed by then.
        """
        ...

    def states(self, order_ids: Collection[str]) -> dict[str, State]:
        """Returns the states of the orders that exist and are readable."""
        ...

    def counts(self) -> dict[State, tuple[int, int, float]]:
        """Returns by state: number of orders, sum of their values in token units, oldest change.

        The oldest change is the time (Unix seconds) of the order that has been unchanged for
        longest.
        """
        ...

    def payers(
        self, states: Collection[State], recent: Collection[State], since: float
    ) -> list[str]:
        """Returns payers with orders in ``states``, or in ``recent`` if changed after ``since``."""
        ...

    def find(self, token: str, payer: str, nonce: str) -> Order | None:
        """Returns the order that has an authorization; None if there is none."""
        ...

    def entitle(self, order_id: str, caller: str, *, anew: bool = False) -> str:
        """Returns the caller that may receive an order's result: the first that asked for it.

        ``anew`` replaces an earlier caller if the order is STORED, because no transaction is then
        in flight. An empty ``caller`` stands for all callers without a key.
        """
        ...

    def entitle_once(self, order_id: str, caller: str) -> str:
        """Returns the caller that may receive an order's result, for a request without a key.

        Records and returns ``caller`` if no caller is recorded, or only the empty caller, which
        stands for all callers without a key. Otherwise returns the recorded caller.
        """
        ...

    def change(
        self,
        order_id: str,
        trigger: Trigger,
        *,
        version: int | None = None,
        exposure: Exposure | None = None,
        **members: Any,
    ) -> Order:
        """Applies a transition and writes its audit entry and notice.

        ``members`` may be ``sealed``, ``annex``, ``settlement``, ``reason``, ``detail``. Raises
        :class:`IllegalTransition`, :class:`StaleOrder` if ``version`` is not the current version,
        or :class:`LimitReached` if the sum of all unpaid orders, including this order, exceeds
        ``exposure``.
        """
        ...

    def explain(self, order_id: str, reason: Reason | None, detail: str = "") -> None:
        """Records why an order is waiting, without a transition."""
        ...

    def receive(self, order_id: str, reason: Reason | None, detail: str) -> Order:
        """Records that the received money differs from the order's value. Writes a notice.

        Makes no transition. Does nothing if reason and detail are already recorded.
        """
        ...

    def audit(self, order_id: str) -> list[AuditEntry]:
        """Returns the audit trail of an order, oldest first."""
        ...

    def key_check(self) -> bytes | None:
        """Returns the check value, encrypted with the shop's key; None if there is none."""
        ...

    def add_key_check(self, sealed: bytes) -> bytes:
        """Stores the check value unless the shop has one. Returns the stored value."""
        ...

    def sealed(self, most: int) -> list[tuple[bytes, str]]:
        """Returns (value, context) of up to ``most`` encrypted values per table, oldest first."""
        ...

    def reseal(self, again: Callable[[bytes, str], bytes | None], check: bytes) -> int:
        """Replaces each encrypted value by ``again(sealed, context)``. Returns how many changed.

        A value stays as it is if ``again`` returns None. ``check`` becomes the key's check value.
        """
        ...


class SubmissionStore(Protocol):
    """Stores the merchant's transactions, and the movements for which they are sent."""

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
        """Atomically applies a transition and reserves its transaction.

        ``draft(account_nonce)`` returns the unsigned transaction. The nonce is at least
        ``least_nonce``, and higher than every nonce ever reserved for ``sender``. If two callers
        submit an order concurrently, one of them gets :class:`IllegalTransition`. Raises
        :class:`LimitReached` if the captures of the day would exceed ``most_today`` units.
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
        """Atomically applies a transition to several orders and reserves their transaction.

        Returns the transaction (None if every order has an error) and, by order id, the errors that
        `submit` would raise. ``draft(account_nonce, order_ids)`` gets the orders without an error.
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
        most_today: int | None = None,
    ) -> tuple[Movement, Submission | None]:
        """Atomically stores a movement and reserves its transaction.

        ``check(movements)`` gets the order's other movements under the order's lock and may raise.
        A repeated request with the same key and terms returns the existing movement and no
        transaction. Raises LimitReached if the key belongs to a movement with other terms, or if a
        captured part of a hold would exceed ``most_today`` units for the day.
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
        """Reserves another transaction for a failed movement."""
        ...

    def movement(self, key: str) -> Movement | None:
        """Returns a movement; None if the key is unknown."""
        ...

    def movements(self, order_id: str | None = None, *, open_only: bool = False) -> list[Movement]:
        """Returns the movements of one order or of all, oldest first.

        With ``open_only``, returns only movements that are REQUESTED or SEEN.
        """
        ...

    def advance(self, key: str, trigger: MovementTrigger, **members: Any) -> Movement:
        """Applies a transition of a movement and writes its audit entry and notice."""
        ...

    def signed(self, number: int, transaction_hash: str, sealed: bytes) -> Submission | None:
        """Stores the signed bytes of a reserved transaction.

        Returns None if another process has signed or replaced the transaction before.
        """
        ...

    def claim(self, number: int, seconds: float = SIGN_SECONDS) -> bool:
        """Leases a reserved transaction for signing. Returns whether the caller may sign it."""
        ...

    def postpone(self, number: int, reason: Reason, detail: str, until: float) -> None:
        """Records that signing failed. Other processes may sign from ``until`` (Unix seconds)."""
        ...

    def replace(
        self,
        old: Submission,
        purpose: Purpose,
        draft: Callable[[int], Draft],
    ) -> Submission | None:
        """Reserves a replacement with the same nonce; None if ``old`` has been replaced already.

        If ``old`` is still unsigned, it can no longer be signed.
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
        """Returns transactions by sender, nonce and bump. ``state`` selects the state of the order.

        A batch capture appears once for each of its orders (see `Submission.seen_by`).
        """
        ...

    def open_submissions(
        self, chain_id: int, sender: str, least_nonce: int | None
    ) -> list[Submission]:
        """Returns the transactions of every open account nonce, by nonce and bump.

        A nonce is open if it is at least ``least_nonce``, if one of its transactions waits, or if
        its order or movement is in progress.
        """
        ...

    def outstanding(self, chain_id: int, sender: str) -> int:
        """Returns the maximum cost in wei of an account's pending transactions, over all shops."""
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
        """Records a transaction's progress, and its cost in wei.

        ``failures`` maps the orders of a batch capture to the reasons why their calls failed. The
        calls of all other orders succeeded. None means that the results are unknown.
        """
        ...


class LedgerStore(Protocol):
    """Stores each log of the canonical chain once, and the checkpoints of the scans."""

    def take(self, chain_id: int, logs: Iterable[ChainLog]) -> int:
        """Stores logs. Returns how many are new, or were removed and are canonical again.

        A transaction and a block number each belong to only one canonical block. So logs of the
        same transaction or number in other blocks are marked as removed.
        """
        ...

    def drop_blocks(self, chain_id: int, block_hashes: Iterable[str]) -> int:
        """Marks all logs of these blocks as removed. Returns how many were changed."""
        ...

    def blocks(self, chain_id: int, first: int) -> list[Checkpoint]:
        """Returns the blocks from number ``first`` on that have canonical logs."""
        ...

    def logs(
        self,
        chain_id: int,
        *,
        transaction_hash: str | None = None,
        block_hash: str | None = None,
        first: int = 0,
        last: int | None = None,
        after: tuple[int, int] = START,
        removed: bool = False,
        limit: int = PAGE,
    ) -> list[ChainLog]:
        """Returns logs by block and index; ``removed`` includes removed logs.

        ``after`` is the block number and log index of the last log of the previous page.
        """
        ...

    def spendings(self, chain_id: int, token: str, payer: str, nonce: str) -> list[ChainLog]:
        """Returns the canonical AuthorizationUsed and AuthorizationCanceled logs for a nonce."""
        ...

    def memos(self, chain_id: int, token: str, memo: str) -> list[ChainLog]:
        """Returns the canonical Memo logs of a token with this memo (0x-hex), oldest first."""
        ...

    def unapplied(self, chain_id: int) -> list[ChainLog]:
        """Returns a page of logs with nonces or memos that are not yet applied to orders.

        Includes removed logs while the removal is not yet applied.
        """
        ...

    def mark_applied(self, chain_id: int, logs: Iterable[ChainLog]) -> None:
        """Marks logs as applied to orders, unless their ``removed`` flag has changed."""
        ...

    def checkpoints(self, scope: str) -> list[Checkpoint]:
        """Returns checkpoints, newest first. ``scope`` identifies the scanner's filters."""
        ...

    def check(self, scope: str, point: Checkpoint, *, gone: Sequence[Checkpoint] = ()) -> None:
        """Adds a checkpoint: logs are read up to ``point``. Deletes checkpoints in ``gone``."""
        ...


class OutboxStore(Protocol):
    """Stores notices of changes, and their deliveries to webhook endpoints."""

    shop: str

    def notices(
        self, after: int = 0, *, order_id: str | None = None, limit: int = PAGE
    ) -> list[Notice]:
        """Returns a page of notices, by number. The numbers follow ``after``."""
        ...

    def newest_notice(self) -> int:
        """Returns the number of the newest notice; 0 if there is none."""
        ...

    def watch(self) -> Watch:
        """Starts to listen for changes of the store."""
        ...

    def add_endpoint(self, endpoint: Endpoint) -> None:
        """Adds an endpoint for new notices. Raises :class:`InvalidTerms` if the id is taken."""
        ...

    def endpoints(self) -> list[Endpoint]:
        """Returns all endpoints by id."""
        ...

    def change_endpoint(self, endpoint_id: str, **members: Any) -> None:
        """Sets ``url``, ``sealed``, ``previous``, ``disabled`` or ``failing_since``.

        The pending deliveries of a disabled endpoint wait until it is enabled again.
        """
        ...

    def claim_deliveries(
        self, seconds: float, limit: int, skip: Sequence[str] = ()
    ) -> list[Delivery]:
        """Leases due deliveries to the caller for ``seconds``.

        Leases at most one notice per order and endpoint: the next notice follows only after the
        endpoint has received all earlier notices of the order. Leaves out disabled endpoints and
        those in ``skip``.
        """
        ...

    def delivered(
        self, delivery: Delivery, state: DeliveryState, status: str, due: float = 0.0
    ) -> bool:
        """Records the result of a delivery. Returns whether the caller still held the lease."""
        ...

    def deliveries(
        self, endpoint: str | None = None, state: DeliveryState | None = None, limit: int = PAGE
    ) -> list[Delivery]:
        """Returns deliveries in the order of their notices."""
        ...

    def replay(self, endpoint: str, first: int, last: int | None = None) -> int:
        """Schedules notices ``first`` to ``last`` for delivery again, in order. Returns the count.

        Raises UnknownOrder for an unknown endpoint, InvalidTerms if the endpoint is disabled.
        """
        ...

    def hasten(self, endpoint: str) -> int:
        """Makes all pending deliveries of an endpoint due now. Returns their number.

        Raises UnknownOrder for an unknown endpoint, InvalidTerms if the endpoint is disabled.
        """
        ...

    def backlog(self) -> tuple[int, float]:
        """Returns the number of pending deliveries, and the Unix time of their oldest notice.

        The time is 0.0 if there is none. Deliveries of disabled endpoints do not count.
        """
        ...


class Store(OrderStore, SubmissionStore, LedgerStore, OutboxStore, Protocol):
    """The complete store of one shop."""

    def scoped(self, shop: str) -> "Store":
        """Returns a store of another shop in the same database. Closing one store closes both."""
        ...

    def shops(self) -> list[str]:
        """Returns every shop that has an order."""
        ...

    def close(self) -> None:
        """Closes the connections."""
        ...


@checked
def open_store(url: str = "sqlite:///payments.db", *, create: bool = True) -> Store:
    """Opens the store at a URL.

    ``url`` is ``sqlite:///relative/path``, ``sqlite:////absolute/path`` or
    ``postgresql://host/name``. Creates missing tables. Creates a missing SQLite file unless
    ``create`` is false. A PostgreSQL database must exist, and needs the extra
    ``payments-postgres``. ``sqlite:///:memory:`` lasts as long as the store.

    Raises :class:`StoreError`.
    """
    if url.startswith(POSTGRES):
        return SqlStore(_postgres(url))
    if not url.startswith(SQLITE) or url == SQLITE:
        scheme, found, _ = url.partition(":")
        known = scheme in ("sqlite", "postgresql", "postgres")  # the URL has too few slashes
        wrong = f"invalid {scheme} store URL" if known else "unknown store URL"
        if not known and url.startswith(f"{scheme}://") and found:
            wrong += f" scheme {scheme!r}"
        elif not found:  # the error omits the text, which may be a password
            wrong = "the store URL has no scheme"
        raise StoreError(f"{wrong}: expected {SQLITE}path or {POSTGRES[0]}host/name")
    path = url.removeprefix(SQLITE)
    if path != MEMORY:
        path = str(Path(path).absolute())  # errors name the file, whatever the current folder is
    if not create and not Path(path).exists():
        raise StoreError(f"store {path} does not exist")
    return SqlStore(SqliteDatabase(path))


def _postgres(url: str) -> Database:
    try:  # psycopg is an optional dependency
        module = import_module("fastevm.payments.postgres")
    except ImportError as error:
        how = install_command("payments-postgres")
        raise StoreUnavailable(f"PostgreSQL needs psycopg ({error}): {how}") from None
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
    """Yields all canonical logs, page by page."""
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
    """Yields all readable orders, page by page."""
    after = ""
    while page := store.orders(states, payer=payer, ended_at=ended_at, after=after):
        yield from page
        after = page[-1].id
