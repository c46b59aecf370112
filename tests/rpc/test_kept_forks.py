"""Tests forks with a data directory, started from the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.integrations.local_node import LocalNode, NodeError
from fastevm.node import Mining, dev_node

COUNTER, BOB = "0x" + "c0" * 20, "0x" + "b0" * 20
# increments slot 7 and logs the new value
COUNTER_CODE = "0x6007546001018060075560005260206000a000"
TEN_ETHER = hex(10**19)


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    node = dev_node(mining=Mining.MANUAL, accounts=1, timestamp=1_700_000_000)
    node.development.required().amend({COUNTER: {"code": COUNTER_CODE}})
    node.mine(3)
    with ServerThread(node) as server:
        yield server.url()


def ask(node: LocalNode, method: str, *params: Any) -> Any:
    return node.request(method, list(params))


def reading(node: LocalNode) -> list[Any]:
    return [
        ask(node, "eth_blockNumber"),
        ask(node, "eth_getStorageAt", COUNTER, "0x7", "latest"),
        ask(node, "eth_getBalance", BOB, "latest"),
        ask(node, "eth_getCode", BOB, "latest"),
        ask(node, "eth_getBlockByNumber", "latest", True),
        ask(node, "eth_getLogs", {"fromBlock": "0x4", "toBlock": "latest"}),
    ]


def test_a_development_node_goes_on_with_its_fork(upstream: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"fork_url": upstream, "datadir": tmp_path / "data", "balance": 7}
    with LocalNode(**options, auto_impersonate=True) as node:
        sender = ask(node, "eth_accounts")[0]
        assert ask(node, "eth_getBalance", sender, "latest") == hex(7 * 10**18)
        ask(node, "anvil_setBalance", BOB, TEN_ETHER)
        ask(node, "anvil_setCode", BOB, "0x6001")
        ask(node, "evm_setBlockGasLimit", hex(20_000_000))
        ask(node, "anvil_setNextBlockBaseFeePerGas", hex(10**8))
        sent = ask(node, "eth_sendTransaction", {"from": BOB, "to": COUNTER})
        receipt = ask(node, "eth_getTransactionReceipt", sent)
        assert receipt["status"] == "0x1"
        block = ask(node, "eth_getBlockByHash", receipt["blockHash"], False)
        assert (block["baseFeePerGas"], block["gasLimit"]) == (hex(10**8), hex(20_000_000))
        ahead = ask(node, "evm_increaseTime", 86_400)
        before = reading(node)
    with LocalNode(**options) as node:
        assert reading(node) == before
        assert ask(node, "eth_getTransactionReceipt", sent) == receipt
        assert abs(ask(node, "evm_increaseTime", 0) - ahead) <= 1
        # BOB is still impersonated after the restart.
        ask(node, "eth_sendTransaction", {"from": BOB, "to": COUNTER})
        assert ask(node, "eth_getStorageAt", COUNTER, "0x7", "latest")[-1] == "2"


def test_named_snapshots_over_json_rpc(upstream: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"fork_url": upstream, "datadir": tmp_path / "data"}
    with LocalNode(**options) as node:
        ask(node, "anvil_setBalance", BOB, TEN_ETHER)
        ask(node, "evm_mine")
        saved = ask(node, "fastevm_saveSnapshot", "base")
        assert saved["blockNumber"] == "0x4"
        ask(node, "anvil_setBalance", BOB, "0x0")
        ask(node, "evm_mine")
    with LocalNode(**options) as node:
        assert ask(node, "fastevm_snapshots") == {"base": saved}
        for _ in range(2):
            assert ask(node, "fastevm_restoreSnapshot", "base") is True
            assert ask(node, "eth_getBalance", BOB, "latest") == TEN_ETHER
            assert ask(node, "eth_blockNumber") == "0x4"
            ask(node, "anvil_setBalance", BOB, "0x1")
        assert ask(node, "fastevm_deleteSnapshot", "base") is True
        assert ask(node, "fastevm_restoreSnapshot", "base") is False
        with pytest.raises(NodeError, match="invalid name of a snapshot"):
            ask(node, "fastevm_saveSnapshot", "../base")


def test_a_chain_without_a_fork_has_named_snapshots_too() -> None:
    with LocalNode() as node:
        ask(node, "fastevm_saveSnapshot", "empty")
        ask(node, "anvil_setBalance", BOB, TEN_ETHER)
        ask(node, "evm_mine")
        assert ask(node, "fastevm_restoreSnapshot", "empty") is True
        assert ask(node, "eth_getBalance", BOB, "latest") == "0x0"


def test_a_development_chain_of_its_own_is_kept(tmp_path: Path) -> None:
    with LocalNode(datadir=tmp_path / "data") as node:
        ask(node, "anvil_setBalance", BOB, TEN_ETHER)
        ask(node, "evm_increaseTime", 1_000)
        ask(node, "evm_mine")
        head = ask(node, "eth_getBlockByNumber", "latest", False)
    with LocalNode(datadir=tmp_path / "data") as node:
        assert ask(node, "eth_getBlockByNumber", "latest", False) == head
        assert ask(node, "eth_getBalance", BOB, "latest") == TEN_ETHER
        ask(node, "evm_mine")
        newest = ask(node, "eth_getBlockByNumber", "latest", False)
        assert int(newest["timestamp"], 16) - int(head["timestamp"], 16) < 60


def test_a_node_with_slices_goes_on_with_its_fork(upstream: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"fork_url": upstream, "datadir": tmp_path, "block_time": "60s"}
    with LocalNode("node", **options) as node:
        ask(node, "anvil_setBalance", BOB, TEN_ETHER)
        ask(node, "evm_mine")
        mined = ask(node, "eth_getBlockByNumber", "0x4", True)
    with LocalNode("node", **options) as node:
        assert ask(node, "eth_getBlockByNumber", "0x4", True) == mined
        assert ask(node, "eth_getBalance", BOB, "latest") == TEN_ETHER


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"follow": True}, "cannot store the blocks of a fork with"),
        ({"cache_path": "elsewhere"}, "caches fetched state there"),
    ],
)
def test_options_that_exclude_a_data_directory(
    upstream: str, tmp_path: Path, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        LocalNode("node", fork_url=upstream, datadir=tmp_path, **options)
