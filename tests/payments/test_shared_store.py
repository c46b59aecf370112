"""Tests a store that several shops, tokens and chains share: no shop sees another's orders."""

import pytest

from fastevm.payments import Domain, KeySigner, Merchant, NodeClient, Order, State, UnknownOrder
from tests.max_wait import MAX_WAIT

from .market import VALUE, Market
from .stores import BOTH

STORES = BOTH


async def drafted(market: Market, order_id: str, **changes: str) -> tuple[Merchant, Order]:
    """Drafts an order of another shop in the same store. Returns its merchant and the order."""
    merchant = market.merchant()
    # Drafting needs no node. The market's node has another chain.
    node, merchant.node = merchant.node, NodeClient("http://127.0.0.1:1")
    order = await merchant.draft(order_id, market.payer.address, VALUE)
    await merchant.node.close()
    merchant.node = node
    return merchant, order


async def test_orders_of_another_chain_and_token_are_left_alone(still: Market) -> None:
    merchant = still.merchant()
    ours = await still.stored(merchant, "ours")
    token = still.token
    still.token = Domain("USD Coin", "2", 8453, token.token)
    elsewhere, there = await drafted(still, "elsewhere")
    still.token = Domain("USD Coin", "2", token.chain_id, "0x" + "cc" * 20)
    other, that = await drafted(still, "other")
    assert {report.order_id for report in await merchant.check()} == {"ours"}
    await merchant.capture("ours", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("ours", State.PAID, MAX_WAIT)).paid
    still.warp(ours.authorization.terms.valid_before + 1)
    await merchant.reconcile()
    assert (await elsewhere.order("elsewhere")).version == there.version
    assert (await other.order("other")).version == that.version


async def test_two_shops_of_one_token_share_a_store_and_see_nothing_of_each_other(
    still: Market,
) -> None:
    """Both shops use the same order ids and the same payer. Recipients and depths differ."""
    first, second = (
        still.merchant(depth=1),
        still.merchant(signer=KeySigner(still.stranger.key), depth=3),
    )
    await still.stored(first)
    await still.stored(second, recipient=still.stranger.address, value=2 * VALUE)
    assert [order.id for order in await first.orders()] == ["order-1"]
    assert (await second.order("order-1")).authorization.terms.value == 2 * VALUE
    for merchant in (first, second):
        await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    for merchant in (second, first, second):
        await merchant.reconcile()
    assert (await first.order("order-1")).paid
    assert (await second.order("order-1")).state is State.CAPTURED, "the other shop's depth"
    assert [entry.amount for entry in await first.ledger()] == [VALUE]
    assert [entry.amount for entry in await second.ledger()] == [2 * VALUE]
    for merchant in (first, second):
        assert len(await merchant.submissions("order-1")) == 1
        assert len({entry.detail for entry in await merchant.audit("order-1")}) >= 1
    with pytest.raises(UnknownOrder):
        await second.order("order-2")
    await first.draft("order-2", still.payer.address, VALUE)
    with pytest.raises(UnknownOrder):
        await second.void("order-2")


async def test_two_tokens_of_one_account_never_use_a_nonce_twice(still: Market) -> None:
    first, token = still.merchant(), still.token
    await still.stored(first)
    address = still.deploy("Token", "USD Coin", "EURC", 6, still.admin.address)
    still.token = Domain("USD Coin", "2", token.chain_id, address)
    still.mint(still.payer.address, 10 * VALUE)
    second = still.merchant()
    await still.stored(second)
    for merchant in (first, second):
        await merchant.capture("order-1", until=State.CAPTURING)
    nonces = [
        (await merchant.submissions("order-1"))[0].account_nonce for merchant in (first, second)
    ]
    assert nonces == [0, 1]
    still.mine()
    for merchant in (first, second):
        assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid


async def test_a_token_that_comes_later_is_read_from_its_beginning(still: Market) -> None:
    merchant, first = still.merchant(overlap=1), still.token
    address = still.deploy("Token", "Euro Coin", "EURC", 6, still.admin.address)
    still.token = Domain("Euro Coin", "2", first.chain_id, address)
    still.mint(still.payer.address, 100)
    still.do(still.payer, "transfer", still.shop.address, 7)
    still.mine(5)
    await merchant.reconcile()
    assert await merchant.ledger() == []
    later = still.merchant(overlap=1)
    await later.reconcile()
    assert [entry.amount for entry in await later.ledger()] == [7]
