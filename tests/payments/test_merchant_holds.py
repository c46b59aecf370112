"""Tests that a merchant chooses for each order: store only a signature, or hold the money."""

import asyncio

import pytest

from fastevm.payments import (
    CaptureRefused,
    HoldTerms,
    InvalidTerms,
    LimitReached,
    Merchant,
    MovementRefused,
    MovementState,
    Order,
    Reason,
    State,
)
from fastevm.payments.contracts.placing import place_escrow
from fastevm.payments.erc6492 import MULTICALL
from fastevm.payments.escrow import V1_1
from tests.max_wait import MAX_WAIT

from .market import FUNDS, VALUE, Market

STORE = "0x5701E05701E05701E05701e05701e05701E05701"


async def held(market: Market, merchant: Merchant, order_id: str = "order-1") -> Order:
    """Drafts an order and holds its money in the escrow."""
    await place_escrow(market.client(), V1_1, STORE, MULTICALL)
    market.mine()
    order = await merchant.draft(order_id, market.payer.address, VALUE, hold=HoldTerms())
    await merchant.accept(order_id, market.signed(order))
    await merchant.hold(order_id, timeout=0)
    market.mine()
    order = await merchant.hold(order_id, timeout=MAX_WAIT)
    assert order.state is State.HELD, order
    return order


async def test_a_hold_is_captured_in_parts_and_the_rest_is_voided(still: Market) -> None:
    merchant, client = still.merchant(), still.client()
    await held(still, merchant)
    assert await still.balance(client, still.payer.address) == 9 * VALUE
    await merchant.holds.capture("order-1", VALUE // 4, key="parcel 1", timeout=0)
    still.mine()
    moved = await merchant.holds.capture("order-1", VALUE // 4, key="parcel 1")
    assert moved.state is MovementState.SEEN
    with pytest.raises(LimitReached):
        await merchant.holds.capture("order-1", VALUE, key="parcel 2")
    assert (await merchant.holds.hold("order-1")).held == (True, VALUE * 3 // 4, VALUE // 4)
    assert (await merchant.amounts("order-1")).captured == VALUE // 4
    await merchant.holds.void("order-1", timeout=0)
    still.mine()
    await merchant.holds.void("order-1")
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state in (State.CAPTURED, State.PAID)
    assert await still.balance(client, still.shop.address) == VALUE // 4
    assert await still.balance(client, still.payer.address) == 10 * VALUE - VALUE // 4


async def test_a_reorganisation_takes_a_hold_and_its_parts_back(still: Market) -> None:
    merchant = still.merchant()
    await held(still, merchant)
    await merchant.holds.capture("order-1", VALUE // 2, key="parcel 1", timeout=0)
    still.mine()
    assert (await merchant.holds.wait("parcel 1")).state is MovementState.SEEN
    still.rival(2, [[], [], []])
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state in (State.AUTHORIZING, State.STORED)
    assert (await merchant.holds.wait("parcel 1", 0)).state is MovementState.REQUESTED
    for _ in range(4):
        still.mine()
        await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.HELD
    assert (await merchant.holds.wait("parcel 1")).state.counts


async def test_what_was_captured_of_a_hold_goes_back_through_its_escrow(still: Market) -> None:
    merchant, client = still.merchant(), still.client()
    await held(still, merchant)
    with pytest.raises(LimitReached):
        await merchant.refund("order-1", 1)
    await merchant.holds.capture("order-1", VALUE // 2, key="parcel 1", timeout=0)
    still.mine()
    await merchant.reconcile()
    with pytest.raises(MovementRefused):  # The refund collector has no allowance yet.
        await merchant.refund("order-1", VALUE // 4, refund_id="return 1")
    asked = asyncio.create_task(merchant.holds.allow_refunds(still.token.token, VALUE))
    while not still.node.pool.executable_count:
        await asyncio.sleep(0.01)
    still.mine()
    await asked
    with pytest.raises(InvalidTerms):
        await merchant.refund("order-1", 1, recipient=still.stranger.address)
    for _ in range(2):
        await merchant.refund(
            "order-1", VALUE // 4, refund_id="return 1", until=MovementState.REQUESTED, timeout=0
        )
    still.mine()
    await merchant.reconcile()
    assert await merchant.amounts("order-1") == (VALUE, VALUE // 2, VALUE // 4)
    assert await still.balance(client, still.shop.address) == VALUE // 4
    assert await still.balance(client, still.payer.address) == FUNDS - VALUE + VALUE // 4
    assert (await merchant.holds.hold("order-1")).held == (True, VALUE // 2, VALUE // 4)
    with pytest.raises(LimitReached):
        await merchant.refund("order-1", VALUE // 2, refund_id="return 2")


async def test_a_reorganisation_takes_the_end_of_a_hold_back(still: Market) -> None:
    """A reorganisation removes the void, and a second one removes the hold itself."""
    merchant = still.merchant()
    await held(still, merchant)
    await merchant.holds.capture("order-1", VALUE // 2, key="parcel 1", timeout=0)
    still.mine()
    await merchant.holds.void("order-1", timeout=0)
    still.mine()
    for _ in range(2):
        await merchant.reconcile()
    assert (await merchant.order("order-1")).paid
    still.rival(1, [[], []])
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.HELD
    for _ in range(3):
        still.mine()
        await merchant.reconcile()
    assert (await merchant.order("order-1")).paid
    still.rival(still.node.chain.head.number - 3, [[]] * 10)
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state in (State.AUTHORIZING, State.STORED)
    assert {movement.state for movement in await merchant.movements("order-1")} == {
        MovementState.REQUESTED
    }


async def test_only_a_hold_is_held(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    with pytest.raises(InvalidTerms):
        await merchant.holds.capture("order-1", 1, key="x")


async def test_captures_of_holds_count_in_the_limit_of_a_day(still: Market) -> None:
    merchant = still.merchant(most_per_day=VALUE)
    await held(still, merchant)
    await merchant.holds.capture("order-1", VALUE // 2, key="parcel 1", timeout=0)
    await still.stored(merchant, "order-2")
    with pytest.raises(LimitReached, match="captured today"):
        await merchant.capture("order-2", until=State.CAPTURING)
    await still.stored(merchant, "order-3", value=VALUE // 2)
    await merchant.capture("order-3", until=State.CAPTURING)
    with pytest.raises(LimitReached, match="captured today"):
        await merchant.holds.capture("order-1", 1, key="parcel 2", timeout=0)


async def test_a_hold_without_its_escrow_is_refused(still: Market) -> None:
    merchant, client = still.merchant(), still.client()
    with pytest.raises(InvalidTerms, match=f"chain 31337 has no escrow at {V1_1.escrow}"):
        await merchant.draft("order-1", still.payer.address, VALUE, hold=HoldTerms())
    await place_escrow(client, V1_1, STORE, MULTICALL)
    order = await merchant.draft("order-1", still.payer.address, VALUE, hold=HoldTerms())
    await merchant.accept("order-1", still.signed(order))
    await client.call("anvil_setCode", V1_1.escrow, "0x")
    for force in (False, True):
        with pytest.raises(CaptureRefused, match=f"no escrow at {V1_1.escrow}") as refused:
            await merchant.capture("order-1", until=State.HELD, force=force)
        assert refused.value.report.reason is Reason.NO_ESCROW
    assert await merchant.submissions("order-1") == []
    await place_escrow(client, V1_1, STORE, MULTICALL)
    await merchant.hold("order-1", timeout=0)
    still.mine()
    assert (await merchant.hold("order-1", timeout=MAX_WAIT)).state is State.HELD
