"""Tests orders in a B20 token that the payer permits. The collector captures each order once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fastevm.payments import (
    Authorization,
    CaptureRefused,
    IllegalTransition,
    InvalidTerms,
    Kind,
    LimitReached,
    Merchant,
    MovementRefused,
    MovementState,
    NodeClient,
    NodeUnreachable,
    Permit,
    Progress,
    Reason,
    Signature,
    SignatureRefused,
    State,
    sign,
)
from fastevm.payments.node import HttpTransport
from fastevm.payments.permits import collector_of, permit_call
from tests.max_wait import MAX_WAIT

from .b20 import NAME, TRANSFER, B20Market, b20_market
from .market import FUNDS, VALUE, canonical_transfers
from .stores import BOTH

STORES = BOTH


@pytest.fixture
async def base(tmp_path: Path, store_url: str) -> AsyncIterator[B20Market]:
    made = await b20_market(tmp_path, store_url=store_url)
    yield made
    await made.close()


async def captured(market: B20Market, merchant: Merchant, order_id: str = "order-1") -> None:
    """Captures an order and waits until it is paid."""
    await merchant.capture(order_id, until=State.CAPTURING)
    market.mine()
    assert (await merchant.wait(order_id, State.PAID, MAX_WAIT)).paid


def payments(market: B20Market) -> list[int]:
    """Returns the amounts of all canonical transfers from the payer to the shop."""
    return [
        amount
        for sender, recipient, amount, _ in canonical_transfers(market.node, market.token.token)
        if (sender, recipient) == (market.payer.address.lower(), market.shop.address.lower())
    ]


async def test_a_permit_is_captured_in_one_transaction_with_the_orders_memo(
    base: B20Market,
) -> None:
    merchant = base.merchant()
    order = await base.permitted(merchant)
    await captured(base, merchant)
    (sent,) = await merchant.submissions("order-1")
    assert sent.progress is Progress.SUCCEEDED
    (entry,) = await merchant.ledger()
    assert (entry.amount, entry.memo) == (VALUE, order.authorization.memo)
    assert await merchant.amounts("order-1") == (VALUE, VALUE, 0)
    assert (await merchant.order("order-1")).reason is None
    assert await base.balance(merchant.node, base.shop.address) == VALUE


async def test_processes_that_capture_one_permit_submit_once(base: B20Market) -> None:
    await base.permitted(base.merchant())
    many = [base.merchant() for _ in range(4)]
    await asyncio.gather(*(item.capture("order-1", until=State.CAPTURING) for item in many))
    base.mine()
    for item in many:
        assert (await item.wait("order-1", State.PAID, MAX_WAIT)).paid
    assert len(await many[0].submissions("order-1")) == 1
    assert payments(base) == [VALUE]


class Deaf(HttpTransport):
    """A connection that breaks whenever a transaction is sent."""

    async def send(self, body: bytes) -> Any:
        if b"eth_sendRawTransaction" in body:
            raise NodeUnreachable("the connection broke")
        return await super().send(body)


async def test_a_capture_that_was_recorded_but_not_sent_is_sent_after_a_restart(
    base: B20Market,
) -> None:
    await base.permitted(base.merchant())
    node = NodeClient(Deaf(base.server.urls[0]))
    base.clients.append(node)
    dying = base.merchant(node=node)
    await dying.capture("order-1", until=State.CAPTURING)
    assert not base.node.pool.executable_count
    merchant = base.merchant()
    await merchant.reconcile()
    base.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    assert payments(base) == [VALUE]


async def test_a_reorganisation_takes_the_payment_back_and_it_is_made_again(
    base: B20Market,
) -> None:
    merchant = base.merchant()
    await base.permitted(merchant)
    await captured(base, merchant)
    base.replace(1)
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert (order.state, order.settlement) == (State.CAPTURING, None)
    assert payments(base) == []
    base.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    assert payments(base) == [VALUE]
    assert len(await merchant.submissions("order-1")) == 1


async def test_a_permit_expires_like_an_authorization_and_the_collector_refuses_it(
    base: B20Market,
) -> None:
    merchant = base.merchant()
    order = await base.permitted(merchant)
    base.submit_permit(order.authorization, base.permit_of(order), base.stranger)
    base.warp(order.authorization.terms.valid_before)
    with pytest.raises(CaptureRefused) as refused:
        await merchant.capture("order-1")
    assert refused.value.report.reason is Reason.EXPIRED
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.EXPIRED
    # The capture reverts after the deadline, although the stranger has submitted the permit.
    base.send(base.shop, *permit_call(order, base.permit_of(order)))
    assert base.receipts(base.node.chain.head)[-1].status == 0
    assert payments(base) == []


async def test_a_voided_permit_is_never_captured(base: B20Market) -> None:
    merchant = base.merchant()
    await base.permitted(merchant)
    assert (await merchant.void("order-1")).state is State.VOIDED
    with pytest.raises(IllegalTransition):
        await merchant.capture("order-1")
    assert merchant.signature_of(await merchant.order("order-1")) is None


async def test_exposure_and_day_limits_hold_for_permits(base: B20Market) -> None:
    merchant = base.merchant(most_exposure=VALUE, most_per_day=VALUE, most_per_order=VALUE)
    with pytest.raises(LimitReached):
        await merchant.draft("big", base.payer.address, VALUE + 1, kind=Kind.PERMIT)
    await base.permitted(merchant)
    assert await merchant.exposure() == VALUE
    await captured(base, merchant)
    assert await merchant.exposure() == 0
    await base.permitted(merchant, "order-2")
    with pytest.raises(LimitReached, match="captured today"):
        await merchant.capture("order-2")


async def test_a_captured_permit_is_refunded_in_parts(base: B20Market) -> None:
    merchant = base.merchant()
    await base.permitted(merchant)
    await captured(base, merchant)
    for name in ("first", "first", "second"):
        await merchant.refund("order-1", VALUE // 2, refund_id=name, until=MovementState.REQUESTED)
        base.mine()
    with pytest.raises(LimitReached):
        await merchant.refund("order-1", 1, refund_id="third")
    await merchant.reconcile()
    assert (await merchant.amounts("order-1")).refunded == VALUE
    assert await base.balance(merchant.node, base.payer.address) == FUNDS


async def test_permits_of_one_payer_are_captured_one_after_the_other(base: B20Market) -> None:
    merchant = base.merchant()
    for at in range(3):
        await base.permitted(merchant, f"order-{at}", VALUE + at)
        await captured(base, merchant, f"order-{at}")
    assert payments(base) == [VALUE, VALUE + 1, VALUE + 2]


async def test_permits_are_never_put_into_a_batch(base: B20Market) -> None:
    merchant = base.merchant(batch=10)
    await base.permitted(merchant)
    base.mint(base.stranger.address, VALUE)
    other = await merchant.draft("order-2", base.stranger.address, VALUE, kind=Kind.PERMIT)
    await merchant.accept("order-2", sign(other.authorization, base.stranger.key))
    await merchant.capture_many(["order-1", "order-2"], until=State.CAPTURING)
    base.mine()
    for name in ("order-1", "order-2"):
        assert (await merchant.wait(name, State.PAID, MAX_WAIT)).paid
        (sent,) = await merchant.submissions(name)
        assert sent.orders == ()


async def test_a_signature_that_could_not_be_captured_is_not_accepted(base: B20Market) -> None:
    merchant = base.merchant()
    order = await merchant.draft("order-1", base.payer.address, VALUE, kind=Kind.PERMIT)
    for signature, reason in (
        (sign(order.authorization, base.stranger.key), Reason.SIGNATURE_SIGNER),
        (Signature(b"\x05" * 65), Reason.SIGNATURE_V),
        (Signature(b"\x01" * 64), Reason.SIGNATURE_LENGTH),
        (Signature(b"\x01" * 96 + bytes.fromhex("6492") * 16), Reason.SIGNATURE_LENGTH),
    ):
        with pytest.raises(SignatureRefused) as refused:
            await merchant.accept("order-1", signature)
        assert refused.value.reason is reason
    await merchant.accept("order-1", base.permit_of(order))
    assert (await merchant.accept("order-1", base.permit_of(order))).state is State.STORED


async def test_one_permit_nonce_belongs_to_one_order(base: B20Market) -> None:
    merchant = base.merchant()
    late = await merchant.draft("order-2", base.payer.address, VALUE, kind=Kind.PERMIT)
    await base.permitted(merchant)
    with pytest.raises(SignatureRefused, match="order-1: capture or void it") as refused:
        await merchant.accept("order-2", base.permit_of(late))
    assert refused.value.reason is Reason.PERMIT_TAKEN
    await captured(base, merchant)
    with pytest.raises(SignatureRefused, match="draft a new order") as refused:
        await merchant.accept("order-2", base.permit_of(late))
    assert refused.value.reason is Reason.NONCE_CONSUMED


async def test_a_draft_asked_again_is_the_same_permit(base: B20Market) -> None:
    merchant = base.merchant()
    first = await merchant.draft("order-1", base.payer.address, VALUE, kind=Kind.PERMIT)
    again = await base.merchant().draft("order-1", base.payer.address, VALUE, kind=Kind.PERMIT)
    assert again == first and again.authorization.permit is not None
    assert again.authorization.permit.spender == merchant.collector
    assert again.annex == ""
    message = first.authorization.typed_data()
    assert message["primaryType"] == "Permit" and message["message"]["owner"] == base.payer.address
    assert first.authorization.permit is not None and first.authorization.domain.name == NAME


async def test_a_permit_cannot_be_cancelled_and_says_what_to_do(base: B20Market) -> None:
    merchant = base.merchant()
    await base.permitted(merchant)
    with pytest.raises(InvalidTerms, match="void the order"):
        await merchant.cancel("order-1", b"\x01" * 65)


@pytest.mark.parametrize(
    ("obstacle", "reason", "words"),
    [
        ("pause", Reason.PAUSED, "custom error"),
        ("SENDER", Reason.BLOCKED, "forbids the payer to send"),
        ("RECEIVER", Reason.BLOCKED, "forbids the recipient to receive"),
        ("EXECUTOR", Reason.BLOCKED, "forbids the caller to move tokens"),
        ("empty", Reason.BALANCE, "needs"),
        ("rename", Reason.WRONG_DOMAIN, "differ from the token's"),
        ("permit", Reason.NONCE_CONSUMED, "permit 0 was used"),
    ],
)
async def test_what_blocks_a_capture_has_its_name(
    base: B20Market, obstacle: str, reason: Reason, words: str
) -> None:
    merchant = base.merchant()
    await base.permitted(merchant)
    who = {"SENDER": base.payer.address, "RECEIVER": base.shop.address,
           "EXECUTOR": merchant.collector}  # fmt: skip
    if obstacle in who:
        base.forbid(who[obstacle], obstacle)
    elif obstacle == "pause":
        base.do(base.admin, "pause(uint8[])", [TRANSFER])
    elif obstacle == "empty":
        base.do(base.payer, "transfer(address,uint256)", base.admin.address, FUNDS)
    elif obstacle == "rename":
        base.do(base.admin, "updateName(string)", "Another Dollar")
    else:
        await _use_permit(base)
    with pytest.raises(CaptureRefused) as refused:
        await merchant.capture("order-1", timeout=0.2)
    assert refused.value.report.reason is reason
    assert words in refused.value.report.summary
    assert (await merchant.order("order-1")).state is State.STORED
    if obstacle == "EXECUTOR":
        base.allow(obstacle)
        await captured(base, merchant)


async def _use_permit(market: B20Market) -> None:
    """Uses the nonce of the payer's permit for another spender."""
    terms = (await market.merchant().order("order-1")).authorization.terms
    permit = Permit(market.stranger.address, 0)
    made = Authorization(market.token, terms, Kind.PERMIT, permit)
    market.submit_permit(made, sign(made, market.payer.key), market.payer)


async def test_a_pause_during_the_capture_releases_the_order_with_its_reason(
    base: B20Market,
) -> None:
    merchant = base.merchant(tip=1)
    await base.permitted(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    base.do(base.admin, "pause(uint8[])", [TRANSFER])  # executed first, because its tip is higher
    order = await merchant.wait("order-1", State.STORED, MAX_WAIT)
    assert (order.state, order.reason) == (State.STORED, Reason.PAUSED)
    base.do(base.admin, "unpause(uint8[])", [TRANSFER])
    await captured(base, merchant)
    assert payments(base) == [VALUE]


async def test_the_collector_is_deployed_once_and_orders_need_it(base: B20Market) -> None:
    merchant = base.merchant(signer=None)
    assert merchant.collector == collector_of(base.shop.address, base.shop.address)
    assert await merchant.deploy_collector() == merchant.collector
    assert await merchant.movements() == []
    other = base.merchant()
    other.recipient, other.collector = base.stranger.address, base.stranger.address
    with pytest.raises(InvalidTerms, match="fastevm pay collector"):
        await other.draft("order-1", base.payer.address, VALUE, kind=Kind.PERMIT)
    other.collector = collector_of(base.shop.address, base.stranger.address)
    deploying = asyncio.create_task(other.deploy_collector())
    while not base.node.pool.executable_count:
        await asyncio.sleep(0.01)
    base.mine()
    assert await merchant.node.call("eth_getCode", await deploying, "latest") != "0x"


async def test_a_chain_without_the_deployment_proxy_is_named(
    base: B20Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastevm.payments.permits.CREATE2_PROXY", base.stranger.address)
    merchant = base.merchant()
    merchant.collector = base.admin.address
    with pytest.raises(MovementRefused, match="no deployment proxy"):
        await merchant.deploy_collector()


async def test_without_its_collector_a_stored_order_is_refused(base: B20Market) -> None:
    merchant = base.merchant()
    await base.permitted(merchant)
    await merchant.node.call("anvil_setCode", merchant.collector, "0x")
    with pytest.raises(CaptureRefused) as refused:
        await merchant.capture("order-1")
    assert refused.value.report.reason is Reason.NO_COLLECTOR


@pytest.mark.parametrize("fork", ["beryl", "cobalt", "denim"])
async def test_every_version_of_the_tokens_can_be_paid_both_ways(tmp_path: Path, fork: str) -> None:
    market = await b20_market(tmp_path, fork=fork)
    merchant = market.merchant()
    await market.permitted(merchant)
    await captured(market, merchant)
    market.pay(await merchant.draft("order-2", market.payer.address, 7, kind=Kind.MEMO), 7)
    assert (await merchant.wait("order-2", State.PAID, MAX_WAIT)).paid
    assert payments(market) == [VALUE, 7]
    await market.close()
