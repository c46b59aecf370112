"""Tests a development node that mines as many blocks as tests of governor contracts do."""

from collections.abc import Iterator

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.core.primitives.replace import replace
from fastevm.rpc.command import limits_of
from fastevm.rpc.dev.command import node_of
from fastevm.rpc_client.blocking import JsonRpcClient
from tests.unit.rpc.dev.test_command import parsed

from .block_names import CALL, ask, play, result

VOTING_PERIOD = 50_400  # blocks until a vote ends
START = 3  # blocks that `play` makes before


@pytest.fixture(scope="module")
def client() -> Iterator[JsonRpcClient]:
    arguments = parsed("--no-mining")
    # Mining may take longer than the usual time limit on a busy machine.
    node, limits = node_of(arguments), replace(limits_of(arguments), request_time=300.0)
    with (
        ServerThread(node, limits=limits, development=True) as server,
        JsonRpcClient(server.url("geth"), timeout=300) as client,
    ):
        play(client)
        result(client, "hardhat_mine", hex(VOTING_PERIOD))
        result(client, "eth_sendTransaction", CALL)
        result(client, "evm_mine")
        yield client


def test_all_blocks_are_made(client: JsonRpcClient) -> None:
    assert int(result(client, "eth_blockNumber"), 16) == START + VOTING_PERIOD + 1


@pytest.mark.parametrize("last", ["latest", "0xffffff", "pending"])
def test_logs_are_found_over_all_of_them(client: JsonRpcClient, last: str) -> None:
    found = result(client, "eth_getLogs", {"fromBlock": "0x0", "toBlock": last})
    assert [int(log["blockNumber"], 16) for log in found] == [2, 3, START + VOTING_PERIOD + 1]


def test_too_many_at_once_are_refused_before_any_is_made(client: JsonRpcClient) -> None:
    before = result(client, "eth_blockNumber")
    error = ask(client, "anvil_mine", 100_001)["error"]
    assert (error["code"], error["message"]) == (
        -32602,
        "100001 blocks in one request, limit 100000: make several",
    )
    assert result(client, "eth_blockNumber") == before
