"""Tests that drafting an order again returns the same draft, so that a page can be reloaded."""

import asyncio
from typing import Any

import pytest

from fastevm.payments import DuplicateOrder, ExpiredOrder, HoldTerms, Kind, LimitReached, State
from fastevm.payments.authorization import DEFAULT_LIFETIME
from fastevm.payments.contracts.placing import place_escrow
from fastevm.payments.erc6492 import MULTICALL
from fastevm.payments.escrow import V1_1

from .market import VALUE, Market
from .stores import BOTH

STORES = BOTH
# The escrow's token stores are clones of this contract.
STORE = "0x5701E05701E05701E05701e05701e05701E05701"


@pytest.fixture(autouse=True)
async def escrow(still: Market) -> None:
    await place_escrow(still.client(), V1_1, STORE, MULTICALL)


async def test_a_reloaded_checkout_gets_the_same_order(still: Market) -> None:
    merchant = still.merchant(most_per_order=VALUE)
    first = await merchant.draft("order-1", still.payer.address, VALUE, reference="two chairs")
    still.now += 60
    for item in (merchant, still.merchant()):
        again = await item.draft("order-1", still.payer.address.lower(), VALUE)
        assert again == first
    await merchant.accept("order-1", still.signed(first))
    assert (await merchant.draft("order-1", still.payer.address, VALUE)).state is State.STORED
    with pytest.raises(LimitReached):
        await merchant.draft("order-2", still.payer.address, VALUE + 1)


async def test_processes_that_draft_together_get_one_order(still: Market) -> None:
    many = [still.merchant() for _ in range(4)]
    drafts = await asyncio.gather(
        *(item.draft("order-1", still.payer.address, VALUE) for item in many)
    )
    assert len({draft.authorization.terms.nonce for draft in drafts}) == 1


@pytest.mark.parametrize("hold", [None, HoldTerms()])
async def test_other_terms_are_an_error_that_shows_both(
    still: Market, hold: HoldTerms | None
) -> None:
    merchant, payer = still.merchant(), still.payer.address
    first = await merchant.draft("order-1", payer, VALUE, hold=hold)
    assert await merchant.draft("order-1", payer, VALUE, hold=hold) == first
    other: dict[str, tuple[dict[str, Any], str]] = {
        "value": ({"value": 7}, f"value {VALUE:,} units, asked 7 units"),
        "payer": (
            {"payer": still.stranger.address},
            f"payer {payer}, asked {still.stranger.address}",
        ),
    }
    if hold is None:
        other["lifetime"] = ({"lifetime": 60}, "valid for .* s, asked .* s")
        other["kind"] = ({"kind": Kind.TRANSFER}, "kind ReceiveWithAuthorization, asked Transfer")
        other["hold"] = ({"hold": HoldTerms()}, "recipient .* asked")
        other["terms"] = ({"terms": still.terms()}, "nonce 0x.*, asked 0x.*")
    else:
        other["no hold"] = ({"hold": None}, "recipient .* asked")
        other["window"] = (
            {"hold": HoldTerms(capture_within=9_999)},
            "capture_within .* s after the signature, asked 9099 s",
        )
    for changes, text in other.values():
        asked = {"payer": payer, "value": VALUE, "hold": hold, **changes}
        with pytest.raises(DuplicateOrder, match=text) as refused:
            await merchant.draft("order-1", **asked)
        assert "order-1 exists with other terms" in str(refused.value)
    assert await merchant.order("order-1") == first


@pytest.mark.parametrize("hold", [None, HoldTerms()])
async def test_another_reference_is_an_error_that_shows_both(
    still: Market, hold: HoldTerms | None
) -> None:
    merchant, payer = still.merchant(), still.payer.address

    async def draft(**changes: Any) -> Any:
        return await merchant.draft("order-1", payer, VALUE, hold=hold, **changes)

    first = await draft(reference="two chairs")
    assert await draft(reference="two chairs") == await draft() == first
    text = "exists with other terms: reference 'two chairs', asked 'a lamp'"
    with pytest.raises(DuplicateOrder, match=text):
        await draft(reference="a lamp")
    assert await merchant.order("order-1") == first


@pytest.mark.parametrize("hold", [None, HoldTerms()])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("reconciled", [False, True])
async def test_an_expired_draft_is_an_error_that_says_so(
    still: Market, hold: HoldTerms | None, signed: bool, reconciled: bool
) -> None:
    merchant, payer = still.merchant(), still.payer.address
    order = await merchant.draft("order-1", payer, VALUE, hold=hold)
    if signed:
        await merchant.accept("order-1", still.signed(order))
    still.warp(order.authorization.terms.valid_before - 1)
    assert (await merchant.draft("order-1", payer, VALUE, hold=hold)).id == "order-1"
    still.mine()
    if reconciled:
        await merchant.reconcile()
        assert (await merchant.order("order-1")).state is State.EXPIRED
    text = (
        f"order order-1 has expired unpaid: it was valid before .* {still.now} .*another order_id"
    )
    with pytest.raises(ExpiredOrder, match=text):
        await merchant.draft("order-1", payer, VALUE, hold=hold)
    again = await merchant.draft("order-2", payer, VALUE, hold=hold)
    assert again.authorization.terms.valid_before == still.now + DEFAULT_LIFETIME


async def test_a_paid_order_is_drafted_again_after_its_window(still: Market) -> None:
    merchant, payer = still.merchant(), still.payer.address
    order = await merchant.draft("order-1", payer, VALUE)
    await merchant.accept("order-1", still.signed(order))
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    await merchant.wait("order-1", State.PAID)
    still.warp(order.authorization.terms.valid_before + 10)
    assert (await merchant.draft("order-1", payer, VALUE)).paid
