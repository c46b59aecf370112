"""Finds payments by the memo of the transfer: permits, and transfers that the payer sends.

A transfer belongs to an order if it moves the order's token from the order's payer to the order's
recipient, and a Memo log with the order's memo directly follows it. All such transfers whose blocks
are within the order's window are added up. The transfer with which the sum reaches the order's
value pays the order. Money beyond the value, or after the window, still belongs to the payer and
can be refunded.
"""

from collections.abc import Sequence
from typing import NamedTuple

from fastevm.payments.events import ChainLog, Event
from fastevm.payments.movements import Amounts, Movement, amounts_of
from fastevm.payments.orders import Order, Settlement
from fastevm.payments.reasons import Reason
from fastevm.payments.states import State
from fastevm.payments.store import LedgerStore, OrderStore


class Received(NamedTuple):
    """The token units that an order received, ``on_time`` or ``late`` (after the window).

    ``settlement`` is the transfer with which the sum reached the order's value; None while the sum
    is smaller.
    """

    on_time: int = 0
    late: int = 0
    settlement: Settlement | None = None

    @property
    def total(self) -> int:
        """The sum of ``on_time`` and ``late``, in token units."""
        return self.on_time + self.late


def received(store: LedgerStore, order: Order, *, last: int | None = None) -> Received:
    """Sums up the canonical transfers of an order, up to block number ``last``.

    Returns zeros for an order whose payment has no memo.
    """
    authorization, terms = order.authorization, order.authorization.terms
    if authorization.memo is None:
        return Received()
    domain = authorization.domain
    on_time = late = 0
    settlement = None
    for memo in store.memos(domain.chain_id, domain.token, authorization.memo):
        transfer = _transfer_before(store, domain.chain_id, memo)
        if transfer is None or (last is not None and memo.block_number > last):
            continue
        parties = transfer.text("sender"), transfer.text("recipient")
        if parties != (terms.payer, terms.recipient):
            continue
        if memo.timestamp is None or memo.timestamp >= terms.valid_before:
            late += transfer.number("amount")
            continue
        on_time += transfer.number("amount")
        if settlement is None and on_time >= terms.value:
            key = memo.key
            settlement = Settlement(key.transaction_hash, key.block_hash, memo.block_number)
    return Received(on_time, late, settlement)


def order_of(orders: OrderStore, store: LedgerStore, chain_id: int, memo: ChainLog) -> Order | None:
    """Returns the order that a Memo log belongs to, or None. The log may have been removed.

    Raises UnreadableRow.
    """
    transfer = _transfer_before(store, chain_id, memo)
    if transfer is None:
        return None
    return orders.find(memo.address, transfer.text("sender"), memo.text("memo"))


def amount_reason(order: Order, found: Received) -> tuple[Reason | None, str]:
    """Returns the reason and text if the received money differs from the order's value.

    Returns (None, "") if it does not differ, or if nothing was received.
    """
    value = order.authorization.terms.value
    if found.settlement is not None and order.state in (State.CAPTURED, State.PAID):
        if found.total == value:
            return None, ""
        more = found.total - value
        return Reason.OVERPAID, f"received {found.total:,} units, {more:,} units too much"
    if found.late:
        early = f" and {found.on_time:,} units before" if found.on_time else ""
        return Reason.PAID_LATE, f"received {found.late:,} units after the order expired{early}"
    if found.on_time:
        return Reason.UNDERPAID, f"received {found.on_time:,} units of {value:,} units"
    return None, ""


def _transfer_before(store: LedgerStore, chain_id: int, memo: ChainLog) -> ChainLog | None:
    """Returns the Transfer that a Memo directly follows; None if another log precedes it."""
    key = memo.key
    found = store.logs(
        chain_id,
        transaction_hash=key.transaction_hash,
        block_hash=key.block_hash,
        first=memo.block_number,
        after=(memo.block_number, key.log_index - 2),
        removed=True,
        limit=1,
    )
    for chain_log in found:
        precedes = chain_log.key.log_index == key.log_index - 1
        if precedes and chain_log.event is Event.TRANSFER and chain_log.address == memo.address:
            return chain_log
    return None


def sums_of(store: LedgerStore, order: Order, movements: Sequence[Movement]) -> Amounts:
    """Returns the sums of an order and its movements.

    If a memo identifies the payment, ``captured`` is the sum of the order's transfers.
    """
    total = received(store, order).total if order.authorization.memo is not None else None
    return amounts_of(order, movements, total)
