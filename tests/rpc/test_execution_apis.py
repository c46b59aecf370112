"""Tests results and errors of the methods that execution-apis added in 2026."""

from collections.abc import Iterator

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.replace import replace
from fastevm.errors import InvalidBlock
from fastevm.node import Mining, dev_node
from fastevm.rpc_client.blocking import JsonRpcClient

from .block_names import ask, play, result
from .test_forked_node import accounts, counting


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(dev_node(mining=Mining.MANUAL)) as server:
        yield server


@pytest.fixture
def client(server: ServerThread) -> Iterator[JsonRpcClient]:
    with server.client("geth") as client:
        play(client)
        yield client


@pytest.mark.parametrize(
    ("options", "cap"),
    [
        ({"hardfork": "prague"}, None),
        ({"hardfork": "osaka"}, "0x1000000"),
        ({"hardfork": "osaka", "parameters": {"tx_gas_cap": 0}}, None),
    ],
)
def test_the_cap_on_the_gas_of_a_transaction(options: dict, cap: str | None) -> None:
    node = dev_node(mining=Mining.MANUAL, **options)
    with ServerThread(node) as server, server.client() as client:
        assert result(client, "eth_txGasLimitCap") == cap


def attributes(client: JsonRpcClient) -> dict:
    head = result(client, "eth_getBlockByNumber", "latest", False)
    return {
        "timestamp": hex(int(head["timestamp"], 16) + 5),
        "prevRandao": "0x" + "05" * 32,
        "suggestedFeeRecipient": "0x" + "fe" * 20,
        "withdrawals": [],
        "parentBeaconBlockRoot": "0x" + "00" * 32,
    }


def test_a_block_is_committed(client: JsonRpcClient) -> None:
    raw = hex_bytes(counting(accounts()[1], 0))
    wanted = attributes(client)
    block_hash = result(client, "testing_commitBlockV1", wanted, [raw], "0x6162")
    head = result(client, "eth_getBlockByNumber", "latest", False)
    assert (head["hash"], head["timestamp"]) == (block_hash, wanted["timestamp"])
    assert (head["miner"], head["extraData"]) == (wanted["suggestedFeeRecipient"], "0x6162")
    assert len(head["transactions"]) == 1
    # With null, the block contains the transactions of the pool.
    result(client, "eth_sendRawTransaction", hex_bytes(counting(accounts()[1], 1)))
    result(client, "testing_commitBlockV1", attributes(client), None)
    head = result(client, "eth_getBlockByNumber", "latest", False)
    assert len(head["transactions"]) == 1
    assert result(client, "txpool_status") == {"pending": "0x0", "queued": "0x0"}


def test_a_block_that_cannot_be_built_changes_nothing(client: JsonRpcClient) -> None:
    before = result(client, "eth_getBlockByNumber", "latest", False)
    wanted = attributes(client)
    gap = hex_bytes(counting(accounts()[1], 7))
    error = ask(client, "testing_commitBlockV1", wanted, [gap])["error"]
    assert (error["code"], "nonce too high" in error["message"]) == (-32000, True)
    late = wanted | {"timestamp": before["timestamp"]}
    assert ask(client, "testing_commitBlockV1", late, [])["error"]["code"] == -32000
    assert ask(client, "testing_commitBlockV1", {}, [])["error"]["code"] == -32602
    last = wanted | {"timestamp": hex(2**64 - 1)}  # no later timestamp is left for a next block
    assert ask(client, "testing_commitBlockV1", last, [])["error"]["code"] == -32602
    assert result(client, "eth_getBlockByNumber", "latest", False) == before


def test_bad_blocks_are_kept(server: ServerThread, client: JsonRpcClient) -> None:
    node = server.server.node
    assert result(client, "debug_getBadBlocks") == []
    head = node.chain.head
    bad = [
        replace(head, header=replace(head.header, state_root=bytes([number]) * 32))
        for number in range(12)
    ]
    for block in (*bad, bad[-1]):
        with pytest.raises(InvalidBlock):
            node.add_block(block.rlp())
    with pytest.raises(InvalidBlock):
        node.add_block(b"\x01")
    found = result(client, "debug_getBadBlocks")
    assert [item["hash"] for item in found] == [hex_bytes(item.hash) for item in reversed(bad[2:])]
    assert found[0]["rlp"] == hex_bytes(bad[-1].rlp())
    assert found[0]["block"]["stateRoot"] == "0x" + "0b" * 32


def test_keys_of_a_witness_are_sorted(client: JsonRpcClient) -> None:
    keys = result(client, "debug_executionWitness", "latest")["keys"]
    assert keys == sorted(set(keys))
    assert {len(key) for key in keys} == {42, 66}


def test_the_state_of_a_witness_may_be_gone(server: ServerThread, client: JsonRpcClient) -> None:
    chain = server.server.node.chain
    chain._states.max_count = chain._states.min_count
    result(client, "anvil_mine", chain._states.min_count + 10)
    error = ask(client, "debug_executionWitness", "0x2")["error"]
    assert error == {"code": 4444, "message": "pruned history unavailable"}
