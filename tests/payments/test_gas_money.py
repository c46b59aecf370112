"""Tests senders that cannot pay for gas: they are reported, and retried with unchanged fees."""

import json

import pytest
from eth_account import Account

from fastevm.payments import (
    CaptureRefused,
    KeySigner,
    Merchant,
    NodeClient,
    Progress,
    Purpose,
    Reason,
    State,
    transactions,
)
from fastevm.payments.node import HttpTransport
from tests.max_wait import MAX_WAIT

from .market import VALUE, Market

POOR = Account.from_key("0x" + "55" * 32)
GIVEN = 10**15


async def poor(market: Market, *names: str, wei: int = 0, **policy: float) -> Merchant:
    """Returns a merchant whose sender has only ``wei`` for gas. Stores orders."""
    if wei:
        market.send(market.admin, POOR.address, b"", value=wei)
    merchant = market.merchant(signer=KeySigner(POOR.key), **policy)
    for name in names:
        await market.stored(merchant, name, recipient=POOR.address)
    return merchant


async def test_the_boundary_of_the_verdict_is_the_pools(still: Market) -> None:
    merchant = await poor(still, "order-1", wei=10**18)
    (report,) = await merchant.check()
    quote = merchant.preflight.quote
    assert quote is not None and report.gas is not None
    needed = merchant.policy.gas_limit(report.gas) * quote.cap
    await merchant.node.call("anvil_setBalance", POOR.address, hex(needed - 1))
    (report,) = await merchant.check()
    assert report.reason is Reason.GAS_FUNDS
    with pytest.raises(CaptureRefused):
        await merchant.capture("order-1")
    await merchant.node.call("anvil_setBalance", POOR.address, hex(2 * needed))
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid


async def test_what_is_on_its_way_counts_against_the_balance(still: Market) -> None:
    merchant = await poor(still, "order-1", "order-2", wei=10**18)
    await merchant.capture("order-1", until=State.CAPTURING)
    (sent,) = await merchant.submissions("order-1")
    await merchant.node.call("anvil_setBalance", POOR.address, hex(sent.gas * sent.max_fee + 1))
    (report,) = await merchant.check(["order-2"])
    assert report.reason is Reason.GAS_FUNDS
    assert "pending transactions" in report.verdict("gas").detail


async def test_a_refused_transaction_is_not_made_dearer_and_goes_on_after_a_top_up(
    still: Market,
) -> None:
    merchant = await poor(still, "order-1", "order-2", bump_after=0.0)
    order = await merchant.capture("order-1", until=State.CAPTURING, force=True)
    for _ in range(12):
        await merchant.reconcile()
    (sent,) = await merchant.submissions("order-1")
    assert (sent.bump, sent.progress, sent.reason) == (0, Progress.REFUSED, Reason.GAS_FUNDS)
    order = await merchant.order("order-1")
    assert (order.state, order.reason) == (State.CAPTURING, Reason.GAS_FUNDS)
    assert "wei for gas" in order.detail
    with pytest.raises(CaptureRefused):
        await merchant.capture("order-2")
    still.send(still.admin, POOR.address, b"", value=10**18)
    await merchant.reconcile()
    assert (await merchant.order("order-1")).reason is None
    await merchant.capture("order-2", until=State.CAPTURING)
    still.mine()
    for name in ("order-1", "order-2"):
        assert (await merchant.wait(name, State.PAID, MAX_WAIT)).paid


async def test_a_refused_transaction_becomes_cheaper_when_fees_fall(still: Market) -> None:
    merchant = await poor(still, "order-1", tip=100 * 10**9)
    await merchant.capture("order-1", until=State.CAPTURING, force=True)
    (dear,) = await merchant.submissions("order-1")
    await merchant.node.call("anvil_setBalance", POOR.address, hex(dear.gas * dear.max_fee // 10))
    cheaper = await poor(still, tip=1)
    await cheaper.reconcile()
    first, second = await cheaper.submissions("order-1")
    assert second.max_fee < first.max_fee
    assert second.progress is Progress.SENT
    still.mine()
    assert (await cheaper.wait("order-1", State.PAID, MAX_WAIT)).paid


async def test_nothing_waits_behind_a_nonce_that_will_not_come(still: Market) -> None:
    """The sender cannot pay for the first transaction, but for the second, which must not wait."""
    dear = await poor(still, "order-1", "order-2", wei=GIVEN, tip=100 * 10**9)
    await dear.capture("order-1", until=State.CAPTURING, force=True)
    (refused,) = await dear.submissions("order-1")
    assert refused.progress is Progress.REFUSED
    cheap = await poor(still, tip=1)
    await cheap.capture("order-2", until=State.CAPTURING, force=True)
    for _ in range(2):
        await dear.reconcile()
        still.mine()
        await dear.reconcile()
    assert (await dear.order("order-2")).paid
    first = await dear.order("order-1")
    assert (first.state, first.reason) == (State.STORED, Reason.GAS_FUNDS)
    assert [submission.purpose for submission in await dear.submissions("order-1")] == [
        Purpose.CAPTURE,
        Purpose.FILL,
    ]
    assert not still.node.pool.queued_count
    await dear.node.call("anvil_setBalance", POOR.address, hex(10**18))
    await dear.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await dear.wait("order-1", State.PAID, MAX_WAIT)).paid


async def test_an_order_that_expires_unpaid_for_gas_leaves_no_gap(still: Market) -> None:
    merchant = await poor(still)
    await still.stored(
        merchant, "order-1", recipient=POOR.address, valid_before=still.now + 20, value=VALUE
    )
    await merchant.capture("order-1", until=State.CAPTURING, force=True)
    still.warp(still.now + 60)
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.EXPIRED
    still.send(still.admin, POOR.address, b"", value=10**18)
    await still.stored(merchant, "order-2", recipient=POOR.address)
    await merchant.reconcile()
    await merchant.capture("order-2", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-2", State.PAID, MAX_WAIT)).paid


class Full(HttpTransport):
    """A connection to a node whose pool rejects all transactions while ``full`` is true."""

    full = True

    async def send(self, body: bytes) -> bytes:
        if self.full and b"eth_sendRawTransaction" in body:
            error = {"code": -32000, "message": "txpool is full"}
            answer = {"jsonrpc": "2.0", "id": json.loads(body)["id"], "error": error}
            return json.dumps(answer).encode()
        return await super().send(body)


async def test_what_a_full_pool_refused_is_the_same_transaction_later(still: Market) -> None:
    """A retry has the same fees, so its bytes are equal and the store has one submission."""
    transport = Full(still.server.urls[0])
    client = NodeClient(transport)
    still.clients.append(client)
    merchant = still.merchant(node=client, bump_after=0.0)
    await still.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    for _ in range(3):
        await merchant.reconcile()
    assert len(await merchant.submissions("order-1")) == 1
    transport.full = False
    await merchant.reconcile()
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid


async def test_a_pool_is_given_what_it_can_keep(
    still: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the pool lost all transactions, they are sent again by nonce, up to the pool's limit."""
    merchant = still.merchant(bump_after=1e9)
    names = [f"order-{number}" for number in range(5)]
    for name in names:
        await still.stored(merchant, name)
        await merchant.capture(name, until=State.CAPTURING, timeout=0)
    monkeypatch.setattr(transactions, "MOST_AHEAD", 2)
    again = still.merchant(bump_after=1e9)
    await again.reconcile()
    assert [len(group) for group in again.transactions.open_groups()] == [1, 1]
    for _ in range(3):
        still.mine()
        await again.reconcile()
    for name in names:
        assert (await again.wait(name, State.PAID, MAX_WAIT)).paid
