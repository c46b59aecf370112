"""Tests the ledger: every canonical transfer occurs once, with its order, by feed and by scan."""

import asyncio
from typing import Any

import pytest
from eth_account import Account

from fastevm.core.primitives.hex import hex_bytes
from fastevm.payments import (
    Event,
    KeySigner,
    Merchant,
    Progress,
    Reason,
    Report,
    State,
    Verdict,
    Watcher,
)
from fastevm.payments.contracts import artifact
from tests.max_wait import MAX_WAIT

from .market import FUNDS, VALUE, Market, canonical_transfers

ORDER = b"order 7".ljust(32, b"\0")
BATCH = b"payroll 3".ljust(32, b"\0")


def call(market: Market, contract: str, function: str, *arguments: Any, who: Any) -> None:
    data = artifact(contract).encode(function, *arguments)
    market.send(who, market.contracts[contract], data)


async def test_transfers_by_hand_are_in_the_ledger_whoever_sends_them(still: Market) -> None:
    merchant = still.merchant()
    still.do(still.payer, "transfer", still.shop.address, 5)
    still.do(still.shop, "transfer", still.stranger.address, 2)
    still.do(still.payer, "transfer", still.stranger.address, 9)
    await merchant.reconcile()
    assert [entry.amount for entry in await merchant.ledger()] == [5, 2]
    await merchant.reconcile()
    assert [entry.amount for entry in await merchant.ledger()] == [5, 2]


async def test_a_checkout_names_the_order_of_its_transfer(still: Market) -> None:
    checkout = still.deploy("Checkout", still.token.token, still.shop.address)
    merchant = still.merchant(emitters=[checkout])
    deadline = still.now + 1_000
    signed = still.permit(still.contracts["Checkout"], 3 * VALUE, deadline)
    arguments = (ORDER, still.payer.address, VALUE, 3 * VALUE, deadline, *signed.vrs)
    call(still, "Checkout", "capture", *arguments, who=still.shop)
    await merchant.reconcile()
    (entry,) = await merchant.ledger()
    assert (entry.amount, entry.order) == (VALUE, hex_bytes(ORDER))
    captured = [log for log in merchant.store.logs(31_337) if log.event is Event.PAYMENT_CAPTURED]
    assert captured[0].number("maximum") == 3 * VALUE


async def test_payouts_name_their_batch_leg_by_leg(still: Market) -> None:
    payout = still.deploy("Payout", still.token.token)
    merchant = still.merchant(emitters=[payout])
    still.mint(still.shop.address, 100)
    still.do(still.shop, "approve", payout, 100)
    people = [still.stranger.address, still.payer.address, still.stranger.address]
    call(still, "Payout", "sendPayouts", BATCH, people, [10, 10, 20], who=still.shop)
    await merchant.reconcile()
    legs = [entry for entry in await merchant.ledger() if entry.payout]
    assert [entry.amount for entry in legs] == [10, 10, 20]
    assert {entry.payout for entry in legs} == {hex_bytes(BATCH)}


async def test_a_memo_belongs_to_the_transfer_before_it(still: Market) -> None:
    address = still.deploy("MemoToken", "Memo Dollar", "MUSD", 6, still.admin.address)
    mint = artifact("MemoToken").encode("mint", still.payer.address, 100)
    still.send(still.admin, address, mint)
    still.token = type(still.token)("Memo Dollar", "1", 31_337, address)
    merchant = still.merchant()
    data = artifact("MemoToken").encode("transferWithMemo", still.shop.address, 7, ORDER)
    still.send(still.payer, address, data)
    await merchant.reconcile()
    (entry,) = await merchant.ledger()
    assert (entry.amount, entry.memo) == (7, hex_bytes(ORDER))


async def test_wide_histories_are_read_in_ranges(still: Market) -> None:
    merchant = still.merchant(range_blocks=3, overlap=2)
    for amount in range(1, 8):
        still.do(still.payer, "transfer", still.shop.address, amount)
        still.mine(2)
    await merchant.reconcile()
    assert [entry.amount for entry in await merchant.ledger()] == list(range(1, 8))


async def test_a_restart_goes_on_where_it_stopped(still: Market) -> None:
    merchant = still.merchant(overlap=2)
    still.do(still.payer, "transfer", still.shop.address, 1)
    await merchant.reconcile()
    still.mine(20)
    await merchant.reconcile()
    merchant.store.close()
    again = still.merchant(overlap=2)
    asked: list[dict[str, Any]] = []
    batch = again.node.batch

    async def noting(calls: Any) -> Any:
        asked.extend(params[0] for method, params in calls if method == "eth_getLogs")
        return await batch(calls)

    again.node.batch = noting  # type: ignore[method-assign]
    still.do(still.payer, "transfer", still.shop.address, 2)
    await again.reconcile()
    assert [entry.amount for entry in await again.ledger()] == [1, 2]
    head = still.node.chain.head.number
    assert {int(item["fromBlock"], 16) for item in asked} == {head - 2}


async def test_the_stream_brings_payments_without_a_poll(live: Market) -> None:
    merchant = live.merchant(feed=True, scan_every=60.0)
    running = asyncio.create_task(merchant.run())
    await asyncio.sleep(0.3)
    live.do(live.payer, "transfer", live.shop.address, 5, mine=False)
    for _ in range(round(MAX_WAIT / 0.02)):
        if await merchant.ledger():
            break
        await asyncio.sleep(0.02)
    assert [entry.amount for entry in await merchant.ledger()] == [5]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_captures_are_carried_to_their_end_in_the_background(live: Market) -> None:
    merchant = live.merchant(feed=True, scan_every=0.2)
    running = asyncio.create_task(merchant.run())
    await live.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING, timeout=0)
    for _ in range(round(MAX_WAIT / 0.02)):
        if (await merchant.order("order-1")).paid:
            break
        await asyncio.sleep(0.02)
    assert (await merchant.order("order-1")).paid
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_book_is_checked_in_one_request(still: Market) -> None:
    merchant = still.merchant()
    for number in range(12):
        await still.stored(merchant, f"order-{number}", value=FUNDS // 10)
    sent = []
    transport = merchant.node._transport
    send = transport.send

    async def noting(body: bytes) -> bytes:
        sent.append(body)
        return await send(body)

    transport.send = noting  # type: ignore[method-assign]
    reports = await merchant.check()
    assert len(reports) == 12
    assert len(sent) == 1
    assert all(report.capturable for report in reports)
    assert {report.verdict("balance_after_others").reason for report in reports} == {
        Reason.BALANCE_LATER
    }


async def test_authorizations_of_others_count_until_they_are_consumed(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant, "order-1", value=FUNDS - 5)
    await still.stored(merchant, "order-2", value=5)
    await still.stored(merchant, "order-3", value=5)
    (report,) = await merchant.check(["order-3"])
    assert report.verdict("balance_after_others").reason is Reason.BALANCE_LATER
    await merchant.capture("order-2", until=State.CAPTURING)
    still.mine()
    (report,) = await merchant.check(["order-3"])
    assert report.verdict("balance_after_others").reason is Reason.BALANCE_LATER
    await merchant.void("order-1")
    (report,) = await merchant.check(["order-3"])
    assert report.ok


async def test_a_sender_without_gas_money_is_reported(still: Market) -> None:
    poor = Account.from_key("0x" + "55" * 32)
    merchant = still.merchant(signer=KeySigner(poor.key))
    await still.stored(merchant, recipient=poor.address)
    (report,) = await merchant.check()
    assert report.verdict("gas").reason is Reason.GAS_FUNDS
    assert report.verdict("policy").ok
    order = await merchant.capture("order-1", until=State.CAPTURING, force=True)
    assert order.state is State.CAPTURING
    (sent,) = await merchant.submissions("order-1")
    assert (sent.progress, sent.reason) == (Progress.REFUSED, Reason.GAS_FUNDS)
    still.send(still.admin, poor.address, b"", value=10**18)
    await merchant.reconcile()
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid


async def next_changes(watching: Any) -> dict[tuple[str, str], Verdict]:
    """Returns the next verdicts that a watcher reports as changed."""
    changes = await asyncio.wait_for(anext(watching), MAX_WAIT)
    return {(change.order_id, change.after.name): change.after for change in changes}


async def next_verdict(watching: Any, name: str) -> Verdict:
    """Returns the next change of the check ``name`` of the order.

    Ignores other changes, which come first if a slice arrives between two calls.
    """
    while ("order-1", name) not in (changes := await next_changes(watching)):
        pass
    return changes["order-1", name]


@pytest.mark.parametrize("feed", [True, False])
async def test_a_watcher_tells_what_changed_with_a_slice(live: Market, feed: bool) -> None:
    merchant = live.merchant(feed=feed, poll=0.1)
    await live.stored(merchant)
    watching = merchant.watch()
    first = await next_changes(watching)
    assert len(first) == 9
    assert all(verdict.ok for verdict in first.values())
    live.do(live.payer, "transfer", live.stranger.address, FUNDS, mine=False)
    assert (await next_verdict(watching, "balance")).reason is Reason.BALANCE
    live.do(live.admin, "pause", mine=False)
    assert (await next_verdict(watching, "policy")).reason is Reason.PAUSED
    await watching.aclose()


async def test_a_watcher_tells_nothing_twice(still: Market) -> None:
    async def nothing(ids: Any) -> list[Any]:
        return []

    watcher = Watcher(still.client(), nothing, 1.0)
    report = Report("order-1", 1, 1, (Verdict("nonce", True, detail="as before"),))
    assert len(watcher.compare([report])) == 1
    other = Report("order-1", 2, 2, (Verdict("nonce", True, detail="in other words"),))
    assert watcher.compare([other]) == []
    assert watcher.compare([]) == []
    assert len(watcher.compare([report])) == 1, "an order that comes back is new"


async def counted(market: Market, merchant: Merchant) -> bool:
    """Returns whether the ledger has exactly the transfers to the shop in canonical blocks."""
    us = market.shop.address.lower()
    chain = sorted(
        (amount, tx_hash)
        for _, to, amount, tx_hash in canonical_transfers(market.node, market.token.token)
        if to == us
    )
    ours = sorted(
        (entry.amount, entry.transfer.key.transaction_hash)
        for entry in await merchant.ledger()
        if entry.transfer.text("recipient") == market.shop.address
    )
    return chain == ours


async def test_the_ledger_is_the_chain(still: Market) -> None:
    merchant = still.merchant()
    for amount in (3, 3, 4):
        still.do(still.payer, "transfer", still.shop.address, amount)
    await merchant.reconcile()
    assert await counted(still, merchant)
