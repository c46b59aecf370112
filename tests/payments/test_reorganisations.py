"""Tests reorganisations: removed payments are undone, and no payment is counted twice."""

from fastevm.payments import Merchant, Progress, Reason, State
from tests.max_wait import MAX_WAIT

from .market import VALUE, Market
from .stores import BOTH

STORES = BOTH


async def paid(market: Market, **policy: int) -> Merchant:
    """Returns a merchant with one order, paid in the newest block."""
    merchant = market.merchant(**policy)
    await market.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    market.mine()
    order = await merchant.wait("order-1", State.PAID, MAX_WAIT)
    assert order.paid
    return merchant


async def test_a_capture_that_a_longer_branch_drops_is_paid_no_more_and_comes_back(
    still: Market,
) -> None:
    merchant = await paid(still)
    first = (await merchant.order("order-1")).settlement
    still.rival(1, [[], []])
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert order.state is State.CAPTURING
    assert order.settlement is None
    assert await merchant.ledger() == []
    still.mine()
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert order.paid
    assert order.settlement is not None
    assert order.settlement.transaction_hash == first.transaction_hash
    assert order.settlement.block_hash != first.block_hash
    assert [entry.amount for entry in await merchant.ledger()] == [VALUE]
    (sent,) = await merchant.submissions("order-1")
    assert sent.progress is Progress.SUCCEEDED


async def test_a_capture_moved_to_another_block_counts_once(still: Market) -> None:
    merchant = await paid(still)
    old = still.node.chain.head
    still.rival(1, [[], list(old.transactions)])
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert order.paid
    assert order.settlement and order.settlement.block_number == old.number + 1
    assert [entry.amount for entry in await merchant.ledger()] == [VALUE]
    what = [entry.what for entry in await merchant.audit("order-1")]
    assert what.count("seen captured") == 2
    assert what.count("uncaptured by a reorganisation") == 1


async def test_a_branch_that_wins_back_counts_once(still: Market) -> None:
    merchant = await paid(still)
    old = still.node.chain.head
    other = still.rival(1, [[], []])[-1]
    await merchant.reconcile()
    assert not (await merchant.order("order-1")).paid
    with still.node.producer.lock:
        still.node.chain.set_head(old.hash)
    still.mine(2)
    await merchant.reconcile()
    assert (await merchant.order("order-1")).paid
    assert [entry.amount for entry in await merchant.ledger()] == [VALUE]
    assert other.hash != old.hash


async def test_a_payment_that_moves_below_every_block_that_was_read_is_found(
    still: Market,
) -> None:
    merchant = still.merchant(overlap=1)
    still.mine(3)
    still.do(still.payer, "transfer", still.shop.address, VALUE)
    moved = list(still.node.chain.head.transactions)
    still.mine(2)
    await merchant.reconcile()
    assert [entry.amount for entry in await merchant.ledger()] == [VALUE]
    parent = still.rival(4, [moved, [], [], [], []])[0]
    await merchant.reconcile()
    (entry,) = await merchant.ledger()
    assert entry.transfer.key.block_hash == "0x" + parent.hash.hex()


async def test_a_rival_of_the_same_height_decides_nothing_until_a_later_head(
    still: Market,
) -> None:
    merchant = await paid(still)
    still.rival(1, [[]])
    await merchant.reconcile()
    assert (await merchant.order("order-1")).paid
    still.rival(1, [[], []], mark=2)
    await merchant.reconcile()
    assert not (await merchant.order("order-1")).paid


async def test_a_reorganisation_deeper_than_overlap_and_depth_is_seen(still: Market) -> None:
    merchant = await paid(still, overlap=2)
    for _ in range(8):
        still.mine()
        await merchant.reconcile()
    assert (await merchant.order("order-1")).paid
    still.rival(9, [[] for _ in range(10)])
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert order.state is State.CAPTURING
    assert await merchant.ledger() == []


async def test_a_chain_that_got_shorter_is_followed_once_it_is_longer_again(
    still: Market,
) -> None:
    """A shorter chain looks like a lagging node until its next block arrives."""
    merchant = await paid(still)
    parent = still.node.chain.head.header.parent_hash
    with still.node.producer.lock:
        still.node.chain.set_head(parent)
    await merchant.reconcile()
    assert (await merchant.order("order-1")).paid
    assert merchant.metrics.value("node_behind_blocks") == 1
    still.rival(0, [[], []])
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.CAPTURING
    assert await merchant.ledger() == []
    assert merchant.metrics.value("node_behind_blocks") == 0


async def test_a_cancellation_that_is_dropped_is_sent_again(still: Market) -> None:
    merchant = still.merchant()
    order = await still.stored(merchant)
    await merchant.cancel("order-1", still.cancelled(order), until=State.CANCELLING)
    still.mine()
    assert (await merchant.wait("order-1", State.CANCELLED, MAX_WAIT)).state is State.CANCELLED
    still.rival(1, [[], []])
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.CANCELLING
    still.mine()
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.CANCELLED


async def test_a_burned_nonce_that_is_freed_revives_the_order(still: Market) -> None:
    merchant = still.merchant()
    order = await still.stored(merchant)
    nonce = order.authorization.terms.nonce
    elsewhere = still.terms(nonce=nonce, recipient=still.stranger.address, value=1)
    still.take(elsewhere, still.stranger)
    burning = list(still.node.chain.head.transactions)
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.FAILED
    still.rival(1, [[], []])
    still.node.pool.drop(burning[0].hash)
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert order.state is State.STORED
    assert order.reason is None
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid


async def test_a_failed_capture_succeeds_on_another_branch(still: Market) -> None:
    """On one branch the payer's money leaves before the capture, on the other afterwards."""
    merchant = still.merchant(depth=1)
    await still.stored(merchant)
    still.mine()
    still.do(still.payer, "transfer", still.stranger.address, 10 * VALUE, mine=False)
    still.mine()
    leaving = list(still.node.chain.head.transactions)
    await merchant.capture("order-1", until=State.CAPTURING, force=True)
    still.mine()
    order = await merchant.wait("order-1", State.PAID, MAX_WAIT)
    assert order.state is State.STORED
    assert order.reason is Reason.BALANCE
    capturing = list(still.node.chain.head.transactions)
    still.rival(2, [capturing, leaving, []])
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert order.paid
    (entry,) = await merchant.ledger()
    assert entry.amount == VALUE


async def test_what_a_voided_order_once_sent_is_replaced_by_nothing(still: Market) -> None:
    """The order is voided after its capture failed.

    A reorganisation then frees the sender's nonce.
    """
    merchant = still.merchant()
    await still.stored(merchant)
    still.do(still.payer, "transfer", still.stranger.address, 10 * VALUE)
    await merchant.capture("order-1", until=State.CAPTURING, force=True)
    still.mine()
    order = await merchant.wait("order-1", State.PAID, MAX_WAIT)
    assert order.state is State.STORED
    await merchant.void("order-1")
    still.rival(1, [[], []])
    await merchant.reconcile()
    still.mine()
    await merchant.reconcile()
    ends = [
        (submission.purpose.value, submission.progress)
        for submission in await merchant.submissions("order-1")
    ]
    assert ends == [("capture", Progress.REPLACED), ("fill", Progress.SUCCEEDED)]
    assert (await merchant.order("order-1")).state is State.VOIDED


async def test_removed_logs_of_the_stream_make_a_scan_look_and_prove_nothing(
    still: Market,
) -> None:
    merchant = await paid(still)
    assert await merchant.scanner.apply_log({"removed": True})
    merchant.settler.apply_ledger()
    assert (await merchant.order("order-1")).paid
    await merchant.reconcile()
    assert (await merchant.order("order-1")).paid
