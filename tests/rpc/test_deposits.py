"""Tests fastevm_deposit over HTTP, which deposits ether and messages from a simulated L1."""

from collections.abc import Iterator
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.node import Mining, dev_node

from .test_dev_node import RECEIVER, Client

SENDER = "0x" + "a1" * 20
ETHER = 10**18


@pytest.fixture(scope="module")
def l2() -> Iterator[Client]:
    server = ServerThread(dev_node(op_fork="karst", mining=Mining.MANUAL))
    server.start()
    yield Client(server.url("preconf"))
    server.stop()


def test_a_deposit_is_in_the_next_block(l2: Client) -> None:
    tx_hash = l2.result(
        "fastevm_deposit", {"from": SENDER, "to": RECEIVER, "mint": hex(ETHER), "value": "0x7"}
    )
    assert l2.result("eth_getTransactionReceipt", tx_hash) is None
    l2.result("evm_mine")
    receipt = l2.result("eth_getTransactionReceipt", tx_hash)
    assert (receipt["status"], receipt["type"], receipt["l1Fee"]) == ("0x1", "0x7e", "0x0")
    assert receipt["transactionIndex"] == "0x1"
    found = l2.result("eth_getTransactionByHash", tx_hash)
    assert (found["from"], found["mint"], found["value"]) == (SENDER, hex(ETHER), "0x7")
    assert int(l2.result("eth_getBalance", SENDER, "latest"), 16) == ETHER - 7


def test_a_deposit_without_receiver_creates_a_contract(l2: Client) -> None:
    tx_hash = l2.result("fastevm_deposit", {"from": SENDER, "data": "0x635f5fa0005f526004601cf3"})
    l2.result("evm_mine")
    receipt = l2.result("eth_getTransactionReceipt", tx_hash)
    code = l2.result("eth_getCode", receipt["contractAddress"], "latest")
    assert (receipt["status"], code) == ("0x1", "0x5f5fa000")


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"to": RECEIVER}, "Deposit.from"),
        ({"from": SENDER, "mint": hex(2**128)}, "at most 128 bits"),
        ({"from": SENDER, "nonce": "0x1"}, "a deposit has no member 'nonce'"),
        ({"from": SENDER, "gas": hex(20_000_001)}, "at most 20000000 gas"),
        ("0x7e", "Deposit"),
    ],
)
def test_what_is_no_deposit_is_refused(l2: Client, wanted: Any, text: str) -> None:
    error = l2.ask("fastevm_deposit", wanted)["error"]
    assert error["code"] == -32602
    assert text in error["message"]


def test_a_chain_of_ethereum_refuses_deposits() -> None:
    with ServerThread(dev_node(mining=Mining.MANUAL)) as server:
        error = Client(server.url("preconf")).ask("fastevm_deposit", {"from": SENDER})["error"]
        assert "no blocks that begin with deposits" in error["message"]


def test_a_deposit_has_the_nonce_of_its_sender_before_its_block_is_sealed() -> None:
    """Otherwise viem takes a mined transaction with the same sender and nonce for a replacement."""
    node = dev_node(op_fork="karst", block_time_ms=1_000, slice_interval_ms=50)
    with ServerThread(node) as server:
        client = Client(server.url("preconf"))
        hashes = [client.result("fastevm_deposit", {"from": SENDER}) for _ in range(2)]
        first_seen = client.wait(lambda: client.result("eth_getTransactionByHash", hashes[1]))
        sealed = client.receipt(hashes[1])
        in_block = client.result("eth_getTransactionByHash", hashes[1])
        assert in_block["blockHash"] == sealed["blockHash"]
        assert (first_seen["nonce"], in_block["nonce"]) == ("0x1", "0x1")
