"""How often a capture asks the node, however fast its blocks come and however far away it is."""

import asyncio
import os
from pathlib import Path

import pytest

from fastevm.payments import Merchant, NodeClient
from fastevm.payments.node import HttpTransport

from .market import Market, market

MOST_REQUESTS = 12
# Block times in ms and seconds of latency; the slow ones only when asked for.
QUICK = [(200, 0.05), (2_000, 0.02)]
SLOW = [(12_000, 0.05), (12_000, 0.3), (2_000, 0.3), (200, 0.3)]
MATRIX = QUICK + (SLOW if os.environ.get("FASTEVM_PAYMENT_MATRIX") else [])


class Counting(HttpTransport):
    """A node that is so many seconds away, and counts what it is asked."""

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


@pytest.mark.parametrize(("block_ms", "latency"), MATRIX)
async def test_a_capture_needs_few_requests(tmp_path: Path, block_ms: int, latency: float) -> None:
    made = await market(tmp_path, live=True, block_time_ms=block_ms)
    try:
        merchant, transport = counted(made, latency)
        for number in range(2):
            name = f"order-{number}"
            await made.stored(merchant, name)
            before = transport.count
            order = await merchant.capture(name, timeout=60)
            assert order.paid
            asked = transport.count - before
            print(f"blocks of {block_ms} ms, {latency} s away: {asked} requests")
            if number:  # the first one measures how fast blocks come
                assert asked <= MOST_REQUESTS
    finally:
        await made.close()


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
