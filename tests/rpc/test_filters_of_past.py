"""Tests that the first poll of a filter with `fromBlock` returns past logs, as with anvil."""

from collections.abc import Iterator

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.node import Mining, dev_node, forked_node
from fastevm.node.remote.options import ForkOptions
from fastevm.rpc_client.blocking import JsonRpcClient

from .block_names import CALL, DEPLOYED, play, result


@pytest.fixture
def history() -> Iterator[ServerThread]:
    """Provides a chain with one log in each of the blocks 2 and 3."""
    with ServerThread(dev_node(mining=Mining.MANUAL), development=True) as server:
        with server.client("geth") as client:
            play(client)
        yield server


def numbers(client: JsonRpcClient, filter_id: str) -> list[int]:
    logs = result(client, "eth_getFilterChanges", filter_id)
    assert all(log["removed"] is False for log in logs)
    return [int(log["blockNumber"], 16) for log in logs]


@pytest.mark.parametrize(
    ("wanted", "past"),
    [
        ({"fromBlock": "0x0"}, [2, 3]),
        ({"fromBlock": "earliest", "address": DEPLOYED}, [2, 3]),
        ({"fromBlock": "0x3"}, [3]),
        ({"fromBlock": "0x0", "toBlock": "0x2"}, [2]),
        ({"fromBlock": "0x9"}, []),
        ({"fromBlock": "latest"}, []),
        ({"fromBlock": "0x0", "address": "0x" + "99" * 20}, []),
        ({}, []),
    ],
)
def test_a_new_filter(history: ServerThread, wanted: dict[str, str], past: list[int]) -> None:
    with history.client("geth") as client:
        found = result(client, "eth_newFilter", wanted)
        assert numbers(client, found) == past
        assert numbers(client, found) == []


def test_what_is_mined_before_the_first_poll_comes_once(history: ServerThread) -> None:
    with history.client("geth") as client:
        found = result(client, "eth_newFilter", {"fromBlock": "0x0"})
        result(client, "eth_sendTransaction", CALL)
        result(client, "evm_mine")
        assert numbers(client, found) == [2, 3, 4]
        assert numbers(client, found) == []


def test_blocks_before_a_fork(history: ServerThread) -> None:
    options = ForkOptions(urls=(history.url(),), cache=False)
    node = forked_node(options, accounts=2, mining=Mining.INSTANT)
    with ServerThread(node, development=True) as server, server.client("geth") as client:
        result(client, "eth_sendTransaction", CALL)
        result(client, "evm_mine")
        for wanted, past in (("0x0", [2, 3, 4]), ("0x3", [3, 4]), ("0x4", [4])):
            found = result(client, "eth_newFilter", {"fromBlock": wanted})
            assert numbers(client, found) == past
            assert numbers(client, found) == []


def test_other_nodes_return_what_is_new_as_geth_does() -> None:
    with ServerThread(dev_node(mining=Mining.MANUAL)) as server, server.client() as client:
        play(client)
        found = result(client, "eth_newFilter", {"fromBlock": "0x0"})
        assert numbers(client, found) == []
