"""Tests methods that set values of the next blocks, by anvil's and Hardhat's names."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.chain.storage import DataDirectory
from fastevm.node import Mining, Node, dev_node

from .test_dev_node import RECEIVER, Client

OTHER = "0x" + "0d" * 20
RANDAO = "0x" + "ab" * 32


@pytest.fixture
def node() -> Node:
    return dev_node(mining=Mining.MANUAL)


@pytest.fixture
def client(node: Node) -> Iterator[Client]:
    live = ServerThread(node)
    live.start()
    yield Client(live.url("geth"))
    live.stop()


def mined(client: Client) -> dict:
    client.result("evm_mine")
    return client.result("eth_getBlockByNumber", "latest", True)


@pytest.mark.parametrize(("family", "done"), [("anvil", None), ("hardhat", True)])
def test_each_setting_shows_in_the_next_block(client: Client, family: str, done: object) -> None:
    assert client.result("eth_coinbase") == "0x" + "00" * 20
    assert client.result(f"{family}_setCoinbase", OTHER) is done
    assert client.result(f"{family}_setNextBlockBaseFeePerGas", "0x5") is done
    assert client.result("evm_setBlockGasLimit", hex(90_000_000)) is True
    name = "anvil_setNextBlockPrevRandao" if done is None else "hardhat_setPrevRandao"
    assert client.result(name, RANDAO) is done
    assert client.result("eth_coinbase") == OTHER
    assert client.result("eth_baseFee") == "0x5"
    reported = client.result("anvil_nodeInfo")["environment"]
    assert (reported["baseFee"], reported["gasLimit"]) == ("0x5", hex(90_000_000))
    first, second = mined(client), mined(client)
    assert (first["miner"], second["miner"]) == (OTHER, OTHER)
    assert (first["gasLimit"], second["gasLimit"]) == (hex(90_000_000), hex(90_000_000))
    assert (first["baseFeePerGas"], first["mixHash"]) == ("0x5", RANDAO)
    assert second["mixHash"] != RANDAO


def test_the_gas_limit_bounds_what_the_pool_takes(client: Client) -> None:
    sender = client.result("eth_accounts")[0]
    payment = {"from": sender, "to": RECEIVER, "gas": hex(30_000), "gasPrice": hex(10**10)}
    client.result("anvil_setBlockGasLimit", 25_000)
    assert "block gas limit" in client.ask("eth_sendTransaction", payment)["error"]["message"]
    client.result("anvil_setBlockGasLimit", "30000")
    client.result("eth_sendTransaction", payment)
    assert len(mined(client)["transactions"]) == 1


def test_a_base_fee_of_zero_takes_free_transactions(client: Client) -> None:
    sender = client.result("eth_accounts")[0]
    client.result("hardhat_setNextBlockBaseFeePerGas", 0)
    fees = {"maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x1"}
    client.result("eth_sendTransaction", {"from": sender, "to": RECEIVER, **fees})
    block = mined(client)
    assert (block["baseFeePerGas"], len(block["transactions"])) == ("0x0", 1)


def test_the_chain_id_changes(client: Client) -> None:
    assert client.result("anvil_setChainId", 5) is None
    assert (client.result("eth_chainId"), client.result("net_version")) == ("0x5", "5")
    sender = client.result("eth_accounts")[0]
    tx_hash = client.result("eth_sendTransaction", {"from": sender, "to": RECEIVER})
    (shown,) = mined(client)["transactions"]
    assert (shown["hash"], shown["chainId"]) == (tx_hash, "0x5")


def test_balances_are_added(client: Client) -> None:
    for name in ("anvil_addBalance", "hardhat_addBalance", "tenderly_addBalance"):
        client.result(name, OTHER, "0x5")
    assert client.result("eth_getBalance", OTHER, "latest") == "0xf"
    client.result("anvil_addBalance", OTHER, hex(2**256 - 1))
    assert client.result("eth_getBalance", OTHER, "latest") == hex(2**256 - 1)


def test_ganaches_names_of_members_of_accounts(client: Client) -> None:
    assert client.result("evm_setAccountBalance", OTHER, "0x5") is True
    assert client.result("evm_setAccountNonce", OTHER, "7") is True
    assert client.result("evm_setAccountCode", OTHER, "0x01") is True
    assert client.result("evm_setAccountStorageAt", OTHER, "0x1", "0x2") is True
    assert client.result("eth_getTransactionCount", OTHER, "latest") == "0x7"
    assert client.result("eth_getCode", OTHER, "latest") == "0x01"
    assert int(client.result("eth_getStorageAt", OTHER, "0x1", "latest"), 16) == 2


def test_waiting_transactions_are_dropped_by_sender_or_all(client: Client) -> None:
    first, second = client.result("eth_accounts")[:2]
    for sender in (first, first, second, second):
        client.result("eth_sendTransaction", {"from": sender, "to": RECEIVER})
    assert client.result("anvil_removePoolTransactions", first) is None
    assert client.result("txpool_status") == {"pending": "0x2", "queued": "0x0"}
    assert client.result("anvil_dropAllTransactions") is None
    assert client.result("txpool_status") == {"pending": "0x0", "queued": "0x0"}


def test_logging_is_turned_off_but_for_errors(client: Client) -> None:
    assert client.result("hardhat_setLoggingEnabled", False) is None
    assert not logging.getLogger("fastevm").isEnabledFor(logging.WARNING)
    assert client.result("anvil_setLoggingEnabled", True) is None
    assert logging.getLogger("fastevm").isEnabledFor(logging.WARNING)


def test_the_node_tells_of_its_snapshots_and_begins_anew(client: Client) -> None:
    first = client.result("eth_getBlockByNumber", "0x0", False)
    assert client.result("anvil_getGenesisTime") == int(first["timestamp"], 16)
    number = client.result("evm_snapshot")
    reported = client.result("anvil_metadata")
    assert reported["snapshots"] == {number: [0, first["hash"]]}
    assert reported["latestBlockHash"] == first["hash"]
    mined(client)
    assert client.result("evm_reset") is None
    assert client.result("eth_blockNumber") == "0x0"
    assert client.result("hardhat_metadata")["snapshots"] == {}


def test_blobs_that_nobody_has_are_null(client: Client) -> None:
    assert client.result("anvil_getBlobByHash", RANDAO) is None
    assert client.result("anvil_getBlobsByTransactionHash", RANDAO) is None


@pytest.mark.parametrize(
    ("method", "value", "words"),
    [
        ("anvil_setMinGasPrice", "0x1", "not supported when EIP-1559 is active"),
        ("evm_setBlockGasLimit", "0x0", "gas limit: expected 1 to"),
        ("anvil_setNextBlockBaseFeePerGas", hex(2**128), "base fee: expected at most"),
        ("anvil_setCoinbase", "0x12", "argument 0"),
        ("anvil_setChainId", hex(2**64), "argument 0"),
    ],
)
def test_what_no_block_has_is_refused(client: Client, method: str, value: str, words: str) -> None:
    error = client.ask(method, value)["error"]
    assert error["code"] == -32602
    assert words in error["message"]


def test_a_kept_chain_follows_its_rules(tmp_path: Path) -> None:
    node = dev_node(mining=Mining.MANUAL, directory=DataDirectory(tmp_path))
    assert node.development is not None
    settings = node.development.settings
    for change in (settings.set_gas_limit, settings.set_next_base_fee, settings.set_chain_id):
        with pytest.raises(ValueError, match="in a data directory follows the rules"):
            change(30_000_000)
    settings.set_coinbase(b"\x0d" * 20)
    (block,) = node.mine()
    assert block.header.coinbase == b"\x0d" * 20
    assert node.directory is not None
    node.directory.close()


def test_an_op_stack_pays_its_vault() -> None:
    node = dev_node(mining=Mining.MANUAL, op_fork="jovian")
    assert node.development is not None
    with pytest.raises(ValueError, match="vault of the OP stack"):
        node.development.settings.set_coinbase(bytes(20))
    assert node.coinbase == node.mine()[0].header.coinbase
