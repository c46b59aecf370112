"""Tests captures on a node: every row of the table of states in interface.md, and failures."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from fastevm.payments import (
    CaptureRefused,
    IllegalTransition,
    Kind,
    Merchant,
    Order,
    Progress,
    Purpose,
    Reason,
    State,
)
from fastevm.payments.preflight import failure_of
from tests.max_wait import MAX_WAIT

from .market import FUNDS, VALUE, Market
from .stores import BOTH

STORES = BOTH


async def trail_of(merchant: Merchant, order_id: str) -> list[str]:
    """Returns the states through which an order went, from the audit trail."""
    return [entry.after for entry in await merchant.audit(order_id)]


def _into(seen: list[State]) -> Callable[[Order], None]:
    return lambda order: seen.append(order.state)


async def test_terms_are_drafted_signed_stored_and_nothing_moves(still: Market) -> None:
    merchant = still.merchant()
    order = await merchant.draft("order-1", still.payer.address, VALUE)
    assert order.state is State.DRAFTED
    assert order.authorization.terms.valid_before == still.now + 900
    order = await merchant.accept("order-1", still.signed(order))
    assert order.state is State.STORED
    steps = [(entry.before, entry.after) for entry in await merchant.audit("order-1")]
    assert steps == [("", "drafted"), ("drafted", "signed"), ("signed", "stored")]
    (report,) = await merchant.check()
    assert report.ok
    assert report.verdict("nonce").ok
    assert await still.balance(merchant.node, still.payer.address) == FUNDS


async def test_a_capture_is_paid_only_by_its_canonical_receipt(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    order = await merchant.capture("order-1", until=State.CAPTURING)
    assert order.state is State.CAPTURING
    assert not order.paid
    still.mine()
    order = await merchant.wait("order-1", State.PAID, MAX_WAIT)
    assert order.paid
    assert await still.balance(merchant.node, still.shop.address) == VALUE
    (sent,) = await merchant.submissions("order-1")
    assert sent.progress is Progress.SUCCEEDED
    assert order.settlement and order.settlement.transaction_hash == sent.transaction_hash
    (entry,) = await merchant.ledger()
    assert entry.amount == VALUE
    assert entry.authorization == (
        still.payer.address,
        "0x" + order.authorization.terms.nonce.hex(),
    )


async def test_depth_decides_when_a_capture_is_paid(still: Market) -> None:
    merchant = still.merchant(depth=3)
    await still.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    for expected in (State.CAPTURED, State.CAPTURED, State.PAID):
        still.mine()
        await merchant.reconcile()
        assert (await merchant.order("order-1")).state is expected


async def test_a_capture_is_pre_confirmed_before_it_is_canonical(still: Market) -> None:
    merchant = still.merchant(node=still.client(feed=True, early=True))
    await still.stored(merchant)
    seen: list[State] = []
    merchant.on_change(_into(seen))
    still.begin()
    capture = asyncio.create_task(merchant.capture("order-1", timeout=MAX_WAIT))
    while not still.node.pool.executable_count:
        await asyncio.sleep(0.01)
    still.close_slice()
    while "pre_confirmed" not in (trail := await trail_of(merchant, "order-1")):
        await asyncio.sleep(0.01)
    assert "captured" not in trail
    assert not (await merchant.order("order-1")).paid
    still.mine()
    assert (await capture).paid
    assert seen == [State.CAPTURING, State.CAPTURED, State.PAID]
    trail = await trail_of(merchant, "order-1")
    assert trail.index("pre_confirmed") < trail.index("captured") < trail.index("paid")


async def test_asking_twice_captures_once(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    both = asyncio.gather(*(merchant.capture("order-1", timeout=MAX_WAIT) for _ in range(5)))
    while not still.node.pool.executable_count:
        await asyncio.sleep(0.01)
    still.mine()
    assert all(order.paid for order in await both)
    assert (await merchant.capture("order-1")).paid
    assert len(await merchant.submissions("order-1")) == 1
    assert await still.balance(merchant.node, still.shop.address) == VALUE


async def test_orders_captured_together_follow_each_other_without_a_gap(still: Market) -> None:
    merchant = still.merchant()
    names = [f"order-{number}" for number in range(5)]
    for name in names:
        await still.stored(merchant, name)
    await asyncio.gather(*(merchant.capture(name, until=State.CAPTURING) for name in names))
    sent = [submission for name in names for submission in await merchant.submissions(name)]
    assert sorted(submission.account_nonce for submission in sent) == [0, 1, 2, 3, 4]
    still.mine()
    orders = [await merchant.wait(name, State.PAID, MAX_WAIT) for name in names]
    assert all(order.paid for order in orders)


async def test_too_little_money_leaves_the_nonce_unused_and_a_top_up_helps(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    still.do(still.payer, "transfer", still.stranger.address, FUNDS - VALUE + 1)
    with pytest.raises(CaptureRefused) as refused:
        await merchant.capture("order-1")
    assert refused.value.report.reason is Reason.BALANCE
    order = await merchant.capture("order-1", until=State.CAPTURING, force=True)
    still.mine()
    order = await merchant.wait("order-1", State.PAID, MAX_WAIT)
    assert order.state is State.STORED
    assert order.reason is Reason.BALANCE
    assert order.detail == "ERC20: transfer amount exceeds balance"
    still.mint(still.payer.address, 1)
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid


async def test_a_cancelled_authorization_cannot_be_captured(still: Market) -> None:
    merchant = still.merchant()
    order = await still.stored(merchant)
    signature = still.signed(order)
    cancellation = still.cancelled(order)
    order = await merchant.cancel("order-1", cancellation, until=State.CANCELLING)
    assert order.state is State.CANCELLING
    still.mine()
    order = await merchant.wait("order-1", State.CANCELLED, MAX_WAIT)
    assert order.state is State.CANCELLED
    with pytest.raises(IllegalTransition):
        await merchant.capture("order-1")
    # The token rejects the cancelled authorization, no matter who submits it.
    again = await still.client().batch([still.capture_call(order, signature)])
    reason, words = failure_of(again[0])
    assert reason is Reason.NONCE_CONSUMED
    assert words == "FiatTokenV2: authorization is used or canceled"


async def test_cancelling_works_after_expiry_too(still: Market) -> None:
    merchant = still.merchant(depth=5)
    order = await still.stored(merchant, valid_before=still.now + 5)
    still.warp(still.now + 100)
    order = await merchant.cancel(
        "order-1", still.cancelled(order), until=State.CANCELLING, timeout=0
    )
    still.mine()
    order = await merchant.wait("order-1", State.CANCELLED, MAX_WAIT)
    assert order.state is State.CANCELLED


async def test_a_voided_order_is_never_submitted_though_its_nonce_stays_unused(
    still: Market,
) -> None:
    merchant = still.merchant()
    order = await still.stored(merchant)
    order = await merchant.void("order-1", "out of stock")
    assert order.state is State.VOIDED
    assert order.sealed is None
    with pytest.raises(IllegalTransition):
        await merchant.capture("order-1", force=True)
    assert await merchant.submissions("order-1") == []
    (report,) = await merchant.check(["order-1"])
    assert report.verdict("nonce").ok
    assert (await merchant.audit("order-1"))[-1].detail == "out of stock"


async def test_a_voided_order_can_be_cancelled_for_good(still: Market) -> None:
    merchant = still.merchant()
    order = await still.stored(merchant)
    await merchant.void("order-1")
    order = await merchant.cancel("order-1", still.cancelled(order), until=State.CANCELLING)
    still.mine()
    order = await merchant.wait("order-1", State.CANCELLED, MAX_WAIT)
    assert order.state is State.CANCELLED


async def test_a_voided_order_stays_voided_when_its_cancellation_comes_to_nothing(
    still: Market,
) -> None:
    merchant = still.merchant()
    order = await still.stored(merchant)
    await merchant.void("order-1")
    await merchant.cancel("order-1", still.cancelled(order), until=State.CANCELLING)
    (sent,) = await merchant.submissions("order-1")
    still.node.pool.drop(bytes.fromhex(sent.transaction_hash[2:]))
    still.send(still.shop, still.shop.address, b"")
    await merchant.reconcile()
    still.mine()
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert order.state is State.VOIDED
    assert order.sealed is None


async def test_a_window_that_closes_ends_the_order(still: Market) -> None:
    merchant = still.merchant(depth=2)
    order = await still.stored(merchant, valid_before=still.now + 50)
    still.warp(order.authorization.terms.valid_before)
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.STORED, "a reorganisation may follow"
    still.mine()
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert order.state is State.EXPIRED
    assert order.reason is Reason.EXPIRED


async def test_the_nonce_burned_by_another_payment_fails_the_order(still: Market) -> None:
    """The payer signs the same nonce twice: for the merchant, and for another recipient."""
    merchant = still.merchant()
    order = await still.stored(merchant)
    elsewhere = still.terms(
        nonce=order.authorization.terms.nonce, recipient=still.stranger.address, value=1
    )
    still.take(elsewhere, still.stranger)
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert order.state is State.FAILED
    assert order.reason is Reason.NONCE_SPENT_ELSEWHERE
    assert await merchant.ledger() == []


async def test_the_nonce_spent_on_less_for_us_is_no_payment_of_the_order(still: Market) -> None:
    """The payer signs the order's nonce again for one unit, and a stranger submits that."""
    merchant = still.merchant()
    order = await still.stored(merchant)
    less = still.terms(nonce=order.authorization.terms.nonce, value=1)
    still.take(less, still.stranger, kind=Kind.TRANSFER)
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert order.state is State.FAILED
    assert order.reason is Reason.NONCE_SPENT_ELSEWHERE
    assert [entry.amount for entry in await merchant.ledger()] == [1]


async def test_a_capture_from_elsewhere_is_seen(still: Market) -> None:
    """Another system of the merchant submits the order's signature to the chain."""
    merchant = still.merchant()
    order = await still.stored(merchant)
    still.take(order.authorization.terms, still.shop)
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert order.paid
    assert await merchant.submissions("order-1") == []


async def test_a_stuck_capture_is_replaced_with_higher_fees(still: Market) -> None:
    merchant = still.merchant(bump_after=0.05, tip=1, most_bumps=3)
    await still.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    for _ in range(8):
        await asyncio.sleep(0.06)
        await merchant.reconcile()
    sent = await merchant.submissions("order-1")
    assert [submission.bump for submission in sent] == [0, 1, 2, 3]
    assert {submission.account_nonce for submission in sent} == {0}
    for old, new in pairwise(sent):
        assert new.max_fee * 10 >= old.max_fee * 11
        assert new.priority_fee * 10 >= old.priority_fee * 11
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    ends = [submission.progress for submission in await merchant.submissions("order-1")]
    assert ends == [Progress.REPLACED] * 3 + [Progress.SUCCEEDED]
    assert await still.balance(merchant.node, still.shop.address) == VALUE


async def test_a_transaction_that_somebody_else_displaced_releases_the_order(
    still: Market,
) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    (sent,) = await merchant.submissions("order-1")
    still.node.pool.drop(bytes.fromhex(sent.transaction_hash[2:]))
    still.send(still.shop, still.shop.address, b"")
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.CAPTURING, "one head is no proof"
    still.mine()
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert order.state is State.STORED
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    ends = [submission.progress for submission in await merchant.submissions("order-1")]
    assert ends == [Progress.LOST, Progress.SUCCEEDED]


async def test_a_transaction_that_the_node_forgot_is_sent_again_unchanged(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    (sent,) = await merchant.submissions("order-1")
    still.node.pool.drop(bytes.fromhex(sent.transaction_hash[2:]))
    await merchant.reconcile()
    assert still.node.pool.find(bytes.fromhex(sent.transaction_hash[2:])) is not None
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    (same,) = await merchant.submissions("order-1")
    assert same.purpose is Purpose.CAPTURE
