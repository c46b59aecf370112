"""Tests several back-end processes, some of which die.

Each capture must have exactly one transaction, and none may be lost.
"""

import asyncio
import sys
from pathlib import Path

from fastevm.payments import Progress, State
from tests.max_wait import MAX_WAIT

from .market import VALUE, Market
from .stores import BOTH

STORES = BOTH

ROOT = Path(__file__).parents[2]

# A back end in a separate process. `die`: it kills itself before or after it sends.
SCRIPT = """
import asyncio, os, sys
from fastevm.payments import Domain, KeySigner, Merchant, NodeClient, Policy, Vault, open_store
from fastevm.payments.node import HttpTransport

url, store, address, key, now, die = sys.argv[1:]

class Mortal(HttpTransport):
    async def send(self, body):
        if b"eth_sendRawTransaction" not in body or die == "never":
            return await super().send(body)
        if die == "after":
            await super().send(body)
        os._exit(3)

async def main():
    node = NodeClient(Mortal(url))
    merchant = Merchant(
        node, open_store(store), Vault([b"\\x07" * 32]), Domain("USD Coin", "2", 31337, address),
        KeySigner(key), policy=Policy(poll=0.02), clock=lambda: int(now),
    )
    order = await merchant.capture("order-1", timeout=300)
    print(order.state.value, order.settlement and order.settlement.transaction_hash)
    await node.close()

asyncio.run(main())
"""


async def back_end(market: Market, die: str = "never") -> asyncio.subprocess.Process:
    """Starts a process that captures the order. ``die``: the step at which it kills itself."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", SCRIPT, market.server.urls[0],
        market.store_url, market.token.token,
        "0x" + bytes(market.shop.key).hex(), str(market.now), die,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def test_of_processes_that_race_to_capture_one_order_one_submits(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    racing = [await back_end(still) for _ in range(2)]
    ends = asyncio.gather(*(item.communicate() for item in racing))
    while not ends.done():
        await asyncio.sleep(0.1)
        if still.node.pool.executable_count:
            still.mine()
    outputs = [(out.decode().split(), err.decode()) for out, err in await ends]
    assert all(out[:1] == ["paid"] for out, _ in outputs), outputs
    (sent,) = await merchant.submissions("order-1")
    assert {out[1] for out, _ in outputs} == {sent.transaction_hash}
    assert await still.balance(merchant.node, still.shop.address) == VALUE
    submitted = [
        entry for entry in await merchant.audit("order-1") if entry.what == "submitted for capture"
    ]
    assert len(submitted) == 1


async def test_what_a_process_recorded_and_did_not_send_another_one_sends(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    dying = await back_end(still, "before")
    assert await dying.wait() == 3
    assert still.node.pool.executable_count == 0
    (sent,) = await merchant.submissions("order-1")
    assert sent.progress is Progress.RECORDED
    await merchant.reconcile()
    assert still.node.pool.find(bytes.fromhex(sent.transaction_hash[2:])) is not None
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    assert [
        submission.transaction_hash for submission in await merchant.submissions("order-1")
    ] == [sent.transaction_hash]


async def test_what_a_process_sent_before_it_died_is_found_and_not_sent_twice(
    still: Market,
) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    dying = await back_end(still, "after")
    assert await dying.wait() == 3
    still.mine()
    order = await merchant.capture("order-1", timeout=MAX_WAIT)
    assert order.paid
    (sent,) = await merchant.submissions("order-1")
    assert sent.progress is Progress.SUCCEEDED
    assert await still.balance(merchant.node, still.shop.address) == VALUE
