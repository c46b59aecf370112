"""Tests captures in which signer, recipient and payer of the gas are different accounts."""

import pytest

from fastevm.payments import InvalidTerms, KeySigner, Kind, Merchant, Policy, ThroughWallet, Vault
from tests.max_wait import MAX_WAIT

from .market import KEY, VALUE, Market


def back_end(market: Market, key: bytes, **options: object) -> Merchant:
    return Merchant(
        market.client(),
        market.store(),
        Vault([KEY]),
        market.token,
        KeySigner(key),
        policy=Policy(poll=0.01, capture_in=5),
        clock=lambda: market.now,
        **options,  # type: ignore[arg-type]
    )


async def pay(market: Market, merchant: Merchant, kind: Kind) -> None:
    order = await merchant.draft("order-1", market.payer.address, VALUE, kind=kind)
    await merchant.accept("order-1", market.signed(order))
    await merchant.capture("order-1", timeout=0)
    market.mine()
    order = await merchant.capture("order-1", timeout=MAX_WAIT)
    assert order.paid, order


async def test_a_treasury_wallet_receives_and_its_owner_pays_the_gas(still: Market) -> None:
    wallet = still.deploy("Wallet", still.shop.address)
    merchant = back_end(still, still.shop.key, route=ThroughWallet(wallet))
    await pay(still, merchant, Kind.RECEIVE)
    assert await still.balance(still.client(), wallet) == VALUE
    (entry,) = await merchant.ledger()
    assert entry.transfer.text("recipient") == merchant.recipient == wallet


async def test_a_relayer_captures_transfers_for_another_account(still: Market) -> None:
    merchant = back_end(still, still.stranger.key, recipient=still.shop.address)
    await pay(still, merchant, Kind.TRANSFER)
    assert await still.balance(still.client(), still.shop.address) == VALUE


async def test_what_only_the_recipient_could_submit_is_refused(still: Market) -> None:
    merchant = back_end(still, still.stranger.key, recipient=still.shop.address)
    with pytest.raises(InvalidTerms, match="RECEIVE"):
        await merchant.draft("order-1", still.payer.address, VALUE)
    assert await merchant.orders() == []
