"""Tests that `run()` survives exceptions of listeners and malformed answers, and backs off."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from fastevm.bench.node.launch import server_of
from fastevm.node import Mining, dev_node
from fastevm.payments import InvalidTerms, Kind, Merchant, NodeClient, Order, OtherChain, State
from fastevm.payments.chain import head_of
from fastevm.payments.commands import serve
from fastevm.payments.node import HttpTransport
from fastevm.rpc.transport.server import Server
from tests.max_wait import MAX_WAIT

from .command import command_of
from .market import CHAIN_ID, VALUE, Market


class Odd(HttpTransport):
    """A connection that replaces the answers of chosen methods with malformed ones."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.odd: dict[str, Any] = {}
        self.status: bytes | None = None

    async def send(self, body: bytes) -> bytes:
        if self.status is not None:
            return self.status
        answer = await super().send(body)
        asked, answers = json.loads(body), json.loads(answer)
        if isinstance(asked, dict):
            asked, answers = [asked], [answers]
        for request, reply in zip(asked, answers, strict=True):
            key = request["method"] + ("/pending" if "pending" in request["params"] else "")
            if key in self.odd:
                reply.pop("error", None)
                reply.pop("result", None)
                reply.update(self.odd[key])
        return json.dumps(answers if len(answers) > 1 else answers[0]).encode()


@contextlib.asynccontextmanager
async def running(merchant: Merchant) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(merchant.run())
    yield task
    assert not task.done(), "it has stopped"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until(what: Any) -> None:
    async with asyncio.timeout(MAX_WAIT):
        while not what():
            await asyncio.sleep(0.01)


async def test_a_listener_that_raises_stops_nobody(still: Market) -> None:
    merchant = still.merchant(scan_every=0.02)
    seen: list[State] = []

    def raising(order: Order) -> None:
        raise RuntimeError("the shop's own code")

    merchant.on_change(raising)
    merchant.on_change(lambda order: seen.append(order.state))
    async with running(merchant):
        await still.stored(merchant)
        await merchant.capture("order-1", until=State.CAPTURING)
        still.mine()
        await until(lambda: State.PAID in seen)
    assert merchant.metrics.value("listener_failures_total") >= 4


ODD: dict[str, dict[str, Any]] = {
    "a null pending block": {"eth_getBlockByNumber/pending": {"result": None}},
    "no fee history": {"eth_feeHistory": {"error": {"code": -32601, "message": "no method"}}},
    "no suggestion": {
        "eth_maxPriorityFeePerGas": {"error": {"code": -32601, "message": "no method"}},
        "eth_feeHistory": {"result": {"reward": None}},
    },
}


@pytest.mark.parametrize("name", ODD)
async def test_a_capture_needs_nothing_that_a_provider_may_lack(still: Market, name: str) -> None:
    transport = Odd(still.server.urls[0])
    merchant = still.merchant(node=NodeClient(transport))
    await still.stored(merchant)
    transport.odd = ODD[name]
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    await transport.close()


WRONG: dict[str, dict[str, Any]] = {
    "refused": {"eth_getLogs": {"error": {"code": -32000, "message": "busy"}}},
    "null logs": {"eth_getLogs": {"result": None}},
    "odd logs": {"eth_getLogs": {"result": [{"odd": 1}]}},
    "no head": {"eth_getBlockByNumber": {"result": None}},
    "odd head": {"eth_getBlockByNumber": {"result": {"number": "seven"}}},
    "no count": {"eth_getTransactionCount": {"result": None}},
    "another chain": {"eth_chainId": {"result": "0x1"}},
    "an odd error": {"eth_chainId": {"error": "text"}},
}


@pytest.mark.parametrize("name", WRONG)
async def test_every_error_of_a_provider_is_survived_and_counted(still: Market, name: str) -> None:
    transport = Odd(still.server.urls[0])
    merchant = still.merchant(node=NodeClient(transport), scan_every=0.02, poll=0.01)
    await still.stored(merchant)
    transport.odd = WRONG[name]
    async with running(merchant):
        await until(lambda: failures(merchant) >= 2)
        still.do(still.payer, "transfer", still.shop.address, 5)
        transport.odd = {}
        while [entry.amount for entry in await merchant.ledger()] != [5]:
            await asyncio.sleep(0.01)
    await transport.close()


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b'{"id": 7}', b"\xff"])
async def test_a_provider_that_speaks_no_json_rpc_is_survived(still: Market, body: bytes) -> None:
    transport = Odd(still.server.urls[0])
    merchant = still.merchant(node=NodeClient(transport), scan_every=0.02, poll=0.01)
    transport.status = body
    async with running(merchant):
        await until(lambda: failures(merchant) >= 2)
        transport.status = None
        await until(lambda: merchant.metrics.value("passes_total") >= 1)
    await transport.close()


async def test_ended_orders_have_no_age_in_the_metrics(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    await still.stored(merchant, "order-2")
    await merchant.void("order-2")
    await merchant.measure()
    aged = [line for line in merchant.metrics.text().splitlines() if "oldest_seconds{" in line]
    states = {state for state in State if any(f'state="{state.value}"' in line for line in aged)}
    assert states == {state for state in State if not state.ended}
    assert State.STORED in states and not states & {State.PAID, State.VOIDED, State.EXPIRED}
    assert "fastevm_payments_orders{" in merchant.metrics.text()


async def test_the_metrics_have_a_fixed_port_and_another_one_if_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        monkeypatch.setattr(serve, "METRICS_PORT", port)
        taken = web.AppRunner(web.Application())
        assert await serve._listen(taken, None) not in (0, port)
        await taken.cleanup()
        with pytest.raises(InvalidTerms, match=f"cannot listen on 127.0.0.1:{port}"):
            await serve._listen(web.AppRunner(web.Application()), port)
    runner = web.AppRunner(web.Application())
    assert await serve._listen(runner, None) == port
    await runner.cleanup()


async def test_a_node_that_is_behind_is_logged_once(
    still: Market, caplog: pytest.LogCaptureFixture
) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    still.mine(3)
    await merchant.reconcile()
    head = head_of(await merchant.node.call("eth_getBlockByNumber", "0x1", False))
    for _ in range(3):
        await merchant.scanner.scan(head)
    (record,) = [record for record in caplog.records if "was scanned before" in record.message]
    assert "'fastevm pay doctor' finds out" in record.message


def failures(merchant: Merchant) -> int:
    text = merchant.metrics.text()
    lines = [line for line in text.splitlines() if "pass_failures_total{" in line]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines)


async def test_pauses_grow_while_passes_fail(still: Market) -> None:
    merchant = still.merchant(poll=0.05)
    pauses = [await merchant.reconciler._pause(failed) for failed in range(1, 14)]
    assert pauses == sorted(pauses)
    assert pauses[0] == pytest.approx(0.1)
    assert pauses[-1] == 30.0
    assert await merchant.reconciler._pause(0) == merchant.policy.scan_every


async def test_a_capture_that_another_process_pre_confirmed_is_waited_for(live: Market) -> None:
    """The nonce is used at ``pending``, but in this process the order is still STORED."""
    ours, theirs = live.merchant(), live.merchant()
    order = await live.stored(ours)
    live.take(order.authorization.terms, live.shop, mine=False)
    async with asyncio.timeout(MAX_WAIT):
        while (await theirs.check(["order-1"]))[0].verdict("nonce").ok:
            await asyncio.sleep(0.02)
    paid = await theirs.capture("order-1", timeout=MAX_WAIT)
    assert paid.paid
    assert await theirs.submissions("order-1") == []
    assert [entry.amount for entry in await theirs.ledger()] == [VALUE]


async def test_a_nonce_that_was_burned_on_less_fails_the_order(still: Market) -> None:
    merchant = still.merchant()
    order = await still.stored(merchant)
    less = still.terms(nonce=order.authorization.terms.nonce, value=1)
    still.take(less, still.stranger, kind=Kind.TRANSFER)
    assert (await merchant.capture("order-1", timeout=MAX_WAIT)).state is State.FAILED


async def restarted(market: Market, blocks: int) -> Server:
    """Replaces the node with one that has a new chain, at the same address."""
    port = int(market.server.urls[0].rsplit(":", 1)[1])
    await market.server.stop()
    other = dev_node(chain_id=CHAIN_ID, mining=Mining.MANUAL)
    other.mine(blocks)
    server = server_of(other, "preconf", port=port, threads=2)
    await server.start()
    return server


@pytest.mark.parametrize("feed", [False, True])
@pytest.mark.parametrize("blocks", [0, 1, 60])
async def test_a_chain_that_was_restarted_stops_the_reconciliation(
    still: Market, feed: bool, blocks: int
) -> None:
    merchant = still.merchant(scan_every=0.02, feed=feed)
    before = await paid_once(still, merchant)
    points = merchant.store.checkpoints(merchant.scanner.scope)
    task = asyncio.create_task(merchant.run())
    await until(lambda: merchant.metrics.value("passes_total") > 1)
    server = await restarted(still, blocks)
    try:
        async with asyncio.timeout(MAX_WAIT):
            with pytest.raises(OtherChain, match=r"the chain was restarted.*pass a new --store"):
                await task
    finally:
        await server.stop()
    assert merchant.store.order("order-1") == before
    assert len(await merchant.ledger()) == 1, "the books are those of the old chain"
    assert merchant.store.checkpoints(merchant.scanner.scope)[: len(points)] == points


async def paid_once(market: Market, merchant: Merchant) -> Order:
    await market.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    market.mine()
    return await merchant.wait("order-1", State.PAID, MAX_WAIT)


@pytest.mark.parametrize("blocks", [1, 60])
async def test_the_program_does_not_start_on_a_restarted_chain(
    still: Market, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], blocks: int
) -> None:
    merchant = still.merchant()
    await paid_once(still, merchant)
    pay = command_of(still, monkeypatch, capsys)
    server = await restarted(still, blocks)
    try:
        async with asyncio.timeout(MAX_WAIT):
            code, output = await pay("run", "--metrics", "0")
    finally:
        await server.stop()
    assert code == 2 and "--node: the node's genesis block is 0x" in output, output
    assert "the chain was restarted" in output and "pass a new --store" in output
