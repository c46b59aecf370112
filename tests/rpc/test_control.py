"""Tests the control methods of a development chain over HTTP."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.chain.storage import DataDirectory
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.hex import hex_bytes
from fastevm.node import Mining, Node, dev_node
from tests.max_wait import MAX_WAIT

from .simulating import sent, wait_for_rest, wait_until
from .test_dev_node import CHAIN_ID, RECEIVER, SENDER, Client


@pytest.fixture
def still() -> Iterator[Client]:
    server = ServerThread(dev_node(mining=Mining.MANUAL))
    server.start()
    yield Client(server.url("preconf"))
    server.stop()


@pytest.fixture
def elsewhere() -> Iterator[Client]:
    server = ServerThread(dev_node(mining=Mining.NEVER))
    server.start()
    yield Client(server.url("preconf"))
    server.stop()


def latest(client: Client) -> Any:
    return client.result("eth_getBlockByNumber", "latest", False)


def test_blocks_come_only_on_demand(still: Client) -> None:
    tx_hash = still.send(to=RECEIVER, value=7)
    assert latest(still)["number"] == "0x0"
    assert still.result("evm_mine") == "0x0"
    assert latest(still)["transactions"] == [tx_hash]
    assert still.result("hardhat_mine", "0x3") is True
    assert still.result("hardhat_mine", 2, "0x3c") is True
    assert latest(still)["number"] == "0x6"


def test_time_moves_as_reported(still: Client) -> None:
    start = int(latest(still)["timestamp"], 16)
    assert still.result("evm_setNextBlockTimestamp", start + 1000) is None
    still.result("evm_mine")
    assert int(latest(still)["timestamp"], 16) == start + 1000
    assert still.result("evm_mine", hex(start + 2000)) == "0x0"
    assert int(latest(still)["timestamp"], 16) == start + 2000
    assert still.result("evm_mine", {"timestamp": start + 3000, "blocks": 2}) == "0x0"
    assert int(still.result("eth_blockNumber"), 16) == 4
    ahead = still.result("evm_increaseTime", 3600)
    assert 3600 + 2990 < ahead < 3600 + 3010
    late = still.ask("evm_setNextBlockTimestamp", start)["error"]
    assert late["code"] == -32602
    assert "is not after the newest block's" in late["message"]


def test_accounts_are_what_they_are_set_to(still: Client) -> None:
    assert still.result("eth_getBalance", RECEIVER, "latest") == "0x0"
    assert still.result("eth_call", {"to": RECEIVER}, "latest") == "0x"
    for family, done in (("anvil", None), ("hardhat", True)):
        assert still.result(f"{family}_setBalance", RECEIVER, "0xde0b6b3a7640000") is done
        assert still.result(f"{family}_setNonce", RECEIVER, "0x9") is done
        assert still.result(f"{family}_setCode", RECEIVER, "0x5f545f5260205ff3") is done
        assert still.result(f"{family}_setStorageAt", RECEIVER, "0x0", "0x" + "2a".zfill(64))
    assert still.result("eth_getBalance", RECEIVER, "latest") == "0xde0b6b3a7640000"
    assert still.result("eth_getTransactionCount", RECEIVER, "pending") == "0x9"
    assert int(still.result("eth_call", {"to": RECEIVER}, "latest"), 16) == 0x2A
    assert int(still.result("eth_getStorageAt", RECEIVER, "0x0", "pending"), 16) == 0x2A


def test_going_back_forgets_what_came_after(still: Client) -> None:
    number = still.result("evm_snapshot")
    still.result("anvil_setBalance", RECEIVER, "0x5")
    assert still.result("eth_getBalance", RECEIVER, "latest") == "0x5"
    tx_hash = still.send(to=RECEIVER, value=7)
    still.result("evm_mine")
    assert still.result("evm_revert", number) is True
    assert still.result("eth_getBalance", RECEIVER, "latest") == "0x0"
    assert still.result("eth_getTransactionReceipt", tx_hash) is None
    assert still.result("eth_getTransactionCount", SENDER, "pending") == "0x0"
    assert still.result("evm_revert", number) is False


def test_a_waiting_transaction_is_dropped(still: Client) -> None:
    tx_hash = still.send(to=RECEIVER, value=7)
    assert still.result("anvil_dropTransaction", tx_hash) == tx_hash
    assert still.result("anvil_dropTransaction", tx_hash) is None
    assert still.result("hardhat_dropTransaction", tx_hash) is False


def test_an_interval_in_hardhats_name_is_in_milliseconds(still: Client) -> None:
    before = int(still.result("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    still.result("hardhat_setBlockTimestampInterval", 77_000)
    still.result("evm_mine")
    after = int(still.result("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    assert after == before + 77


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("evm_mine", ["soon"]),
        ("evm_mine", [{"blocks": -1}]),
        ("anvil_mine", [100_001]),
        ("anvil_setBalance", [RECEIVER]),
        ("anvil_setBalance", [RECEIVER, -1]),
        ("anvil_setNonce", [RECEIVER, 2**64]),
        ("anvil_setStorageAt", [RECEIVER, "0x" + "1" * 65, "0x1"]),
        ("evm_revert", [None]),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(
    still: Client, method: str, params: list[Any]
) -> None:
    before = latest(still)
    assert still.ask(method, *params)["error"]["code"] == -32602
    assert latest(still) == before
    assert still.result("eth_getBalance", RECEIVER, "latest") == "0x0"


def test_where_others_make_the_blocks_nobody_has_control(elsewhere: Client) -> None:
    for name in ("evm_mine", "anvil_impersonateAccount", "eth_sendUnsignedTransaction"):
        missing = f"the method {name} does not exist/is not available"
        assert elsewhere.ask(name)["error"] == {"code": -32601, "message": missing}


def test_control_that_waits_for_the_builder_leaves_a_worker_free() -> None:
    node = dev_node(mining=Mining.MANUAL)
    account = hex_bytes(node.accounts[0].address)
    with ServerThread(node) as server, ThreadPoolExecutor() as pool:
        clients = [Client(server.url("preconf")) for _ in range(server.server.workers.threads)]
        with node.producer.lock:  # holds the lock like a request that mines many blocks
            waiting = [pool.submit(client.result, "evm_increaseTime", 1) for client in clients]
            time.sleep(0.2)
            client = Client(server.url("preconf"))
            assert client.result("eth_getProof", account, [], "latest")["address"] == account
            assert not any(item.done() for item in waiting)
        for item in waiting:
            assert item.result(timeout=MAX_WAIT)


def payments(node: Node, count: int) -> list[str]:
    """Returns raw payments, one from each of the first ``count`` accounts."""
    to = bytes.fromhex(RECEIVER[2:])
    prices = {"max_fee_per_gas": 10**10, "max_priority_fee_per_gas": 1}
    made = (
        Transaction.build(to=to, gas_limit=21_000, chain_id=CHAIN_ID, nonce=0, **prices).sign(
            account.private_key
        )
        for account in node.accounts[:count]
    )
    return [hex_bytes(item.raw) for item in made]


@pytest.mark.parametrize("method", ["eth_sendRawTransaction", "eth_sendRawTransactionSync"])
def test_transactions_that_wait_for_their_block_leave_a_worker_free(method: str) -> None:
    node = dev_node(mining=Mining.INSTANT)
    account = hex_bytes(node.accounts[0].address)
    with ServerThread(node) as server, ThreadPoolExecutor() as pool:
        raws = payments(node, server.server.workers.threads)
        clients = [Client(server.url("preconf")) for _ in raws]
        client = Client(server.url("preconf"))
        with node.producer.lock:  # holds the lock like a request that mines many blocks
            waiting = [
                pool.submit(item.result, method, raw)
                for item, raw in zip(clients, raws, strict=True)
            ]
            time.sleep(0.2)
            assert client.result("eth_getProof", account, [], "latest")["address"] == account
            assert not any(item.done() for item in waiting)
        for item in waiting:
            assert item.result(timeout=MAX_WAIT)
        assert node.chain.head.number == len(raws)


def test_mining_ends_with_its_connection() -> None:
    node = dev_node(mining=Mining.MANUAL)
    with ServerThread(node) as server:
        with sent(server, "anvil_mine", [10_000]):
            wait_until(server, 1)
            while not node.chain.head.number:
                time.sleep(0.001)
        wait_until(server, 0)
        wait_for_rest(server)
        assert node.chain.head.number < 9_000


@pytest.mark.parametrize("name", ["anvil_getAutomine", "anvil_getIntervalMining"])
def test_a_node_that_follows_says_why_it_has_no_mining_mode(elsewhere: Client, name: str) -> None:
    error = elsewhere.ask(name)["error"]
    assert error == {"code": -32000, "message": "this node does not build its own blocks"}
    assert elsewhere.result("eth_mining") is False


def test_a_chain_in_a_data_directory_is_not_reset(tmp_path: Path) -> None:
    server = ServerThread(dev_node(mining=Mining.MANUAL, directory=DataDirectory(tmp_path)))
    server.start()
    try:
        client = Client(server.url("preconf"))
        error = client.ask("anvil_reset")["error"]
        assert error == {"code": -32000, "message": "this node cannot start another chain"}
        assert client.result("anvil_metadata")["instanceId"] == "0x" + "00" * 32
    finally:
        server.stop()
