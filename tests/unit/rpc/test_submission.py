"""Tests eth_sendRawTransactionSync and base_transactionStatus on a node in memory."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.hex import hex_bytes
from fastevm.errors import InvalidTransaction
from tests.max_wait import MAX_WAIT

from .conftest import Caller, MakeCaller
from .fakes import FakeNode, chain_of
from .subscriptions.test_subscriptions import ZERO, block_on, slice_of, transaction
from .test_logs import A, receipt

RAW = "0x01"
SENT = transaction(0)


@pytest.fixture
def node() -> FakeNode:
    return FakeNode(chain_of(3), submission=SENT.hash)


@pytest.fixture
async def client(make_caller: MakeCaller, node: FakeNode) -> AsyncIterator[Caller]:
    caller = make_caller(node)
    caller.context.hub.start()
    yield caller
    await caller.context.hub.stop()


async def test_the_receipt_comes_with_the_slice(client: Caller, node: FakeNode) -> None:
    assert not client.context.dialect.receipts_of_slices
    waiting = asyncio.create_task(client.result("eth_sendRawTransactionSync", RAW))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    node.publish(slice_of(node, 1, [receipt()], 1))
    answer = await asyncio.wait_for(waiting, MAX_WAIT)
    assert answer["transactionHash"] == hex_bytes(SENT.hash)
    assert answer["blockHash"] == ZERO
    assert answer["preconfirmed"] is True


async def test_or_with_the_block(client: Caller, node: FakeNode) -> None:
    waiting = asyncio.create_task(client.result("eth_sendRawTransactionSync", RAW, 2000))
    await asyncio.sleep(0.05)
    head = node.chain.head
    block = block_on(node, head)
    block = type(block)(block.header, (SENT,))
    node.chain.receipts[block.hash] = (receipt(),)
    node.chain.move(block)
    assert (await asyncio.wait_for(waiting, MAX_WAIT))["blockHash"] == hex_bytes(block.hash)


async def test_one_that_is_there_already_needs_no_wait(client: Caller, node: FakeNode) -> None:
    node.pending_block = slice_of(node, 1, [receipt()], 1)
    answer = await asyncio.wait_for(client.result("eth_sendRawTransactionSync", RAW), MAX_WAIT)
    assert answer["transactionHash"] == hex_bytes(SENT.hash)


@pytest.mark.parametrize(("wait", "shown"), [(50, "0.05"), ("0x64", "0.1")])
async def test_one_that_is_not_seen_in_time_leaves_its_hash(
    client: Caller, node: FakeNode, wait: int | str, shown: str
) -> None:
    error = (await client.ask("eth_sendRawTransactionSync", RAW, wait))["error"]
    reported = hex_bytes(SENT.hash)
    assert error == {
        "code": 4,
        "message": f"Transaction {reported} was added to the mempool but wasn't confirmed"
        f" within {shown}s.",
        "data": reported,
    }
    assert node.submitted == [b"\x01"]


@pytest.mark.parametrize("wait", [None, 0, 30_000, 2**64 - 1])
async def test_no_wait_and_too_long_waits_are_the_limit(
    make_caller: MakeCaller, wait: int | None
) -> None:
    caller = make_caller(FakeNode(chain_of(3), submission=SENT.hash), sync_time=0.2)
    caller.context.hub.start()
    error = (await caller.ask("eth_sendRawTransactionSync", RAW, wait))["error"]
    assert error["code"] == 4
    assert error["message"].endswith(" within 0.2s.")
    await caller.context.hub.stop()


@pytest.mark.parametrize("wait", [-1, 1.5, "soon", True, [], "0x"])
async def test_a_bad_wait_is_refused_and_nothing_is_sent(
    client: Caller, node: FakeNode, wait: object
) -> None:
    code, message = await client.error("eth_sendRawTransactionSync", RAW, wait)
    assert code == -32602
    assert message.startswith("invalid argument 1")
    assert node.submitted == []


async def test_what_the_pool_refuses_is_refused_as_ever(client: Caller, node: FakeNode) -> None:
    node.submission = InvalidTransaction("nonce_too_low", "nonce too low: next 5, tx 1")
    assert await client.error("eth_sendRawTransactionSync", RAW) == (-32000, "nonce too low")


async def test_the_number_of_waiting_calls_is_bounded(make_caller: MakeCaller) -> None:
    caller = make_caller(FakeNode(chain_of(3), submission=SENT.hash), sync_waiters=1)
    caller.context.hub.start()
    first = asyncio.create_task(caller.result("eth_sendRawTransactionSync", RAW, 6000))
    while not caller.node.submitted:
        await asyncio.sleep(0.01)
    code, _ = await caller.error("eth_sendRawTransactionSync", RAW, 300)
    assert code == -32005
    assert len(caller.node.submitted) == 1
    caller.node.publish(slice_of(caller.node, 1, [receipt()], 1))
    assert (await first)["transactionHash"] == hex_bytes(SENT.hash)
    again = await caller.result("eth_sendRawTransactionSync", RAW, 0)
    assert again["transactionHash"] == hex_bytes(SENT.hash)
    await caller.context.hub.stop()


async def test_the_status_of_a_transaction(client: Caller, node: FakeNode) -> None:
    async def status(entry: Transaction) -> str:
        return (await client.result("base_transactionStatus", hex_bytes(entry.hash)))["status"]

    node.pool.ready[A] = {0: SENT, 1: transaction(1)}
    assert await status(SENT) == "Known"
    assert await status(transaction(5)) == "Unknown"
    node.publish(slice_of(node, 1, [receipt()], 1))
    assert await status(SENT) == "Unknown"
    assert await status(transaction(1)) == "Known"
    node.pool.dropped[transaction(7).hash] = "evicted"
    found = await client.result("base_transactionStatus", hex_bytes(transaction(7).hash))
    assert found == {"status": "Unknown", "reason": "evicted"}
