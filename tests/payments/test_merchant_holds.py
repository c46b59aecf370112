"""A merchant chooses for each order: a signature only, or a hold in the escrow."""

import pytest

from fastevm.payments import (
    HoldTerms,
    InvalidTerms,
    LimitReached,
    Merchant,
    MovementState,
    Order,
    State,
)
from fastevm.payments.contracts.placing import place_escrow
from fastevm.payments.escrow import V1_1
from fastevm.payments.x402.wrapped import MULTICALL

from .market import VALUE, Market

STORE = "0x5701E05701E05701E05701e05701e05701E05701"


async def held(market: Market, merchant: Merchant, order_id: str = "order-1") -> Order:
    """An order whose money waits in the escrow."""
    await place_escrow(market.client(), V1_1, STORE, MULTICALL)
    market.mine()
    order = await merchant.draft(order_id, market.payer.address, VALUE, hold=HoldTerms())
    await merchant.accept(order_id, market.signed(order))
    await merchant.hold(order_id, timeout=0)
    market.mine()
    order = await merchant.hold(order_id, timeout=5)
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


async def test_only_a_hold_is_held(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    with pytest.raises(InvalidTerms):
        await merchant.holds.capture("order-1", 1, key="x")
