"""Tests attacks on payments with permits and memos: public permits, forged memos, spent nonces."""

import contextlib
import random
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest
from eth_abi import encode
from eth_utils.crypto import keccak

from fastevm.payments import (
    Authorization,
    CaptureRefused,
    Kind,
    Merchant,
    MovementState,
    Order,
    PaymentError,
    Permit,
    Reason,
    State,
    sign,
)
from fastevm.payments.calls import allowance_data, call_data
from fastevm.payments.contracts import artifact
from fastevm.payments.permits import permit_call
from tests.max_wait import MAX_WAIT

from .b20 import B20Market, b20_market
from .market import FUNDS, VALUE, canonical_transfers

SEEDS = range(6)


@pytest.fixture
async def base(tmp_path: Path) -> AsyncIterator[B20Market]:
    made = await b20_market(tmp_path)
    yield made
    await made.close()


async def memo_order(market: B20Market, merchant: Merchant, order_id: str = "order-1") -> Order:
    return await merchant.draft(order_id, market.payer.address, VALUE, kind=Kind.MEMO)


def statuses(market: B20Market) -> list[int]:
    """Returns the receipt statuses of the newest block, without that of its deposit."""
    return [receipt.status for receipt in market.receipts(market.node.chain.head)[1:]]


async def allowance(market: B20Market, merchant: Merchant) -> int:
    data = "0x" + allowance_data(market.payer.address, merchant.collector).hex()
    answer = await merchant.node.call(
        "eth_call", {"to": market.token.token, "data": data}, "latest"
    )
    return int(answer, 16)


# --- public permits -------------------------------------------------------------------------------


async def test_a_permit_that_a_stranger_submitted_first_is_captured(base: B20Market) -> None:
    merchant = base.merchant()
    order = await base.permitted(merchant)
    base.submit_permit(order.authorization, base.permit_of(order), base.stranger)
    (report,) = await merchant.check(["order-1"])
    assert report.capturable and "allowance counts" in report.verdict("nonce").detail
    await merchant.capture("order-1", until=State.CAPTURING)
    base.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    assert await allowance(base, merchant) == 0


async def test_a_permit_submitted_in_the_block_of_its_capture_breaks_nothing(
    base: B20Market,
) -> None:
    merchant = base.merchant(tip=1)
    order = await base.permitted(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    base.submit_permit(order.authorization, base.permit_of(order), base.stranger)
    assert statuses(base) == [
        1,
        1,
    ]  # The stranger's transaction has a higher tip, so it is executed first.
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid


async def test_a_public_permit_pays_nobody_but_the_recipient(base: B20Market) -> None:
    merchant = base.merchant()
    order = await base.permitted(merchant)
    signature = base.permit_of(order)
    base.submit_permit(order.authorization, signature, base.stranger)
    base.send(base.stranger, *permit_call(order, signature))
    assert statuses(base) == [0]
    base.do(
        base.stranger, "transferFrom(address,address,uint256)", base.payer.address,
        base.stranger.address, VALUE,
    )  # fmt: skip
    assert statuses(base) == [0]
    assert await base.balance(merchant.node, base.payer.address) == FUNDS


async def test_an_order_is_captured_once_even_with_the_allowance_of_another(
    base: B20Market,
) -> None:
    """The operator captures the first order again, while another order's allowance exists."""
    merchant = base.merchant()
    first = await base.permitted(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    base.mine()
    await merchant.wait("order-1", State.PAID, MAX_WAIT)
    second = await base.permitted(merchant, "order-2")
    base.submit_permit(second.authorization, base.permit_of(second), base.stranger)
    assert await allowance(base, merchant) == VALUE
    base.send(base.shop, *permit_call(first, base.permit_of(first)))
    assert statuses(base) == [0]
    await merchant.capture("order-2", until=State.CAPTURING)
    base.mine()
    assert (await merchant.wait("order-2", State.PAID, MAX_WAIT)).paid
    assert await base.balance(merchant.node, base.payer.address) == FUNDS - 2 * VALUE


async def test_a_payer_who_spends_the_nonce_before_the_capture_is_not_charged(
    base: B20Market,
) -> None:
    merchant = base.merchant(tip=1)
    order = await base.permitted(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    nothing = Authorization(
        base.token, order.authorization.terms, Kind.PERMIT, Permit(base.stranger.address, 0)
    )
    base.submit_permit(nothing, sign(nothing, base.payer.key), base.payer)
    assert statuses(base) == [1, 0]
    order = await merchant.wait("order-1", State.STORED, MAX_WAIT)
    assert (order.state, order.reason) == (State.STORED, Reason.NONCE_CONSUMED)
    with pytest.raises(CaptureRefused) as refused:
        await merchant.capture("order-1", timeout=0.1)
    assert refused.value.report.reason is Reason.NONCE_CONSUMED
    assert await base.balance(merchant.node, base.payer.address) == FUNDS


@pytest.mark.parametrize(("other", "paid"), [(VALUE // 2, "order-2"), (2 * VALUE, "order-1")])
async def test_permits_submitted_out_of_turn_pay_no_order_twice(
    base: B20Market, other: int, paid: str
) -> None:
    """A stranger knows two permits of a payer, and submits both before their captures.

    The second permit replaces the allowance of the first. So only one order is paid, with its own
    amount, and the payer has to permit the other order again.
    """
    merchant = base.merchant(tip=1)
    first = await base.permitted(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    # drafted after the capture of order-1 is in the pool
    second = await base.permitted(merchant, "order-2", other)
    assert second.authorization.permit == Permit(merchant.collector, 1)
    base.node.pool.drop(next(iter(base.node.pool.hashes())))
    for order in (first, second):
        base.submit_permit(order.authorization, base.permit_of(order), base.stranger)
    await merchant.reconcile()  # sends the capture of the first order again
    base.mine()
    await merchant.reconcile()
    with contextlib.suppress(CaptureRefused):
        await merchant.capture("order-2", until=State.CAPTURING, timeout=0.1)
    base.mine()
    await merchant.reconcile()
    states = {order.id: order.state for order in await merchant.orders()}
    unpaid = "order-2" if paid == "order-1" else "order-1"
    assert states == {paid: State.PAID, unpaid: State.STORED}
    (report,) = await merchant.check([unpaid])
    assert report.reason is Reason.NONCE_CONSUMED
    value = (await merchant.order(paid)).authorization.terms.value
    assert await base.balance(merchant.node, base.shop.address) == value


# --- forged memos ---------------------------------------------------------------------------------


async def test_a_strangers_transfer_with_the_memo_changes_nothing(base: B20Market) -> None:
    merchant = base.merchant()
    order = await memo_order(base, merchant)
    base.mint(base.stranger.address, 10 * VALUE)
    for value in (0, 1, VALUE, 2 * VALUE):
        base.pay(order, value, who=base.stranger)
    await merchant.reconcile()
    found = await merchant.order("order-1")
    assert (found.state, found.reason, found.version) == (State.DRAFTED, None, order.version)
    base.pay(order, VALUE)
    await merchant.reconcile()
    found = await merchant.order("order-1")
    assert (found.state, found.reason) == (State.PAID, None)


async def test_a_token_of_the_attacker_with_the_same_events_pays_nothing(base: B20Market) -> None:
    merchant = base.merchant()
    order = await memo_order(base, merchant)
    fake = base.deploy("MemoToken", "Laptop Dollar", "LUSD", 6, base.admin.address)
    mint = artifact("MemoToken").encode("mint", base.payer.address, VALUE)
    base.send(base.payer, fake, mint)
    base.pay(order, VALUE, token=fake)
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.DRAFTED


FORGED_MEMO = keccak(text="Memo(address,bytes32)")


def forger(token: str, data: bytes, caller: str, memo: bytes) -> bytes:
    """Returns code that calls the token with ``data``, then emits a log that imitates Memo."""
    words = data.ljust((len(data) + 31) // 32 * 32, b"\0")
    code = b""
    for at in range(0, len(words), 32):
        code += b"\x7f" + words[at : at + 32] + b"\x61" + at.to_bytes(2, "big") + b"\x52"
    code += bytes.fromhex("60006000") + b"\x61" + len(data).to_bytes(2, "big")
    code += bytes.fromhex("60006000") + b"\x73" + bytes.fromhex(token[2:]) + b"\x5a\xf1\x50"
    code += b"\x7f" + memo + b"\x7f" + encode(["address"], [caller]) + b"\x7f" + FORGED_MEMO
    return code + bytes.fromhex("60006000a300")


async def test_a_memo_that_another_contract_logs_after_the_transfer_is_none(
    base: B20Market,
) -> None:
    """A contract moves the payer's allowance without a memo, then imitates the Memo log."""
    merchant = base.merchant()
    order = await memo_order(base, merchant)
    memo = order.authorization.terms.nonce
    data = call_data(
        "transferFrom(address,address,uint256)", base.payer.address, base.shop.address, VALUE
    )
    contract = base.stranger.address
    await merchant.node.call(
        "anvil_setCode", contract,
        "0x" + forger(base.token.token, data, base.payer.address, memo).hex(),
    )  # fmt: skip
    base.do(base.payer, "approve(address,uint256)", contract, VALUE)
    base.send(base.payer, contract, b"")
    logs = base.receipts(base.node.chain.head)[-1].logs
    assert [log.address.hex()[:2] for log in logs] == ["b2", contract[2:4].lower()]
    assert logs[1].topics[0] == FORGED_MEMO and logs[1].topics[2] == memo
    await merchant.reconcile()
    (entry,) = await merchant.ledger()
    assert (entry.amount, entry.memo) == (VALUE, None)
    assert (await merchant.order("order-1")).state is State.DRAFTED


async def test_a_memo_without_money_to_the_recipient_is_no_payment(base: B20Market) -> None:
    merchant = base.merchant()
    order = await memo_order(base, merchant)
    memo = order.authorization.terms.nonce
    send = "transferWithMemo(address,uint256,bytes32)"
    base.do(base.payer, send, base.stranger.address, VALUE, memo)
    base.do(base.payer, send, base.shop.address, 0, memo)
    await merchant.reconcile()
    found = await merchant.order("order-1")
    assert (found.state, found.reason) == (State.DRAFTED, None)


async def test_orders_with_the_same_memo_of_two_payers_stay_apart(base: B20Market) -> None:
    merchant = base.merchant()
    order = await memo_order(base, merchant)
    base.mint(base.stranger.address, VALUE)
    terms = base.terms(payer=base.stranger.address, nonce=order.authorization.terms.nonce)
    await merchant.draft("order-2", base.stranger.address, VALUE, terms=terms, kind=Kind.MEMO)
    base.pay(order, VALUE, who=base.stranger)
    await merchant.reconcile()
    states = [(await merchant.order(name)).state for name in ("order-1", "order-2")]
    assert states == [State.DRAFTED, State.PAID]


# --- random sequences -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_happens_money_is_counted_once_and_refunds_stay_within_it(
    base: B20Market, seed: int
) -> None:
    """Makes random payments, captures, refunds, reorganisations and restarts for one order."""
    chance = random.Random(seed)
    merchant = base.merchant()
    permit = seed % 2 == 1
    order = await base.permitted(merchant) if permit else await memo_order(base, merchant)
    for at in range(40):
        act = chance.choice(("pay", "capture", "refund", "mine", "mine", "replace", "restart"))
        if act == "pay" and chance.random() < 0.5:
            base.pay(order, chance.choice((1, VALUE // 2, VALUE)), mine=chance.random() < 0.5)
        elif act == "capture" and permit:
            await _try(merchant.capture("order-1", until=State.CAPTURING, timeout=0))
        elif act == "refund":
            amount = chance.choice((1, VALUE // 2, None))
            refund = merchant.refund(
                "order-1", amount, refund_id=str(at), until=MovementState.REQUESTED
            )
            await _try(refund)
        elif act == "mine":
            base.mine(seconds=chance.choice((2, 2, 2, 200)))
        elif act == "replace":
            base.replace(1)
        elif act == "restart":
            merchant = base.merchant()
        await _try(merchant.reconcile())
    for _ in range(3):
        await merchant.reconcile()
        base.mine()
    await merchant.reconcile()
    us, them = base.shop.address.lower(), base.payer.address.lower()
    transfers = canonical_transfers(base.node, base.token.token)
    came = [item for item in transfers if item[1] == us]
    taken = sum(amount for _, _, amount, _ in came)
    back = sum(amount for sender, to, amount, _ in transfers if (sender, to) == (us, them))
    sums, found = await merchant.amounts("order-1"), await merchant.order("order-1")
    assert (sums.captured, sums.refunded) == (taken, back)
    assert taken >= VALUE or found.state is not State.PAID
    ours = {item.transaction_hash for item in await merchant.submissions("order-1")}
    assert sum(tx_hash in ours for _, _, _, tx_hash in came) <= 1


async def _try(work: Awaitable[object]) -> None:
    with contextlib.suppress(PaymentError):
        await work
