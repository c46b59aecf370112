"""Tests that a silent upstream delays no other client of a follower."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from fastevm.bench.node.launch import server_of
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node import Mining, Node, dev_node
from fastevm.node.dev_chain import DEV_CHAIN_ID
from fastevm.node.following import service
from fastevm.node.following.upstream import UpstreamError
from fastevm.rpc.transport.server import Server
from fastevm.rpc_client.asynchronous import AsyncJsonRpcClient
from fastevm.rpc_client.messages import RpcRefusal
from tests.max_wait import MAX_WAIT

SENDS = 32
BOB = "0x" + "b0" * 20
PAYMENT = {"from": BOB, "to": BOB}
OTHERS: tuple[tuple[str, list[Any]], ...] = (
    ("eth_blockNumber", []),
    ("eth_call", [PAYMENT, "latest"]),
    ("eth_simulateV1", [{"blockStateCalls": [{"calls": [PAYMENT]}]}, "latest"]),
    ("eth_getLogs", [{"fromBlock": "0x0"}]),
    ("debug_traceCall", [PAYMENT, "latest"]),
)


class Silent:
    """An upstream that never answers. ``taken``: number of transactions that it received."""

    def __init__(self) -> None:
        self.taken = 0
        self.speaks = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"eth_sendRawTransaction")
            self.taken += 1
            await self.speaks.wait()
        writer.close()


@pytest.fixture
async def upstream() -> AsyncIterator[tuple[Silent, str]]:
    silent = Silent()
    server = await asyncio.start_server(silent.serve, "127.0.0.1", 0)
    yield silent, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    silent.speaks.set()
    server.close()


@pytest.fixture
async def follower(upstream: tuple[Silent, str]) -> AsyncIterator[Server]:
    node = dev_node(accounts=3, mining=Mining.NEVER)
    node.follow(upstream[1])
    server = server_of(node, "geth", threads=2)
    await server.start()
    yield server
    await server.stop()


def payments(node: Node, count: int) -> list[str]:
    made = []
    for nonce in range(count):
        payment = Transaction.build(
            to=bytes.fromhex(BOB[2:]), value=1, gas_limit=21_000, chain_id=DEV_CHAIN_ID,
            nonce=nonce, max_fee_per_gas=10**10, max_priority_fee_per_gas=1,
        )  # fmt: skip
        made.append("0x" + payment.sign(node.accounts[0].private_key).raw.hex())
    return made


async def until(condition: Any) -> None:
    async with asyncio.timeout(MAX_WAIT):
        while not condition():
            await asyncio.sleep(0.01)


async def test_other_calls_go_on_while_transactions_wait_for_a_silent_upstream(
    upstream: tuple[Silent, str], follower: Server
) -> None:
    silent, _ = upstream
    async with AsyncJsonRpcClient(follower.urls[0], timeout=MAX_WAIT) as client:
        raws = payments(follower.node, SENDS)  # type: ignore[arg-type]
        single = [client.call("eth_sendRawTransaction", raw) for raw in raws[:-2]]
        together = client.batch([("eth_sendRawTransaction", (raw,)) for raw in raws[-2:]])
        waiting = [asyncio.ensure_future(sent) for sent in (*single, together)]
        await until(lambda: silent.taken >= SENDS - 1)  # of the batch, only the first is sent
        for method, params in OTHERS:
            await client.call(method, *params)
        assert not any(sent.done() for sent in waiting), "the upstream has not answered"
        silent.speaks.set()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(item, RpcRefusal) for item in (*ended[:-1], *ended[-1]))
    assert follower.node.pool.find(Transaction.decode(bytes.fromhex(raws[0][2:])).hash) is None


async def test_who_leaves_does_not_take_the_transaction_back(
    upstream: tuple[Silent, str], follower: Server
) -> None:
    silent, _ = upstream
    (raw,) = payments(follower.node, 1)  # type: ignore[arg-type]
    tx_hash = Transaction.decode(bytes.fromhex(raw[2:])).hash
    async with AsyncJsonRpcClient(follower.urls[0]) as client:
        sending = asyncio.ensure_future(client.call("eth_sendRawTransaction", raw))
        await until(lambda: silent.taken)
        sending.cancel()
    await asyncio.sleep(0.1)
    assert follower.node.pool.find(tx_hash) is not None
    silent.speaks.set()
    await until(lambda: follower.node.pool.find(tx_hash) is None)


async def test_more_than_so_many_are_refused_with_words(
    upstream: tuple[Silent, str], follower: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "FORWARDS_LIMIT", 2)
    silent, _ = upstream
    first, second, third = payments(follower.node, 3)  # type: ignore[arg-type]
    async with AsyncJsonRpcClient(follower.urls[0]) as client:
        sent = [
            asyncio.ensure_future(client.call("eth_sendRawTransaction", raw))
            for raw in (first, second)
        ]
        await until(lambda: silent.taken == 2)
        with pytest.raises(RpcRefusal, match="2 transactions wait for the upstream node already"):
            await client.call("eth_sendRawTransaction", third)
        silent.speaks.set()
        await asyncio.gather(*sent, return_exceptions=True)


async def test_a_node_that_has_not_started_says_so() -> None:
    node = dev_node(accounts=1, mining=Mining.NEVER)
    node.follow("http://127.0.0.1:9")
    (raw,) = payments(node, 1)
    with pytest.raises(UpstreamError, match="not connected"):
        node.submit(bytes.fromhex(raw[2:]))
    assert node.pool.executable_count == 0
