"""Tests a merchant that waits for ``safe`` or ``finalized``, on a development chain with epochs."""

import pytest

from fastevm.payments import MovementState, State
from tests.max_wait import MAX_WAIT

from .market import VALUE, Market

EPOCH = 3  # length of an epoch in blocks


@pytest.mark.parametrize(("depth", "epochs"), [("safe", 1), ("finalized", 2)])
async def test_a_payment_is_paid_when_its_block_has_the_tag(
    still: Market, depth: str, epochs: int
) -> None:
    still.node.slots_in_an_epoch = EPOCH
    merchant = still.merchant(depth=depth)
    await still.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    for _ in range(epochs * EPOCH):
        await merchant.reconcile()
        assert (await merchant.order("order-1")).state is State.CAPTURED
        still.mine()
    await merchant.reconcile()
    assert (await merchant.order("order-1")).paid
    await merchant.refund("order-1", VALUE // 2, until=MovementState.REQUESTED)
    still.mine()
    for _ in range(epochs * EPOCH):
        await merchant.reconcile()
        assert [item.state for item in await merchant.movements()] == [MovementState.SEEN]
        still.mine()
    await merchant.reconcile()
    assert [item.state for item in await merchant.movements()] == [MovementState.FINAL]


async def test_without_epochs_the_newest_block_has_every_tag(still: Market) -> None:
    """Without epochs, the newest block is also ``safe`` and ``finalized``."""
    merchant = still.merchant(depth="finalized")
    await still.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
