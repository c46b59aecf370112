"""Tests captures shortly before the authorization expires.

The safety margin depends on the chain.
"""

import pytest

from fastevm.payments import CaptureRefused, Merchant, Reason, State
from fastevm.payments.chain import MOST_MARGIN, InclusionTimes
from tests.max_wait import MAX_WAIT

from .market import Market


async def left(market: Market, merchant: Merchant, name: str, seconds: int) -> bool | None:
    """Returns whether an authorization that expires so soon passes the check.

    ``seconds``: the time after the timestamp of the pending block.
    """
    pending = int(
        (await merchant.node.call("eth_getBlockByNumber", "pending", False))["timestamp"], 16
    )
    await market.stored(merchant, name, valid_before=pending + seconds)
    (report,) = await merchant.check([name])
    verdict = report.verdict("window_at_capture")
    assert verdict.ok or verdict.reason is Reason.EXPIRED
    return verdict.ok


async def test_one_block_is_enough_until_an_inclusion_was_seen(still: Market) -> None:
    still.mine(70)  # 70 blocks, one per second
    merchant = still.merchant(capture_in=None)
    assert await left(still, merchant, "order-1", 2)
    assert await merchant.margin() == 1
    assert not await left(still, merchant, "order-2", 1)
    with pytest.raises(CaptureRefused):
        await merchant.capture("order-2", timeout=0)
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid


async def test_slow_blocks_need_more(still: Market) -> None:
    still.mine(70, seconds=12)
    merchant = still.merchant(capture_in=None)
    assert not await left(still, merchant, "order-1", 12)
    assert await left(still, merchant, "order-2", 13)


@pytest.mark.parametrize(("waited", "margin"), [(1, 1), (4, 4), (500, MOST_MARGIN + 1)])
async def test_the_margin_is_the_observed_inclusion_time(
    still: Market, waited: int, margin: int
) -> None:
    still.mine(70)
    merchant = still.merchant(capture_in=None)
    await still.stored(merchant, "order-1", valid_before=still.now + 10_000)
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine(seconds=waited)  # the block comes late: it was due after 1 s
    still.mine(3)
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    assert await merchant.margin() == margin
    assert not await left(still, merchant, "order-2", margin)
    assert await left(still, merchant, "order-3", margin + 1)


async def test_a_fixed_margin_is_kept(still: Market) -> None:
    merchant = still.merchant(capture_in=7)
    assert not await left(still, merchant, "order-1", 7)
    assert await left(still, merchant, "order-2", 8)


def test_one_stuck_transaction_says_little() -> None:
    times = InclusionTimes()
    assert times.margin() is None
    for seconds in (60, *[1] * 15):
        times.add(seconds)
    assert times.margin() == 2
    times.add(-5)
    assert times.margin() == 2
