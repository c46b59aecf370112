"""Tests refunds and sweeps under crashes and reorganisations.

Each must be sent once, and their sum must not exceed the captured sum.
"""

import asyncio
from contextlib import suppress
from itertools import product
from typing import Any

import pytest

from fastevm.payments import (
    AlreadyRefunded,
    IllegalTransition,
    InvalidTerms,
    LimitReached,
    Merchant,
    Movement,
    MovementKind,
    MovementRefused,
    MovementState,
    PaymentError,
    Reason,
    State,
)
from fastevm.payments.movements import refund_key
from tests.max_wait import MAX_WAIT

from .market import FUNDS, VALUE, Market
from .stores import BOTH

STORES = BOTH


async def paid(market: Market, **policy: int) -> Merchant:
    merchant = market.merchant(**policy)
    await market.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    market.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    return merchant


def forget(market: Market) -> None:
    """Removes all transactions from the node's pool."""
    for tx_hash in list(market.node.pool.hashes()):
        market.node.pool.drop(tx_hash)


async def asked(merchant: Merchant, amount: int | None = None, **more: str) -> None:
    await merchant.refund("order-1", amount, until=MovementState.REQUESTED, **more)


async def test_a_refund_goes_back_to_the_payer(still: Market) -> None:
    merchant = await paid(still)
    asking = asyncio.create_task(merchant.refund("order-1", timeout=MAX_WAIT))
    while not still.node.pool.executable_count:
        await asyncio.sleep(0.01)
    still.mine()
    movement = await asking
    assert (movement.state, movement.amount) == (MovementState.FINAL, VALUE)
    assert movement.settlement is not None
    assert await still.balance(merchant.node, still.payer.address) == FUNDS
    assert await merchant.amounts("order-1") == (VALUE, VALUE, VALUE)
    assert (await merchant.order("order-1")).paid
    assert [entry.amount for entry in await merchant.ledger()] == [VALUE, VALUE]
    types = [notice.type for notice in merchant.store.notices()][-3:]
    assert types == ["refund.requested", "refund.included", "refund.confirmed"]


async def test_refunds_in_parts_never_pass_what_was_captured(still: Market) -> None:
    merchant = await paid(still)
    await asked(merchant, VALUE // 2, refund_id="first")
    await asked(merchant, VALUE // 2, refund_id="first")
    await asked(merchant, VALUE // 4, refund_id="second")
    with pytest.raises(LimitReached, match=f"{VALUE // 4:,} units"):
        await asked(merchant, VALUE // 2, refund_id="third")
    with pytest.raises(LimitReached, match="use another id"):
        await asked(merchant, VALUE // 8, refund_id="first")
    still.mine()
    await merchant.reconcile()
    assert (await merchant.amounts("order-1")).refundable == VALUE // 4
    assert {movement.state for movement in await merchant.movements()} == {MovementState.FINAL}
    assert await still.balance(merchant.node, still.shop.address) == VALUE // 4


async def test_processes_that_refund_at_once_refund_once(still: Market) -> None:
    await paid(still)
    many = [still.merchant() for _ in range(4)]
    ends = await asyncio.gather(*(asked(item) for item in many), return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["AlreadyRefunded"] * 3 + ["NoneType"]
    still.mine()
    await many[0].reconcile()
    assert await still.balance(many[0].node, still.payer.address) == FUNDS
    (movement,) = await many[0].movements("order-1")
    assert movement.state is MovementState.FINAL
    assert len(many[0].store.submissions(movement=movement.key)) == 1


async def test_a_refund_of_another_process_just_before_is_reported(
    still: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    merchant = await paid(still)
    looked = merchant._refund

    async def slow(*terms: Any) -> Movement:
        movement = await looked(*terms)
        await asked(still.merchant())
        return movement

    monkeypatch.setattr(merchant, "_refund", slow)
    with pytest.raises(AlreadyRefunded):
        await asked(merchant)


async def test_without_an_id_an_order_is_refunded_once(still: Market) -> None:
    merchant = await paid(still)
    await asked(merchant, VALUE // 4)
    text = f"already refunded {VALUE // 4:,} units as 'order-1/refund' .requested."
    for amount in (None, VALUE // 4, VALUE // 2):
        for item in (merchant, still.merchant()):
            with pytest.raises(AlreadyRefunded, match=text):
                await asked(item, amount)
    still.mine()
    await merchant.reconcile()
    with pytest.raises(AlreadyRefunded, match="final"):
        await asked(merchant, recipient=still.stranger.address)
    assert [movement.amount for movement in await merchant.movements("order-1")] == [VALUE // 4]


@pytest.mark.parametrize("account", ["zero", "token", "shop"])
async def test_money_is_not_sent_where_it_would_be_lost(still: Market, account: str) -> None:
    merchant = await paid(still)
    to = {"zero": "0x" + "00" * 20, "token": still.token.token, "shop": still.shop.address}
    text = {"zero": "zero address", "token": "token's contract", "shop": "shop's own account"}
    with pytest.raises(InvalidTerms, match=f"recipient: .*{text[account]}"):
        await merchant.refund("order-1", 1, recipient=to[account].lower())
    with pytest.raises(InvalidTerms, match=f"recipient: .*{text[account]}"):
        await merchant.sweep(to[account].lower(), 1, key="rent")
    assert await merchant.movements() == []


@pytest.mark.parametrize("key", ["order-1/refund", "x/refund/y", "x/void", "collector/x"])
async def test_a_sweep_has_no_key_that_a_refund_may_need(still: Market, key: str) -> None:
    merchant = await paid(still)
    with pytest.raises(InvalidTerms, match=r"key: .* has the form of the key of a refund"):
        await merchant.sweep(still.stranger.address, 1, key=key)
    assert await merchant.movements() == []


def test_refunds_of_different_orders_have_different_keys() -> None:
    parts = ("a", "b", "refund", "a%2Frefund", "%", "a%", "25")
    names = ["/".join(some) for count in (1, 2, 3) for some in product(parts, repeat=count)]
    pairs = [(order, refund) for order in names for refund in (*names, None)]
    assert len({refund_key(*pair) for pair in pairs}) == len(pairs)
    assert refund_key("2026/17", "x/refund") == "2026/17/refund/x/refund"


def test_a_refund_of_an_earlier_version_keeps_its_key() -> None:
    key = "a/refund/b/refund/c"
    stored = Movement(
        key=key, order_id="a/refund/b", kind=MovementKind.REFUND, amount=1,
        recipient="0x" + "11" * 20,
    )  # fmt: skip
    assert refund_key("a/refund/b", "c", [stored]) == key
    assert refund_key("a/refund/b", "c") == "a%2Frefund%2Fb/refund/c"


async def test_refunds_of_orders_with_similar_ids_are_all_made(still: Market) -> None:
    merchant = still.merchant()
    for name in ("a", "a/refund/x"):
        await still.stored(merchant, name)
        await merchant.capture(name, until=State.CAPTURING)
    still.mine()
    await merchant.reconcile()
    requested = MovementState.REQUESTED
    await merchant.refund("a", 1, refund_id="x/refund/y", until=requested)
    await merchant.refund("a/refund/x", 2, refund_id="y", until=requested)
    assert (await merchant.amounts("a")).refunded == 1
    assert (await merchant.amounts("a/refund/x")).refunded == 2
    with pytest.raises(InvalidTerms, match="refund_id: expected one line"):
        await merchant.refund("a", 1, refund_id="one\ntwo")


async def test_two_refunds_of_the_same_amount_are_two_refunds(still: Market) -> None:
    merchant = await paid(still)
    for _ in range(2):
        await asked(merchant, VALUE // 4, refund_id="lamp")
        await asked(still.merchant(), VALUE // 4, refund_id="chair")
    still.mine()
    await merchant.reconcile()
    keys = {movement.key for movement in await merchant.movements("order-1")}
    assert keys == {"order-1/refund/lamp", "order-1/refund/chair"}
    assert (await merchant.amounts("order-1")).refunded == VALUE // 2
    await asked(merchant, refund_id="rest")
    await asked(merchant, refund_id="rest")
    still.mine()
    await merchant.reconcile()
    assert await still.balance(merchant.node, still.payer.address) == FUNDS
    with pytest.raises(LimitReached, match="nothing"):
        await asked(merchant, refund_id="more")
    for wrong in ("", "x" * 129, "\x00"):
        with pytest.raises(InvalidTerms, match="refund_id"):
            await asked(merchant, refund_id=wrong)


async def test_of_processes_that_refund_different_parts_the_sum_is_kept(still: Market) -> None:
    await paid(still)
    many = [still.merchant() for _ in range(4)]
    ends = await asyncio.gather(
        *(asked(item, VALUE // 2, refund_id=f"part-{at}") for at, item in enumerate(many)),
        return_exceptions=True,
    )
    assert sorted(type(end).__name__ for end in ends) == ["NoneType"] * 2 + ["NotRefundable"] * 2


async def test_what_cannot_be_refunded_is_refused(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant, "order-2")
    with pytest.raises(IllegalTransition):
        await merchant.refund("order-2")
    merchant = await paid(still)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(InvalidTerms):
            await merchant.refund("order-1", wrong)  # type: ignore[arg-type]
    still.do(still.admin, "blacklist", still.payer.address)
    with pytest.raises(MovementRefused) as refused:
        await merchant.refund("order-1")
    assert refused.value.reason is Reason.BLOCKED
    assert await merchant.movements() == []
    elsewhere = await merchant.refund(
        "order-1", recipient=still.stranger.address, until=MovementState.REQUESTED
    )
    assert elsewhere.recipient == still.stranger.address


async def test_a_refund_that_failed_can_be_asked_for_again(still: Market) -> None:
    merchant = await paid(still, tip=1)
    await asked(merchant)
    still.do(still.admin, "pause")  # executed first, because its tip is higher
    await merchant.reconcile()
    (movement,) = await merchant.movements()
    assert (movement.state, movement.reason) == (MovementState.FAILED, Reason.PAUSED)
    assert (await merchant.amounts("order-1")).refunded == 0
    still.do(still.admin, "unpause")
    await asked(merchant)
    still.mine()
    await merchant.reconcile()
    (movement,) = await merchant.movements()
    assert movement.state is MovementState.FINAL


async def test_a_reorganisation_takes_a_refund_back_and_it_is_sent_again(still: Market) -> None:
    merchant = await paid(still)
    await asked(merchant)
    still.mine()
    await merchant.reconcile()
    still.rival(1, [[], []])
    await merchant.reconcile()
    (movement,) = await merchant.movements()
    assert (movement.state, movement.settlement) == (MovementState.REQUESTED, None)
    still.mine()
    await merchant.reconcile()
    (movement,) = await merchant.movements()
    assert movement.state is MovementState.FINAL
    assert await still.balance(merchant.node, still.payer.address) == FUNDS
    assert len(merchant.store.submissions(movement=movement.key)) == 1


async def test_a_refund_is_not_sent_again_if_its_payer_spent_the_money(still: Market) -> None:
    """A reorganisation removes capture and refund, and the payer spends the money elsewhere."""
    merchant = await paid(still)
    still.mint(still.shop.address, FUNDS)
    await asked(merchant)
    still.mine()
    await merchant.reconcile()
    still.rival(3, [[], [], [], []])
    forget(still)
    still.do(still.payer, "transfer", still.stranger.address, FUNDS - 1)
    still.mint(still.shop.address, FUNDS)
    for _ in range(6):
        with suppress(PaymentError):
            await merchant.reconcile()
        still.mine()
    order = await merchant.order("order-1")
    assert not order.paid
    assert await still.balance(merchant.node, still.payer.address) == 1
    assert await still.balance(merchant.node, still.shop.address) == FUNDS


async def test_a_failed_refund_that_a_reorganisation_revives_is_not_sent_beside_its_successor(
    still: Market,
) -> None:
    merchant = await paid(still, tip=1)
    still.mint(still.shop.address, FUNDS)
    await asked(merchant)
    still.do(still.admin, "pause")  # executed first, because its tip is higher
    await merchant.reconcile()
    assert [item.state for item in await merchant.movements()] == [MovementState.FAILED]
    still.do(still.admin, "unpause")
    await asked(merchant)
    still.mine()
    await merchant.reconcile()
    assert [item.state for item in await merchant.movements()] == [MovementState.FINAL]
    still.rival(3, [[], [], [], []])  # a branch without the pause
    forget(still)
    for _ in range(4):
        await merchant.reconcile()
        still.mine()
    assert await still.balance(merchant.node, still.payer.address) == FUNDS


async def test_depth_decides_when_a_refund_is_final(still: Market) -> None:
    merchant = await paid(still, depth=1)
    deep = still.merchant(depth=3)
    await asked(deep)
    for state in (MovementState.SEEN, MovementState.SEEN, MovementState.FINAL):
        still.mine()
        await deep.reconcile()
        assert [movement.state for movement in await merchant.movements()] == [state]


async def test_income_is_swept_once_for_each_key(still: Market) -> None:
    merchant = await paid(still)
    for _ in range(2):
        await merchant.sweep(
            still.admin.address, VALUE, key="2027-01-15", until=MovementState.REQUESTED
        )
    still.mine()
    await merchant.reconcile()
    assert await still.balance(merchant.node, still.admin.address) == VALUE
    (movement,) = await merchant.movements("")
    assert movement.state is MovementState.FINAL
