"""Tests batch captures: each order must end as if it had been captured alone."""

import asyncio
import logging
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from fastevm.payments import (
    CaptureRefused,
    HoldTerms,
    Kind,
    LimitReached,
    Merchant,
    NodeClient,
    Order,
    Progress,
    Reason,
    State,
)
from fastevm.payments.calls import cancel_data
from fastevm.payments.contracts import artifact
from fastevm.payments.contracts.placing import place_contract, place_escrow
from fastevm.payments.erc6492 import MULTICALL
from fastevm.payments.escrow import V1_1, collecting_call
from fastevm.payments.node import HttpTransport
from fastevm.payments.policy import BATCH_GAS, MOST_BATCH, Policy
from fastevm.payments.transactions import cost_of
from tests.max_wait import MAX_WAIT

from .market import VALUE, Market
from .stores import BOTH
from .test_processes import ROOT
from .test_undeployed_wallets import STORE

STORES = BOTH


async def opened(market: Market, *, funds: int = 100 * VALUE, **policy: Any) -> Merchant:
    """Returns a merchant that captures in batches. Funds the payers."""
    await place_contract(market.client(), MULTICALL, artifact("Multicall").initcode())
    for payer in market.accounts[4:8]:
        market.mint(payer.address, funds)
    return market.merchant(**{"batch": MOST_BATCH, **policy})


async def stored(
    market: Market, merchant: Merchant, count: int, payer: Any = None, first: int = 0
) -> list[str]:
    """Stores orders whose captures anybody may submit. Returns their names.

    Without ``payer``, the orders are from four payers in rotation.
    """
    names = [f"order-{number:02}" for number in range(first, first + count)]
    for at, name in enumerate(names):
        who = payer or market.accounts[4 + at % 4]
        terms = market.terms(payer=who.address)
        order = await merchant.draft(name, who.address, VALUE, kind=Kind.TRANSFER, terms=terms)
        await merchant.accept(name, market.signed(order, who))
    return names


async def hashes(merchant: Merchant, names: Sequence[str]) -> set[str]:
    """Returns the hashes of all transactions that were sent for these orders."""
    return {
        submission.transaction_hash
        for name in names
        for submission in await merchant.submissions(name)
    }


async def all_paid(merchant: Merchant, names: Sequence[str]) -> None:
    """Waits until each order is paid."""
    for name in names:
        assert (await merchant.wait(name, State.PAID, MAX_WAIT)).paid, await merchant.order(name)


async def test_ten_captures_are_one_transaction_and_each_has_its_share(still: Market) -> None:
    merchant = await opened(still)
    names = await stored(still, merchant, 10)
    changes: list[tuple[str, State]] = []
    merchant.on_change(lambda order: changes.append((order.id, order.state)))
    ends = await merchant.capture_many(names, until=State.CAPTURING)
    assert [end.state for end in ends.values()] == [State.CAPTURING] * 10
    assert still.node.pool.executable_count == 1
    still.mine()
    await all_paid(merchant, names)
    (sent,) = await hashes(merchant, names)
    shares = [submission.cost for name in names for submission in await merchant.submissions(name)]
    receipt = await merchant.node.call("eth_getTransactionReceipt", sent)
    assert sum(shares) == cost_of(receipt)
    assert max(shares) - min(shares) <= 1
    for name in names:
        assert {(name, State.CAPTURING), (name, State.CAPTURED), (name, State.PAID)} <= set(changes)
        kinds = [notice.type for notice in merchant.store.notices(order_id=name)]
        assert kinds[-3] == "capture.submitted"
        assert kinds[-1] == "capture.confirmed"
        (trail,) = [
            entry for entry in await merchant.audit(name) if entry.what == "submitted for capture"
        ]
        assert trail.after == State.CAPTURING.value
    assert merchant.metrics.value("batches_total") == 1
    assert await still.balance(merchant.node, still.shop.address) == 10 * VALUE


@pytest.mark.parametrize("batch", [1, MOST_BATCH])
async def test_of_fifty_captures_three_fail_inside_and_end_as_if_alone(
    still: Market, batch: int
) -> None:
    merchant = await opened(still, batch=batch, most_bumps=0, tip=10**6)
    names = await stored(still, merchant, 47)
    drained, blocked, cancelling = still.accounts[8], still.accounts[9], still.payer
    for at, payer in enumerate((drained, blocked, cancelling)):
        still.mint(payer.address, VALUE)
        names += await stored(still, merchant, 1, payer, first=47 + at)
    await merchant.capture_many(names, until=State.CAPTURING)
    # These transactions have higher fees, so they are executed before the batch.
    still.do(drained, "transfer", still.stranger.address, VALUE, mine=False)
    still.do(still.admin, "blacklist", blocked.address, mine=False)
    order = await merchant.order("order-49")
    cancellation = cancel_data(order.authorization.cancellation, still.cancelled(order))
    still.send(still.stranger, still.token.token, cancellation, mine=False)
    assert still.node.pool.executable_count == 3 + (50 if batch == 1 else 1)
    still.mine()
    await all_paid(merchant, names[:47])
    ends = [await merchant.order(name) for name in names[47:]]
    assert [(end.state, end.reason) for end in ends] == [
        (State.STORED, Reason.BALANCE),
        (State.STORED, Reason.BLOCKED),
        (State.CANCELLED, None),
    ]
    for name in names[47:49]:
        (sent,) = await merchant.submissions(name)
        assert sent.progress is Progress.REVERTED
        assert sent.reason is (await merchant.order(name)).reason
    # When the reason of a failed capture is gone, the capture is retried, alone or in a batch.
    assert isinstance((await merchant.capture_many(names[47:49]))["order-47"], CaptureRefused)
    still.mint(drained.address, VALUE)
    still.do(still.admin, "unBlacklist", blocked.address)
    await merchant.capture_many(names[47:49], until=State.CAPTURING)
    still.mine()
    await all_paid(merchant, names[47:49])
    assert await still.balance(merchant.node, still.shop.address) == 49 * VALUE


async def test_what_would_fail_behind_the_others_is_left_out(still: Market) -> None:
    merchant = await opened(still, funds=2 * VALUE)
    names = await stored(still, merchant, 3, still.accounts[4])
    names += await stored(still, merchant, 2, still.accounts[5], first=3)
    ends = await merchant.capture_many(names, until=State.CAPTURING)
    left_out = ends["order-02"]
    assert isinstance(left_out, CaptureRefused)
    assert left_out.report.reason is Reason.BALANCE
    assert (await merchant.order("order-02")).state is State.STORED
    still.mine()
    rest = [name for name in names if name != "order-02"]
    await all_paid(merchant, rest)
    assert len(await hashes(merchant, names)) == 1


async def test_what_only_the_recipient_may_submit_or_a_contract_pays_goes_alone(
    still: Market,
) -> None:
    await place_escrow(still.client(), V1_1, STORE, MULTICALL)
    merchant = await opened(still)
    wallet = still.deploy("Wallet", still.accounts[8].address)
    still.delegate(still.accounts[9], wallet)
    together = await stored(still, merchant, 2)
    await still.stored(merchant, "received-1")
    await still.stored(merchant, "received-2")
    still.mint(wallet, VALUE)
    terms = still.terms(payer=wallet)
    order = await merchant.draft("contract", wallet, VALUE, kind=Kind.TRANSFER, terms=terms)
    await merchant.accept("contract", still.signed(order, still.accounts[8]))
    order = await merchant.draft("hold", still.payer.address, VALUE, hold=HoldTerms())
    await merchant.accept("hold", still.signed(order))
    alone = ["received-1", "received-2", "contract", "hold"]
    await merchant.capture_many([*together, *alone], until=State.CAPTURING)
    still.mine()
    await all_paid(merchant, [*together, *alone[:3]])
    assert (await merchant.wait("hold", State.HELD, MAX_WAIT)).state is State.HELD
    assert len(await hashes(merchant, together)) == 1
    assert len(await hashes(merchant, alone)) == 4


async def test_without_multicall_each_has_a_transaction_and_that_is_said_once(
    still: Market, caplog: pytest.LogCaptureFixture
) -> None:
    merchant = still.merchant(batch=10)
    names = await stored(still, merchant, 4, still.payer)
    with caplog.at_level(logging.WARNING):
        await merchant.capture_many(names[:2], until=State.CAPTURING)
        await merchant.capture_many(names[2:], until=State.CAPTURING)
    still.mine()
    await all_paid(merchant, names)
    assert len(await hashes(merchant, names)) == 4
    assert caplog.text.count("no Multicall3 at") == 1


async def test_other_code_at_the_address_of_multicall_is_not_used(still: Market) -> None:
    merchant = await opened(still)
    code = artifact("Token").deployed_bytecode
    await merchant.node.call("anvil_setCode", MULTICALL, "0x" + code.hex())
    names = await stored(still, merchant, 3)
    await merchant.capture_many(names, until=State.CAPTURING)
    still.mine()
    await all_paid(merchant, names)
    assert len(await hashes(merchant, names)) == 3


async def test_a_batch_has_a_limit_in_orders_and_in_gas(
    still: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    merchant = await opened(still, batch=4)
    names = await stored(still, merchant, 10)
    await merchant.capture_many(names, until=State.CAPTURING)
    still.mine()
    await all_paid(merchant, names)
    assert len(await hashes(merchant, names)) == 3
    monkeypatch.setattr("fastevm.payments.batches.BATCH_GAS", 250_000)
    more = await stored(still, merchant, 4, first=10)
    await merchant.capture_many(more, until=State.CAPTURING)
    still.mine()
    await all_paid(merchant, more)
    assert len(await hashes(merchant, more)) == 2
    assert BATCH_GAS < 1 << 24, "what one transaction may have since Osaka"
    for wrong in (0, MOST_BATCH + 1):
        with pytest.raises(ValueError, match="batch"):
            Policy(batch=wrong)


async def test_the_limit_of_a_day_stops_some_of_a_batch(still: Market) -> None:
    merchant = await opened(still, most_per_day=3 * VALUE)
    names = await stored(still, merchant, 5)
    ends = await merchant.capture_many(names, until=State.CAPTURING)
    refused = [name for name, end in ends.items() if isinstance(end, LimitReached)]
    assert refused == names[3:]
    still.mine()
    await all_paid(merchant, names[:3])
    assert [(await merchant.order(name)).state for name in refused] == [State.STORED] * 2


async def test_two_back_ends_that_capture_the_same_orders_send_each_once(still: Market) -> None:
    ours = await opened(still)
    theirs = still.merchant(batch=MOST_BATCH)
    names = await stored(still, ours, 12)
    both = asyncio.gather(
        ours.capture_many(names[:8], timeout=20),
        theirs.capture_many(names[4:][::-1], timeout=MAX_WAIT),
    )
    while not both.done():
        await asyncio.sleep(0.05)
        if still.node.pool.executable_count:
            still.mine()
    first, second = await both
    assert all(end.paid for end in (*first.values(), *second.values())), (first, second)
    for name in names:
        sent = await ours.submissions(name)
        assert [submission.progress for submission in sent] == [Progress.SUCCEEDED], name
    assert await still.balance(ours.node, still.shop.address) == 12 * VALUE


async def test_a_reorganisation_takes_a_batch_back_and_one_of_it_fails_then(
    still: Market,
) -> None:
    merchant = await opened(still, funds=2 * VALUE, bump_after=1e9, tip=10**6)
    names = await stored(still, merchant, 4)
    still.mine(3)
    await merchant.capture_many(names, until=State.CAPTURING)
    block = still.mine()
    await all_paid(merchant, names)
    (sent,) = await hashes(merchant, names)
    still.rival(1, [[], []])
    await merchant.reconcile()
    assert [(await merchant.order(name)).state for name in names] == [State.CAPTURING] * 4
    # On the new branch, a payer spends the money before the capture.
    still.do(still.accounts[4], "transfer", still.stranger.address, 2 * VALUE)
    await merchant.reconcile()
    if not still.node.chain.locate(bytes.fromhex(sent[2:])):
        still.mine()
    await all_paid(merchant, names[1:])
    await merchant.reconcile()
    order = await merchant.order(names[0])
    assert (order.state, order.reason) == (State.STORED, Reason.BALANCE)
    (seen,) = await merchant.submissions(names[0])
    assert (seen.transaction_hash, seen.progress) == (sent, Progress.REVERTED)
    # Then the original branch becomes the longer one again.
    head = still.node.chain.head.number
    depth = head - block.header.number + 1
    still.rival(depth, [list(block.transactions), *([[]] * depth)], mark=2)
    still.mine()
    for _ in range(3):
        await merchant.reconcile()
    await all_paid(merchant, names)
    assert await still.balance(merchant.node, still.shop.address) == 4 * VALUE


async def test_a_batch_that_waits_is_replaced_by_a_dearer_one(still: Market) -> None:
    merchant = await opened(still, bump_after=0.0, most_bumps=1)
    names = await stored(still, merchant, 3)
    await merchant.capture_many(names, until=State.CAPTURING)
    await merchant.reconcile()
    still.mine()
    await all_paid(merchant, names)
    for name in names:
        ends = [submission.progress for submission in await merchant.submissions(name)]
        assert ends == [Progress.REPLACED, Progress.SUCCEEDED]
        trail = [entry.what for entry in await merchant.audit(name)]
        assert trail.count("capture reserved nonce 0") == 2
    assert await still.balance(merchant.node, still.shop.address) == 3 * VALUE


async def test_a_batch_that_the_pool_refuses_says_why_and_goes_on(still: Market) -> None:
    merchant = await opened(still)
    names = await stored(still, merchant, 3)

    class Emptied(HttpTransport):
        """A connection that empties an account's balance just before it forwards a transaction."""

        async def send(self, body: bytes) -> bytes:
            if b"eth_sendRawTransaction" in body:
                await still.client().call("anvil_setBalance", still.shop.address, "0x0")
            return await super().send(body)

    still.clients.append(NodeClient(Emptied(still.server.urls[0])))
    poor = still.merchant(batch=10, node=still.clients[-1])
    await poor.capture_many(names, until=State.CAPTURING)
    for name in names:
        order = await merchant.order(name)
        assert (order.state, order.reason) == (State.CAPTURING, Reason.GAS_FUNDS)
    await merchant.node.call("anvil_setBalance", still.shop.address, hex(10**18))
    await merchant.reconcile()
    assert [(await merchant.order(name)).reason for name in names] == [None] * 3
    still.mine()
    await all_paid(merchant, names)
    assert len(await hashes(merchant, names)) == 1


async def test_an_account_that_cannot_pay_for_all_captures_as_many_as_it_can(
    still: Market,
) -> None:
    merchant = await opened(still)
    names = await stored(still, merchant, 6)
    (report, *_) = await merchant.check(names)
    quote = merchant.preflight.quote
    assert quote is not None
    cost = merchant.policy.gas_limit(report.gas or 0) * quote.cap
    await merchant.node.call("anvil_setBalance", still.shop.address, hex(2 * cost + cost // 2))
    ends = await merchant.capture_many(names, until=State.CAPTURING, at_once=1)
    refused = [end for end in ends.values() if isinstance(end, CaptureRefused)]
    assert refused
    assert all(item.report.reason is Reason.GAS_FUNDS for item in refused)
    still.mine()
    await all_paid(merchant, [name for name in names if not isinstance(ends[name], Exception)])


@pytest.mark.parametrize("gas", [110_000, 200_000, 215_000])
async def test_a_batch_without_enough_gas_leaves_no_order_behind(still: Market, gas: int) -> None:
    merchant = await opened(still, gas_margin_percent=0)
    names = await stored(still, merchant, 4)
    calls = {}
    for name in names:
        order = await merchant.order(name)
        signature = merchant.signature_of(order)
        assert signature is not None
        calls[name] = collecting_call(order, signature)
    assert await merchant.transactions.submit_many(calls, gas) == {}
    still.mine()
    for _ in range(2):
        await merchant.reconcile()
    ends = [await merchant.order(name) for name in names]
    assert {end.state for end in ends} <= {State.PAID, State.STORED}
    short = [end for end in ends if end.state is State.STORED]
    assert {item.reason for item in short} == {Reason.OUT_OF_GAS}
    assert short
    await merchant.capture_many([item.id for item in short], until=State.CAPTURING)
    still.mine()
    await all_paid(merchant, names)


async def test_a_used_nonce_found_on_the_way_is_waited_for(still: Market) -> None:
    merchant = await opened(still)
    names = await stored(still, merchant, 3)
    order = await merchant.order(names[0])
    signature = merchant.signature_of(order)
    assert signature is not None
    to, data = collecting_call(order, signature)
    still.send(still.stranger, to, data)  # A stranger submits the same capture first.
    ends = await merchant.capture_many(names, until=State.CAPTURING)
    assert isinstance(ends[names[0]], Order)
    still.mine()
    await all_paid(merchant, names)
    assert await merchant.submissions(names[0]) == []


async def test_keys_are_rotated_under_a_batch(still: Market) -> None:
    merchant = await opened(still, bump_after=1e9)
    names = await stored(still, merchant, 3)
    await merchant.capture_many(names, until=State.CAPTURING)
    merchant.vault = type(merchant.vault)([b"\x08" * 32, b"\x07" * 32])
    merchant.transactions.vault = merchant.vault
    assert await merchant.rotate_keys() == 3 + 1
    await merchant.reconcile()
    still.mine()
    await all_paid(merchant, names)


# A back end in a separate process. `die` names the step at which it kills itself.
SCRIPT = """
import asyncio, os, sys
from fastevm.payments import Domain, KeySigner, Merchant, NodeClient, Policy, Vault, open_store
from fastevm.payments.node import HttpTransport

url, store, address, key, now, die = sys.argv[1:]

class Mortal(HttpTransport):
    async def send(self, body):
        if b"eth_sendRawTransaction" not in body:
            return await super().send(body)
        if die == "after":
            await super().send(body)
        os.kill(os.getpid(), 9)

class Last(KeySigner):
    async def sign_transaction(self, fields):
        if die == "signing":
            os.kill(os.getpid(), 9)
        return await super().sign_transaction(fields)

async def main():
    merchant = Merchant(
        NodeClient(Mortal(url)), open_store(store), Vault([b"\\x07" * 32]),
        Domain("USD Coin", "2", 31337, address), Last(key),
        policy=Policy(poll=0.02, batch=100), clock=lambda: int(now),
    )
    names = [order.id for order in await merchant.orders()]
    await merchant.capture_many(names, timeout=300)

asyncio.run(main())
"""


@pytest.mark.parametrize("die", ["signing", "before", "after"])
async def test_what_a_killed_process_reserved_or_sent_another_one_finishes(
    still: Market, die: str
) -> None:
    merchant = await opened(still)
    names = await stored(still, merchant, 5)
    dying = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SCRIPT, still.server.urls[0], still.store_url, still.token.token,
        "0x" + bytes(still.shop.key).hex(), str(still.now), die, cwd=ROOT,
    )  # fmt: skip
    assert await dying.wait() == -9
    states = {(await merchant.order(name)).state for name in names}
    assert states == {State.CAPTURING}, states
    assert still.node.pool.executable_count == (die == "after")
    if die == "signing":  # ends the lease that the dead process still holds
        for submission in merchant.store.open_submissions(
            merchant.token.chain_id, still.shop.address, 0
        ):
            merchant.store.postpone(submission.number, Reason.SIGNER_UNAVAILABLE, "", 0.0)
    await merchant.reconcile()
    assert still.node.pool.executable_count == 1
    still.mine()
    await all_paid(merchant, names)
    assert len(await hashes(merchant, names)) == 1
    assert await still.balance(merchant.node, still.shop.address) == 5 * VALUE
