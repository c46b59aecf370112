"""Tests how many requests a capture needs, for any block time and any latency of the node."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from fastevm.bench.node.compared import anvil_binary
from fastevm.bench.node.launch import NodeProcess, fastevm_node
from fastevm.payments import Merchant, NodeClient
from fastevm.payments.node import HttpTransport
from tests.max_wait import MAX_WAIT

from .market import Market, market
from .remote import VALUE, Remote, file_store

MOST_REQUESTS = 12
# Pairs of block time in ms and latency in seconds. Slow pairs run only if FASTEVM_PAYMENT_MATRIX is
# set.
QUICK = [(200, 0.05), (2_000, 0.02)]
SLOW = [(12_000, 0.05), (12_000, 0.3), (2_000, 0.3), (200, 0.3)]
MATRIX = [*QUICK, *(SLOW if os.environ.get("FASTEVM_PAYMENT_MATRIX") else [])]
ELSEWHERE = [(12_000, 0.3), (2_000, 0.3), (200, 0.3), (200, 0.05)]


class Counting(HttpTransport):
    """A connection that delays each request by a latency in seconds and counts the requests."""

    def __init__(self, url: str, latency: float = 0.0) -> None:
        super().__init__(url)
        self.latency, self.count = latency, 0

    async def send(self, body: bytes) -> bytes:
        self.count += 1
        await asyncio.sleep(self.latency)
        return await super().send(body)


def counted(made: Market, latency: float, **policy: float | None) -> tuple[Merchant, Counting]:
    transport = Counting(made.server.urls[0], latency)
    client = NodeClient(transport)
    made.clients.append(client)
    return made.merchant(node=client, **{"poll": 0.2, **policy}), transport  # type: ignore[arg-type]


async def requests_of_a_capture(
    merchant: Merchant, transport: Counting, store: Callable[[str], Awaitable[object]], what: str
) -> int:
    """Captures two orders. Returns the requests of the second.

    The first needs more, because the merchant then measures the block time.
    """
    for number in range(2):
        name = f"order-{number}"
        await store(name)
        before = transport.count
        assert (await merchant.capture(name, timeout=MAX_WAIT)).paid
        asked = transport.count - before
        print(f"{what}: {asked} requests")
    return asked


@pytest.mark.parametrize(("block_ms", "latency"), MATRIX)
async def test_a_capture_needs_few_requests(tmp_path: Path, block_ms: int, latency: float) -> None:
    made = await market(tmp_path, live=True, block_time_ms=block_ms)
    try:
        merchant, transport = counted(made, latency)
        stored = partial(made.stored, merchant)
        what = f"blocks of {block_ms} ms, {latency} s away"
        assert await requests_of_a_capture(merchant, transport, stored, what) <= MOST_REQUESTS
    finally:
        await made.close()


@pytest.mark.skipif(
    "FASTEVM_PAYMENT_MATRIX" not in os.environ, reason="minutes: FASTEVM_PAYMENT_MATRIX=1"
)
@pytest.mark.parametrize(("block_ms", "latency"), ELSEWHERE)
@pytest.mark.parametrize("name", ["fastevm node", "anvil"])
async def test_a_capture_needs_few_requests_of_a_node_elsewhere(
    tmp_path: Path, name: str, block_ms: int, latency: float
) -> None:
    """The node is fastevm or anvil (from npm) in a separate process."""
    if name == "anvil":
        command = [str(anvil_binary()), "--silent", "--block-time", str(block_ms / 1_000)]
        process = NodeProcess(command)
    else:
        process = fastevm_node("--block-time", f"{block_ms}ms")
    with process:
        client, transport = NodeClient(process.url), Counting(process.url, latency)
        remote = Remote(client)
        store, far = file_store(tmp_path), NodeClient(transport)
        try:
            await remote.open(10 * VALUE)
            merchant = remote.merchant(store, far)
            stored = partial(remote.stored, merchant)
            what = f"{name}, blocks of {block_ms} ms, {latency} s away"
            asked = await requests_of_a_capture(merchant, transport, stored, what)
        finally:
            await client.close()
            await far.close()
            store.close()
    assert asked <= MOST_REQUESTS


async def test_a_new_store_begins_at_the_head_of_a_long_chain(still: Market) -> None:
    still.mine(300)
    merchant, transport = counted(still, 0.0, first_block=None)
    await merchant.reconcile()
    assert transport.count <= 4
    (point,) = merchant.store.checkpoints(merchant.shop)
    assert point.number == still.node.chain.head.number
    still.do(still.payer, "transfer", still.shop.address, 5)
    await merchant.reconcile()
    assert [entry.amount for entry in await merchant.ledger()] == [5]


async def test_a_capture_before_the_first_pass_is_found_however_late_that_is(
    still: Market,
) -> None:
    merchant, _ = counted(still, 0.0, first_block=None)
    order = await still.stored(merchant)
    still.take(order.authorization.terms, still.shop)
    still.mine(200)
    await merchant.reconcile()
    assert (await merchant.order("order-1")).paid
