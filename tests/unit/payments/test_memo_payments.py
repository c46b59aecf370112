"""Tests the sum of transfers with an order's memo, and its difference from the order's value."""

from collections.abc import Iterator

import pytest

from fastevm.core.primitives.replace import replace
from fastevm.payments import (
    Authorization,
    Kind,
    Order,
    Reason,
    Settlement,
    State,
    Store,
    Terms,
    open_store,
)
from fastevm.payments.events import Event
from fastevm.payments.memo_payments import Received, amount_reason, order_of, received
from tests.payments.stores import BOTH

from .test_authorization import PAYER, SEPOLIA, SHOP
from .test_events import log

TERMS = Terms(
    payer=PAYER, recipient=SHOP, value=10, valid_after=0, valid_before=1_000, nonce=b"\x22" * 32
)
ORDER = Order(id="order-1", authorization=Authorization(SEPOLIA, TERMS, Kind.MEMO))
MEMO = "0x" + "22" * 32
DONE = Settlement("0xaa", "0xbb", 1)
STORES = BOTH


@pytest.fixture
def ledger(store_url: str) -> Iterator[Store]:
    made = open_store(store_url)
    yield made
    made.close()


def pay(store: Store, at: int, amount: int, *, timestamp: int | None = 999, **changes: str) -> None:
    """Adds a Transfer and its Memo to the ledger. Log indices start at ``at``."""
    parties = {"sender": PAYER, "recipient": SHOP, **changes}
    transfer = log(at, Event.TRANSFER, amount=amount, **parties)
    memo = log(at + 1, Event.MEMO, caller=PAYER, memo=MEMO)
    logs = [replace(item, address=SEPOLIA.token, timestamp=timestamp) for item in (transfer, memo)]
    store.take(SEPOLIA.chain_id, logs)


@pytest.mark.parametrize(
    ("found", "state", "reason", "words"),
    [
        (Received(), State.DRAFTED, None, ""),
        (Received(4), State.DRAFTED, Reason.UNDERPAID, "received 4 units of 10 units"),
        (Received(4, 6), State.EXPIRED, Reason.PAID_LATE, "6 units after the order expired and 4"),
        (Received(0, 10), State.EXPIRED, Reason.PAID_LATE, "10 units after the order expired"),
        (Received(10, 0, DONE), State.PAID, None, ""),
        (
            Received(13, 0, DONE),
            State.CAPTURED,
            Reason.OVERPAID,
            "received 13 units, 3 units too much",
        ),
        (Received(10, 2, DONE), State.PAID, Reason.OVERPAID, "received 12 units, 2 units too much"),
    ],
)
def test_an_amount_that_is_not_the_orders_has_a_reason(
    found: Received, state: State, reason: Reason | None, words: str
) -> None:
    reported, detail = amount_reason(replace(ORDER, state=state), found)
    assert reported is reason
    assert words in detail and bool(words) is bool(detail)


def test_transfers_add_up_and_the_one_that_completes_the_value_settles(ledger: Store) -> None:
    for at, amount in ((0, 4), (2, 6), (4, 5)):
        pay(ledger, at, amount)
    found = received(ledger, ORDER)
    assert (found.on_time, found.late, found.total) == (15, 0, 15)
    assert found.settlement is not None
    assert received(ledger, ORDER, last=0).total == 0


def test_only_the_payers_transfers_to_the_recipient_in_time_count(ledger: Store) -> None:
    pay(ledger, 0, 10, sender=SHOP, recipient=PAYER)
    pay(ledger, 2, 10, timestamp=1_000)
    pay(ledger, 4, 10, timestamp=None)
    assert received(ledger, ORDER) == Received(0, 20)
    receive = Order(id="order-2", authorization=Authorization(SEPOLIA, TERMS))
    assert received(ledger, receive) == Received()


def test_a_memo_that_follows_no_transfer_belongs_to_no_order(ledger: Store) -> None:
    ledger.add(ORDER)
    pay(ledger, 0, 10)
    first, alone = log(1, Event.MEMO, caller=PAYER, memo=MEMO), log(5, Event.MEMO, memo=MEMO)
    chain_id, token = SEPOLIA.chain_id, SEPOLIA.token
    found = order_of(ledger, ledger, chain_id, replace(first, address=token))
    assert found is not None and found.id == "order-1"
    assert order_of(ledger, ledger, chain_id, replace(alone, address=token)) is None
    assert order_of(ledger, ledger, chain_id, replace(first, address=SHOP)) is None
