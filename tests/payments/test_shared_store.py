"""One store for several tokens and chains: nobody touches another one's orders."""

from fastevm.payments import Domain, State

from .market import Market


async def test_orders_of_another_chain_and_token_are_left_alone(still: Market) -> None:
    merchant = still.merchant()
    ours = await still.stored(merchant, "ours")
    token = still.token
    still.token = Domain("USD Coin", "2", 8453, token.token)
    elsewhere = await still.stored(still.merchant(), "elsewhere")
    still.token = Domain("USD Coin", "2", token.chain_id, "0x" + "cc" * 20)
    other = await still.stored(still.merchant(), "other")
    assert {report.order_id for report in await merchant.check()} == {"ours"}
    await merchant.capture("ours", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("ours", State.PAID, 20)).paid
    still.warp(ours.authorization.terms.valid_before + 1)
    await merchant.reconcile()
    assert (await merchant.order("elsewhere")).version == elsewhere.version
    assert (await merchant.order("other")).version == other.version


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
