"""Tests the pending block of a development node on a fork."""

from collections.abc import Iterator

import pytest

from fastevm.bench.node.launch import NodeProcess, fastevm_node

BOB = "0x" + "b0" * 20
READER = "0x" + "c0" * 20
COUNTER = "0x" + "5f54600101805f5500"  # adds one to slot 0


@pytest.fixture(scope="module")
def upstream() -> Iterator[NodeProcess]:
    with fastevm_node("--instant") as node:
        node.ask("anvil_setCode", READER, COUNTER)
        node.ask("evm_mine")
        yield node


@pytest.fixture
def fork(upstream: NodeProcess) -> Iterator[NodeProcess]:
    options = ("--no-mining", "--fork-url", upstream.url, "--no-storage-caching")
    with fastevm_node(*options, module=("fastevm", "dev")) as node:
        yield node


def test_the_first_read_of_the_pending_block_is_answered(fork: NodeProcess) -> None:
    assert fork.ask("eth_getTransactionCount", BOB, "pending") == "0x0"


def test_a_transaction_whose_state_is_not_known_yet_is_pending_at_once(fork: NodeProcess) -> None:
    fork.ask("eth_getBalance", BOB, "pending")
    assert fork.ask("eth_sendTransaction", {"to": BOB, "value": "0x1", "gas": "0x5208"})
    assert fork.ask("eth_getBalance", BOB, "pending") == "0x1"
    assert fork.ask("eth_sendTransaction", {"to": READER, "gas": "0x186a0"})
    assert int(fork.ask("eth_getStorageAt", READER, "0x0", "pending"), 16) == 1
    assert len(fork.ask("eth_getBlockByNumber", "pending", False)["transactions"]) == 2
