"""Tests that a state file with older states, which one node writes, loads on the other node."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastevm.bench.node.launch import NodeProcess, fastevm_node
from fastevm.rpc_client.blocking import JsonRpcClient
from tests.anvil import anvil_process
from tests.rpc.block_names import DEPLOYED, SENDER, play, result

SLOT = "0x7"
PRESERVE = ("--preserve-historical-states", "--no-mining")
TREE = {"tracer": "callTracer"}


def anvil_with(*options: str) -> NodeProcess:
    return anvil_process(*PRESERVE, *options)


def ours_with(*options: str) -> NodeProcess:
    return fastevm_node(*PRESERVE, *options, module=("fastevm", "dev"))


def seen(client: JsonRpcClient, number: int) -> list[str]:
    block = hex(number)
    return [
        result(client, "eth_getStorageAt", DEPLOYED, SLOT, block),
        result(client, "eth_getCode", DEPLOYED, block),
        result(client, "eth_getTransactionCount", SENDER, block),
        result(client, "eth_getBalance", SENDER, block),
    ]


@pytest.fixture(params=["ours to ours", "anvil to ours", "ours to anvil"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple]:
    """Provides one node's answers about its blocks, and a second node that loaded its file."""
    writer, _, reader = request.param.split()
    makers = {"ours": ours_with, "anvil": anvil_with}
    file = str(tmp_path / "state.json")
    with makers[writer]("--dump-state", file) as process, process.client() as client:
        play(client)
        # a delegated account, and an account whose code ends inside a PUSH
        result(client, "anvil_setCode", "0x" + "d1" * 20, "0xef0100" + "ab" * 20)
        result(client, "anvil_setCode", "0x" + "d2" * 20, "0x5b63aabb")
        result(client, "evm_mine")
        wanted = [seen(client, number) for number in range(5)]
    with makers[reader]("--load-state", file) as process, process.client() as client:
        yield wanted, client, reader


def test_older_states_are_read_and_traced(pair: tuple) -> None:
    wanted, client, reader = pair
    assert result(client, "eth_blockNumber") == "0x4"
    assert [seen(client, number) for number in range(5)] == wanted
    assert wanted[3][0] != wanted[2][0]
    if reader == "ours":
        (trace,) = result(client, "debug_traceBlockByNumber", "0x2", TREE)
        assert trace["result"]["to"] == DEPLOYED
        result(client, "anvil_rollback", 3)
        assert seen(client, 1) == wanted[1]
        result(client, "evm_mine")
        assert result(client, "eth_blockNumber") == "0x2"
