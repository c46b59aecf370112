"""Tests orders that the payer pays with ``transferWithMemo``: counted payments, and refunds."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fastevm.payments import (
    AlreadyRefunded,
    Domain,
    IllegalTransition,
    InvalidTerms,
    Kind,
    LimitReached,
    Merchant,
    MovementState,
    NodeClient,
    Order,
    Reason,
    State,
)
from fastevm.payments.node import HttpTransport
from tests.max_wait import MAX_WAIT

from .b20 import TRANSFER, B20Market, b20_market
from .market import CHAIN_ID, FUNDS, VALUE, canonical_transfers
from .stores import BOTH

STORES = BOTH


@pytest.fixture
async def base(tmp_path: Path, store_url: str) -> AsyncIterator[B20Market]:
    made = await b20_market(tmp_path, store_url=store_url)
    yield made
    await made.close()


async def drafted(market: B20Market, merchant: Merchant, order_id: str = "order-1") -> Order:
    return await merchant.draft(order_id, market.payer.address, VALUE, kind=Kind.MEMO)


async def seen(merchant: Merchant, order_id: str = "order-1") -> tuple[State, Reason | None]:
    """Reconciles. Returns the order's state and the reason for it."""
    await merchant.reconcile()
    order = await merchant.order(order_id)
    return order.state, order.reason


async def refunded(
    market: B20Market, merchant: Merchant, amount: int | None = None, **more: Any
) -> int:
    """Refunds an order. Returns the refunded amount."""
    movement = await merchant.refund("order-1", amount, until=MovementState.REQUESTED, **more)
    market.mine()
    await merchant.reconcile()
    return movement.amount


async def test_a_transfer_with_the_orders_memo_pays_it(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    waiting = asyncio.create_task(merchant.wait("order-1", State.PAID, MAX_WAIT))
    await asyncio.sleep(0.05)
    base.pay(order, VALUE)
    paid = await waiting
    assert paid.paid and paid.reason is None and paid.settlement is not None
    assert await merchant.amounts("order-1") == (VALUE, VALUE, 0)
    types = [notice.type for notice in merchant.store.notices()]
    assert types == ["payment.drafted", "capture.included", "capture.confirmed"]
    assert await refunded(base, merchant) == VALUE
    assert await base.balance(merchant.node, base.payer.address) == FUNDS


async def test_depth_decides_when_a_transfer_is_a_payment(base: B20Market) -> None:
    merchant = base.merchant(depth=3)
    base.pay(await drafted(base, merchant), VALUE)
    for state in (State.CAPTURED, State.CAPTURED, State.PAID):
        assert await seen(merchant) == (state, None)
        base.mine()


async def test_too_little_is_not_paid_until_the_rest_comes(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    base.pay(order, VALUE - 7)
    assert await seen(merchant) == (State.DRAFTED, Reason.UNDERPAID)
    assert (
        await merchant.order("order-1")
    ).detail == f"received {VALUE - 7:,} units of {VALUE:,} units"
    with pytest.raises(IllegalTransition):
        await merchant.refund("order-1")
    await merchant.reconcile()
    base.pay(order, 7)
    assert await seen(merchant) == (State.PAID, None)
    assert (await merchant.order("order-1")).detail == ""
    assert (await merchant.amounts("order-1")).captured == VALUE
    types = [notice.type for notice in merchant.store.notices()]
    assert types.count("payment.received") == 1


async def test_too_little_expires_and_can_be_refunded(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    base.pay(order, 5)
    await merchant.reconcile()
    base.warp(order.authorization.terms.valid_before)
    assert await seen(merchant) == (State.EXPIRED, Reason.UNDERPAID)
    assert await refunded(base, merchant) == 5
    with pytest.raises(AlreadyRefunded):
        await merchant.refund("order-1")
    with pytest.raises(LimitReached):
        await merchant.refund("order-1", refund_id="again")
    assert await base.balance(merchant.node, base.payer.address) == FUNDS


async def test_too_much_is_paid_and_the_rest_can_be_refunded(base: B20Market) -> None:
    merchant = base.merchant()
    base.pay(await drafted(base, merchant), VALUE + 9)
    assert await seen(merchant) == (State.PAID, Reason.OVERPAID)
    order = await merchant.order("order-1")
    assert order.detail == f"received {VALUE + 9:,} units, 9 units too much"
    assert await refunded(base, merchant, 9, refund_id="excess") == 9
    assert (await merchant.order("order-1")).paid
    assert await refunded(base, merchant, refund_id="all") == VALUE
    assert await base.balance(merchant.node, base.payer.address) == FUNDS


async def test_a_second_payment_is_the_payers_money(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    base.pay(order, VALUE)
    first = await seen(merchant)
    settlement = (await merchant.order("order-1")).settlement
    base.pay(order, VALUE)
    assert (first, await seen(merchant)) == ((State.PAID, None), (State.PAID, Reason.OVERPAID))
    assert (await merchant.order("order-1")).settlement == settlement
    assert (await merchant.amounts("order-1")).refundable == 2 * VALUE
    assert await refunded(base, merchant, VALUE) == VALUE
    with pytest.raises(LimitReached, match=f"{VALUE:,} units"):
        await merchant.refund("order-1", VALUE + 1, refund_id="more")


async def test_two_payments_in_one_block_pay_once(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    for _ in range(2):
        base.pay(order, VALUE, mine=False)
    base.mine()
    assert await seen(merchant) == (State.PAID, Reason.OVERPAID)


async def test_money_after_the_window_does_not_pay_and_can_be_refunded(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    base.mine(seconds=order.authorization.terms.valid_before - base.now - 2)
    base.pay(order, VALUE)
    assert await seen(merchant) == (State.EXPIRED, Reason.PAID_LATE)
    found = await merchant.order("order-1")
    assert found.detail == f"received {VALUE:,} units after the order expired"
    assert (await merchant.amounts("order-1")).refundable == VALUE
    assert await refunded(base, merchant) == VALUE
    assert (await merchant.order("order-1")).state is State.EXPIRED


async def test_the_last_second_of_the_window_still_pays(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    base.mine(seconds=order.authorization.terms.valid_before - base.now - 3)
    tx_hash = base.pay(order, VALUE)
    last = base.located(tx_hash).header.timestamp
    assert last == order.authorization.terms.valid_before - 1
    base.mine(3)
    assert await seen(merchant) == (State.PAID, None)


async def test_a_rest_that_comes_late_does_not_pay(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    base.pay(order, 4)
    base.mine(seconds=order.authorization.terms.valid_before - base.now)
    base.pay(order, VALUE - 4)
    assert await seen(merchant) == (State.EXPIRED, Reason.PAID_LATE)
    assert (await merchant.order("order-1")).detail.endswith("expired and 4 units before")
    assert await refunded(base, merchant) == VALUE


async def test_another_token_pays_nothing_and_its_own_merchant_sees_it(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    right, base.token = base.token, Domain("Other Dollar", "1", CHAIN_ID, base.other)
    base.mint(base.payer.address, VALUE)
    other = base.merchant()
    base.pay(order, VALUE)
    base.token = right
    assert await seen(merchant) == (State.DRAFTED, None)
    assert await merchant.ledger() == []
    await other.reconcile()
    (entry,) = await other.ledger()
    assert (entry.amount, entry.memo) == (VALUE, order.authorization.memo)
    base.warp(order.authorization.terms.valid_before)
    assert await seen(merchant) == (State.EXPIRED, Reason.EXPIRED)
    await other.sweep(base.payer.address, VALUE, key="back", until=MovementState.REQUESTED)
    base.mine()
    await other.reconcile()
    assert [item.state for item in await other.movements()] == [MovementState.FINAL]


async def test_another_payer_another_memo_and_no_memo_pay_nothing(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    base.mint(base.stranger.address, VALUE)
    base.pay(order, VALUE, who=base.stranger)
    base.do(base.payer, "transfer(address,uint256)", base.shop.address, VALUE)
    memo = b"\x01" * 32
    base.do(base.payer, "transferWithMemo(address,uint256,bytes32)", base.shop.address, VALUE, memo)
    assert await seen(merchant) == (State.DRAFTED, None)
    assert (await merchant.amounts("order-1")).captured == 0
    memos = [entry.memo for entry in await merchant.ledger()]
    assert memos == [order.authorization.memo, None, "0x" + memo.hex()]


async def test_a_reorganisation_takes_the_payment_back(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    base.pay(order, VALUE)
    assert await seen(merchant) == (State.PAID, None)
    base.replace(1)
    assert await seen(merchant) == (State.DRAFTED, None)
    assert (await merchant.amounts("order-1")).captured == 0
    assert (await merchant.order("order-1")).settlement is None
    base.pay(order, VALUE)
    assert await seen(merchant) == (State.PAID, None)


async def test_a_payment_that_moves_to_another_block_counts_once(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    base.pay(order, VALUE)
    await merchant.reconcile()
    moved = base.node.chain.head.transactions[-1]
    base.mine()
    base.replace(2, {1: [moved]})
    assert await seen(merchant) == (State.PAID, None)
    assert (await merchant.amounts("order-1")).captured == VALUE
    assert [entry.amount for entry in await merchant.ledger()] == [VALUE]


async def test_a_part_that_a_reorganisation_removes_undoes_the_payment(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    first = base.located(base.pay(order, 3)).transactions[-1]
    base.pay(order, VALUE - 3)
    assert await seen(merchant) == (State.PAID, None)
    base.replace(2, {0: [first]})
    assert await seen(merchant) == (State.DRAFTED, Reason.UNDERPAID)
    base.replace(3)
    assert await seen(merchant) == (State.DRAFTED, None)


async def test_only_money_at_the_merchants_depth_is_refunded(base: B20Market) -> None:
    merchant = base.merchant(depth=3)
    order = await drafted(base, merchant)
    base.pay(order, VALUE)
    base.mine(2)
    assert await seen(merchant) == (State.PAID, None)
    base.pay(order, VALUE)
    with pytest.raises(LimitReached, match=f"{VALUE:,} units"):
        await merchant.refund("order-1", 2 * VALUE, until=MovementState.REQUESTED)
    base.mine(2)
    await merchant.refund("order-1", 2 * VALUE, until=MovementState.REQUESTED)


def dropped(market: B20Market, depth: int, contents: dict[int, Any] | None = None) -> None:
    """Replaces the newest blocks. All other transactions of these blocks are lost."""
    market.replace(depth, contents)
    for tx_hash in list(market.node.pool.hashes()):
        market.node.pool.drop(tx_hash)


def paid_back(market: B20Market) -> int:
    """Returns how many units were transferred from the shop to the payer in canonical blocks."""
    shop, payer = market.shop.address.lower(), market.payer.address.lower()
    moved = canonical_transfers(market.node, market.token.token)
    return sum(amount for sender, to, amount, _ in moved if (sender, to) == (shop, payer))


@pytest.mark.parametrize("depth", [1, 3])
async def test_a_refund_is_not_sent_again_without_its_payment(base: B20Market, depth: int) -> None:
    """A reorganisation below the merchant's depth removes the payment and its refund."""
    merchant = base.merchant(depth=depth)
    base.mint(base.shop.address, FUNDS)
    order = await drafted(base, merchant)
    base.pay(order, VALUE)
    base.mine(depth)
    await merchant.reconcile()
    assert await refunded(base, merchant, VALUE - 7) == VALUE - 7
    base.mine(depth)
    await merchant.reconcile()
    assert [item.state for item in await merchant.movements()] == [MovementState.FINAL]
    dropped(base, 2 * depth + 2)
    for _ in range(6):
        await merchant.reconcile()
        assert paid_back(base) == 0
        base.mine()
    assert [item.state for item in await merchant.movements()] == [MovementState.REQUESTED]
    # When the payment is in a block again, the refund is sent, but only at the merchant's depth.
    base.pay(order, VALUE, mine=False)
    for _ in range(depth):
        assert paid_back(base) == 0
        base.mine()
        await merchant.reconcile()
    base.mine(depth)
    await merchant.reconcile()
    (movement,) = await merchant.movements()
    assert movement.state is MovementState.FINAL
    assert paid_back(base) == VALUE - 7
    assert len(merchant.store.submissions(movement=movement.key)) == 1


async def test_a_refund_without_its_payment_does_not_stop_others(base: B20Market) -> None:
    merchant = base.merchant()
    base.mint(base.shop.address, FUNDS)
    base.pay(await drafted(base, merchant), VALUE)
    await merchant.reconcile()
    assert await refunded(base, merchant) == VALUE
    dropped(base, 2)
    await merchant.reconcile()
    await base.permitted(merchant, "order-2")
    await merchant.capture("order-2", until=State.CAPTURING)
    for _ in range(4):
        await merchant.reconcile()
        base.mine()
    await merchant.reconcile()
    assert (await merchant.order("order-2")).paid
    (movement,) = await merchant.movements()
    assert (movement.state, movement.reason) == (MovementState.FAILED, Reason.NOT_PAID)
    assert paid_back(base) == 0
    with pytest.raises(IllegalTransition):
        await merchant.refund("order-1")
    base.pay(await merchant.order("order-1"), VALUE)
    await merchant.reconcile()
    assert await refunded(base, merchant) == VALUE
    assert paid_back(base) == VALUE


async def test_of_two_refunds_only_what_is_covered_is_sent_again(base: B20Market) -> None:
    merchant = base.merchant()
    base.mint(base.shop.address, FUNDS)
    order = await drafted(base, merchant)
    payment = base.located(base.pay(order, VALUE)).transactions[-1]
    base.pay(order, VALUE)
    await merchant.reconcile()
    for name in ("a", "b"):
        await refunded(base, merchant, VALUE - 7, refund_id=name)
    dropped(base, 4, {0: [payment]})
    for _ in range(4):
        await merchant.reconcile()
        base.mine()
    states = {item.key[-1]: item.state for item in await merchant.movements()}
    assert states == {"a": MovementState.FINAL, "b": MovementState.REQUESTED}
    assert paid_back(base) == VALUE - 7


async def test_processes_that_refund_too_much_at_once_refund_once(base: B20Market) -> None:
    merchant = base.merchant()
    base.pay(await drafted(base, merchant), VALUE + 5)
    await merchant.reconcile()
    many = [base.merchant() for _ in range(4)]
    await asyncio.gather(
        *(
            item.refund("order-1", VALUE, refund_id=str(at), until=MovementState.REQUESTED)
            for at, item in enumerate(many)
        ),
        return_exceptions=True,
    )
    base.mine()
    await merchant.reconcile()
    assert (await merchant.amounts("order-1")).refunded == VALUE


async def test_a_voided_order_that_is_paid_in_time_counts(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    await merchant.void("order-1", "sold out")
    base.pay(order, 5)
    assert await seen(merchant) == (State.VOIDED, Reason.UNDERPAID)
    with pytest.raises(IllegalTransition):
        await merchant.refund("order-1")
    base.pay(order, VALUE - 5)
    assert await seen(merchant) == (State.PAID, None)
    assert await refunded(base, merchant) == VALUE


async def test_what_a_voided_order_received_is_refunded_after_its_window(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    await merchant.void("order-1")
    base.pay(order, 5)
    base.warp(order.authorization.terms.valid_before)
    assert await refunded(base, merchant) == 5


async def test_a_payer_of_a_permit_who_also_sends_the_money_gets_it_back(base: B20Market) -> None:
    merchant = base.merchant()
    order = await base.permitted(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    base.pay(order, VALUE)
    assert await seen(merchant) == (State.PAID, Reason.OVERPAID)
    assert await refunded(base, merchant, VALUE) == VALUE


async def test_a_permitted_order_that_is_paid_by_hand_is_not_captured(base: B20Market) -> None:
    merchant = base.merchant()
    base.pay(await base.permitted(merchant), VALUE)
    assert await seen(merchant) == (State.PAID, None)
    assert (await merchant.capture("order-1")).paid
    assert await merchant.submissions("order-1") == []


async def test_an_order_is_awaited_not_captured_and_not_signed(base: B20Market) -> None:
    merchant = base.merchant()
    order = await drafted(base, merchant)
    assert order.awaited and await drafted(base, base.merchant()) == order
    for attempt in (
        merchant.capture("order-1"),
        merchant.accept("order-1", b"\x01" * 65),
    ):
        with pytest.raises(InvalidTerms, match="sends"):
            await attempt
    with pytest.raises(InvalidTerms, match="signs nothing"):
        order.authorization.typed_data()
    assert (await merchant.wait("order-1", State.PAID, 0.05)).state is State.DRAFTED


@pytest.mark.parametrize(
    ("obstacle", "reason"),
    [("pause", Reason.PAUSED), ("SENDER", Reason.BLOCKED), ("RECEIVER", Reason.BLOCKED),
     ("empty", Reason.BALANCE)],
)  # fmt: skip
async def test_a_check_says_why_the_payer_cannot_pay(
    base: B20Market, obstacle: str, reason: Reason
) -> None:
    merchant = base.merchant()
    await drafted(base, merchant)
    (report,) = await merchant.check(["order-1"])
    assert report.ok, report.summary
    if obstacle == "pause":
        base.do(base.admin, "pause(uint8[])", [TRANSFER])
    elif obstacle == "empty":
        base.do(base.payer, "transfer(address,uint256)", base.admin.address, FUNDS)
    else:
        base.forbid((base.payer if obstacle == "SENDER" else base.shop).address, obstacle)
    (report,) = await merchant.check(["order-1"])
    assert report.reason is reason


class Timeless(HttpTransport):
    """A connection to a node whose logs have no timestamps."""

    async def send(self, body: bytes) -> Any:
        return (await super().send(body)).replace(b"blockTimestamp", b"blockTimestamq")


async def test_the_window_is_kept_without_timestamps_in_logs(base: B20Market) -> None:
    node = NodeClient(Timeless(base.server.urls[0]))
    base.clients.append(node)
    merchant = base.merchant(node=node)
    base.pay(await drafted(base, merchant), VALUE)
    late = await drafted(base, merchant, "order-2")
    assert await seen(merchant) == (State.PAID, None)
    base.warp(late.authorization.terms.valid_before)
    base.pay(late, VALUE)
    assert await seen(merchant, "order-2") == (State.EXPIRED, Reason.PAID_LATE)
