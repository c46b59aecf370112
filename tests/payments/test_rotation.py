"""Tests that the vault's keys can be rotated while orders are open."""

import base64

import pytest

from fastevm.payments import Merchant, State, Vault, VaultError
from tests.max_wait import MAX_WAIT

from .market import KEY, Market
from .stores import BOTH

STORES = BOTH

NEW = b"\x09" * 32


def under(merchant: Merchant, *keys: bytes) -> Merchant:
    """Returns a back end on the merchant's store with other vault keys."""
    return Merchant(
        merchant.node, merchant.store, Vault(keys), merchant.token, merchant.signer,
        policy=merchant.policy, clock=merchant._clock,
    )  # fmt: skip


async def test_everything_sealed_moves_to_the_newest_key(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant, "order-1")
    await still.stored(merchant, "order-2")
    await merchant.capture("order-2", until=State.CAPTURING)
    both = under(merchant, NEW, KEY)
    assert await both.rotate_keys() == 3  # re-encrypts two signatures and a transaction
    assert await both.rotate_keys() == 0
    with pytest.raises(VaultError):
        await merchant.capture("order-1")
    newest = under(merchant, NEW)
    await newest.capture("order-1", until=State.CAPTURING)
    still.mine()
    for name in ("order-1", "order-2"):
        assert (await newest.wait(name, State.PAID, MAX_WAIT)).paid


async def test_the_ring_of_the_environment_serves(
    still: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", base64.b64encode(KEY).decode())
    merchant = still.merchant()
    await still.stored(merchant)
    again = Merchant(
        merchant.node, merchant.store, Vault.from_environment(), merchant.token, merchant.signer
    )
    assert again.signature_of(await again.order("order-1")) is not None
