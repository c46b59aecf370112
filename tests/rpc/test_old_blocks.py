"""Tests that answers about a block stay the same when the node no longer has it in memory."""

from collections.abc import Iterator
from typing import Any

import pytest
from eth_utils import to_checksum_address

from fastevm.bench.node.launch import ServerThread
from fastevm.chain.retention import ChainLimits
from fastevm.node import Mining, Node, dev_node
from fastevm.rpc.dispatch.workers import LOOP_OBJECTS

from .test_dev_node import RECEIVER, Client
from .test_watching import LOGGER_INIT


@pytest.fixture
def small() -> Iterator[tuple[Client, Node]]:
    limits = ChainLimits(blocks=2, states=3)
    node = dev_node(mining=Mining.MANUAL, limits=limits)
    server = ServerThread(node)
    server.start()
    yield Client(server.url("preconf")), node
    server.stop()


def questions(block: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Returns all requests about a block that do not need its state."""
    number, name = block["number"], block["hash"]
    asked: list[tuple[Any, ...]] = [
        ("eth_getBlockByNumber", number, True), ("eth_getBlockByHash", name, False),
        ("eth_getBlockReceipts", number), ("eth_getBlockReceipts", name),
        ("eth_getBlockTransactionCountByNumber", number),
        ("eth_getBlockTransactionCountByHash", name),
        ("eth_getUncleCountByBlockNumber", number),
        ("eth_getTransactionByBlockNumberAndIndex", number, "0x0"),
        ("eth_getLogs", {"fromBlock": number, "toBlock": number}),
        ("eth_getLogs", {"blockHash": name}), ("eth_feeHistory", "0x1", number, [50]),
        ("debug_getRawBlock", number), ("debug_getRawHeader", name),
        ("debug_getRawReceipts", number),
    ]  # fmt: skip
    for tx_hash in block["transactions"][:3]:
        asked += [
            (method, tx_hash)
            for method in (
                "eth_getTransactionByHash",
                "eth_getTransactionReceipt",
                "eth_getRawTransactionByHash",
            )
        ]
    return asked


def test_answers_stay_what_they_were(small: tuple[Client, Node]) -> None:
    client, node = small
    client.send(data=LOGGER_INIT)
    client.result("evm_mine")
    created = client.result("eth_getBlockByNumber", "latest", False)["transactions"][0]
    logger = client.result("eth_getTransactionReceipt", created)["contractAddress"]
    logger = to_checksum_address(logger)
    for number in range(LOOP_OBJECTS + 1):  # one more than the event loop itself would answer
        client.send(to=logger if number % 2 else RECEIVER, nonce=1 + number)
    client.result("evm_mine")
    block = client.result("eth_getBlockByNumber", "latest", False)
    asked = questions(block)
    before = [client.ask(*item) for item in asked]
    assert not [answer for answer in before if "error" in answer]
    for _ in range(5):
        client.result("evm_mine")
    assert not node.chain.in_memory(bytes.fromhex(block["hash"][2:]))
    for item, answer in zip(asked, before, strict=True):
        assert client.ask(*item) == answer, item
    gone = client.ask("eth_getBalance", RECEIVER, block["number"])
    assert "is no longer kept" in gone["error"]["message"]
