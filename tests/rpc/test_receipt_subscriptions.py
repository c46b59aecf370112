"""Tests subscriptions to receipts and inclusions, also for transactions sent in a batch."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fastevm.core.primitives.hex import hex_bytes
from fastevm.node import Mining, Node, dev_node
from tests.rpc.sockets import SocketClient, connected

from .block_names import SENDER
from .test_forked_node import accounts, counting

RECEIVER = "0x" + "b0" * 20
PAYMENT = {"from": SENDER, "to": RECEIVER, "value": "0x1"}


@pytest.fixture(params=[Mining.INSTANT, Mining.MANUAL])
async def node(request: pytest.FixtureRequest) -> Node:
    return dev_node(mining=request.param)


@pytest.fixture
async def client(node: Node) -> AsyncIterator[SocketClient]:
    async with connected(node) as found:
        yield found


async def mined(client: SocketClient, **fields: Any) -> str:
    """Sends a payment and mines its block. Returns the payment's hash."""
    tx_hash = str(await client.result("eth_sendTransaction", PAYMENT | fields))
    if await client.result("eth_getTransactionReceipt", tx_hash) is None:
        await client.result("evm_mine")
    return tx_hash


async def error_of(client: SocketClient, *params: Any) -> tuple[int, str]:
    error = (await client.ask("eth_subscribe", *params))["error"]
    return error["code"], error["message"]


@pytest.mark.parametrize("argument", [[], [None], [{}], [{"transactionHashes": []}]])
async def test_all_receipts(client: SocketClient, argument: list[Any]) -> None:
    await client.subscribe("transactionReceipts", *argument)
    tx_hash = await mined(client)
    (receipts,) = await client.results(1)
    assert receipts == [await client.result("eth_getTransactionReceipt", tx_hash)]
    await client.result("evm_mine")  # A block without receipts causes no notification.
    await client.silence()


async def test_receipts_of_some_transactions(client: SocketClient) -> None:
    raw = hex_bytes(counting(accounts()[1], 0))
    (tx_hash,) = [await client.result("web3_sha3", raw)]
    await client.subscribe("transactionReceipts", {"transactionHashes": [tx_hash]})
    await mined(client)
    await client.silence()
    await client.result("eth_sendRawTransaction", raw)
    await client.result("evm_mine")
    (receipts,) = await client.results(1)
    assert [receipt["transactionHash"] for receipt in receipts] == [tx_hash]


async def test_bad_receipt_filters_are_refused(client: SocketClient) -> None:
    many = {"transactionHashes": ["0x" + f"{number:064x}" for number in range(201)]}
    code, message = await error_of(client, "transactionReceipts", many)
    assert (code, message[:37]) == (-32000, "exceed max number of transaction hash")
    for argument in ("x", {"hashes": []}, {"transactionHashes": ["0x1"]}):
        assert (await error_of(client, "transactionReceipts", argument))[0] == -32602


async def test_an_inclusion_is_one_message(client: SocketClient) -> None:
    first = await mined(client)
    for tx_hash in (first, await client.result("web3_sha3", hex_bytes(counting(accounts()[1], 0)))):
        subscription = await client.subscribe("transactionInclusion", {"hash": tx_hash})
        if tx_hash != first:
            await client.silence()
            await client.result("eth_sendRawTransaction", hex_bytes(counting(accounts()[1], 0)))
            await client.result("evm_mine")
        (reported,) = await client.results(1)
        receipt = await client.result("eth_getTransactionReceipt", tx_hash)
        assert reported == {
            "status": "included",
            "blockHash": receipt["blockHash"],
            "blockNumber": receipt["blockNumber"],
            "transactionIndex": receipt["transactionIndex"],
            "receipt": receipt,
        }
        # The subscription has already ended by itself.
        assert "error" in await client.ask("eth_unsubscribe", subscription)


async def test_a_transaction_is_sent_with_its_subscription(client: SocketClient) -> None:
    raw = hex_bytes(counting(accounts()[1], 0))
    await client.subscribe("transactionInclusion", {"transaction": raw})
    await client.result("evm_mine")
    (reported,) = await client.results(1)
    assert reported["receipt"]["transactionHash"] == await client.result("web3_sha3", raw)
    code, message = await error_of(client, "transactionInclusion", {"transaction": raw})
    assert (code, message.startswith("nonce too low")) == (-32003, True)


async def test_reorganisations_are_followed_until_the_block_is_final(
    client: SocketClient, node: Node
) -> None:
    node.slots_in_an_epoch = 1
    tx_hash = await mined(client)
    argument = {"hash": tx_hash, "includeReorgs": True}
    subscription = await client.subscribe("transactionInclusion", argument)
    raw = await client.result("eth_getRawTransactionByHash", tx_hash)
    assert [item["status"] for item in await client.results(1)] == ["included"]
    await client.result("anvil_reorg", 1, [[raw, 0]])
    again = await client.results(2)
    assert [item["status"] for item in again] == ["reorged", "included"]
    assert again[0]["receipt"] is None
    await client.result("evm_mine")
    await client.silence()
    await client.result("evm_mine")
    (last,) = await client.results(1)
    assert last == again[1] | {"status": "finalized"}
    assert "error" in await client.ask("eth_unsubscribe", subscription)


async def test_bad_inclusions_are_refused(client: SocketClient) -> None:
    tx_hash = "0x" + "11" * 32
    for argument in (None, "x", {}, {"hash": tx_hash, "transaction": "0x"}, {"hash": "0x1"}):
        assert (await error_of(client, "transactionInclusion", argument))[0] == -32602
    unknown = {"hash": tx_hash, "reorgs": True}
    assert "unknown member 'reorgs'" in (await error_of(client, "transactionInclusion", unknown))[1]


async def test_a_batch_sees_what_it_causes(client: SocketClient) -> None:
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]},
        {"jsonrpc": "2.0", "id": 2, "method": "evm_mine", "params": []},
    ]
    await client.socket.send_str(json.dumps(batch))
    answers = await client.read()
    assert [answer["id"] for answer in answers] == [1, 2]
    (head,) = await client.results(1)
    assert head["number"] == "0x1"
