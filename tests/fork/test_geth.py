"""Tests a node that follows a real geth, replays its transactions, and gives the same answers."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread, wait_for
from fastevm.node import Mining, Node, forked_node
from fastevm.node.remote.options import ForkOptions
from fastevm.rpc_client.blocking import JsonRpcClient
from tests.geth import Geth, geth_or_skip
from tests.max_wait import MAX_WAIT
from tests.rpc.block_names import DEPLOYED, Named, ask, requests

POLL_MS = 20
COUNT_SLOT = 7
NOT_THERE = -32601  # error code of a method that geth does not have

UNVERIFIED = "fork_unverified_blocks_total"
# Method -> why its results differ from geth's.
DIFFERENT: dict[str, str] = {
    "debug_executionWitness": "a witness needs the trie, and the state is known in part",
    "debug_storageRangeAt": "it needs all slots, and they are known in part",
    "eth_getProof": "a proof above the fork needs the trie, and the state is known in part",
}
UNKNOWN = "0x" + "00" * 32


@pytest.fixture(scope="module")
def geth() -> Iterator[Geth]:
    """Provides geth with a counter contract at three."""
    with geth_or_skip() as node:
        for _ in range(3):
            node.count()
        yield node


def fork_of(geth: Geth, mining: Mining, accounts: int = 2) -> Node:
    options = ForkOptions(urls=(geth.url,), cache=False)
    return forked_node(options, accounts=accounts, mining=mining)


def count_of(node: Node, geth: Geth) -> int:
    counter = bytes.fromhex(geth.counter[2:])
    return node.chain.layer_of(node.chain.head.hash).storage(counter, COUNT_SLOT)


@pytest.fixture(scope="module")
def follower(geth: Geth) -> Iterator[tuple[Node, JsonRpcClient]]:
    """Provides a node that has followed geth for two blocks."""
    node = fork_of(geth, Mining.NEVER, accounts=0)
    node.follow(geth.url, poll_ms=POLL_MS)
    with ServerThread(node) as server, server.client("geth") as client:
        for _ in range(2):
            geth.count()
        in_step(geth, node)
        yield node, client


def in_step(geth: Geth, node: Node) -> None:
    """Waits until the node has geth's newest block.

    geth may mine an empty block after a transaction, so the newest block is read each time.
    """

    wait_for(lambda: node.chain.head.hash == newest(geth), MAX_WAIT, "it did not follow")


def newest(geth: Geth) -> bytes:
    """Returns the hash of geth's newest block."""
    return bytes.fromhex(geth.client.call("eth_getBlockByNumber", "latest", False)["hash"][2:])


def both(
    geth: Geth, follower: tuple[Node, JsonRpcClient], method: str, params: list[Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns geth's and the follower's responses while both have the same newest block."""
    node, client = follower

    def asked() -> tuple[dict[str, Any], dict[str, Any]] | None:
        head = node.chain.head.hash
        found = ask(geth.client, method, *params), ask(client, method, *params)
        return found if node.chain.head.hash == head == newest(geth) else None

    found: tuple[dict[str, Any], dict[str, Any]] = wait_for(asked, MAX_WAIT, "geth goes on mining")
    return found


def test_a_fork_goes_on_from_the_state_of_geth(geth: Geth) -> None:
    node = fork_of(geth, Mining.INSTANT)
    before = int(geth.client.call("eth_getStorageAt", geth.counter, "0x7", "latest"), 16)
    with ServerThread(node, development=True) as server, server.client("geth") as client:
        sender = client.call("eth_accounts")[0]
        fields = {"from": sender, "to": geth.counter, "gas": hex(200_000)}
        tx_hash = client.call("eth_sendTransaction", fields)
        receipt = wait_for(
            lambda: client.call("eth_getTransactionReceipt", tx_hash), MAX_WAIT, "not mined"
        )
        assert (receipt["status"], len(receipt["logs"])) == ("0x1", 1)
        assert int(receipt["logs"][0]["data"], 16) == before + 1
        assert client.call("eth_getCode", geth.counter, "latest") == geth.client.call(
            "eth_getCode", geth.counter, "latest"
        )
    assert count_of(node, geth) == before + 1


def test_a_follower_executes_the_blocks_of_geth(
    geth: Geth, follower: tuple[Node, JsonRpcClient]
) -> None:
    node, _ = follower
    before = count_of(node, geth)
    geth.count()
    in_step(geth, node)
    assert count_of(node, geth) == before + 1
    assert node.metrics()[UNVERIFIED] == 0


@pytest.mark.parametrize(
    "tracer", [{}, {"tracer": "callTracer"}, {"tracer": "prestateTracer"}], ids=json.dumps
)
def test_a_replayed_transaction_has_the_trace_of_geth(
    geth: Geth, follower: tuple[Node, JsonRpcClient], tracer: dict[str, Any]
) -> None:
    node, client = follower
    tx_hash = geth.count()["transactionHash"]
    in_step(geth, node)
    ours = ask(client, "debug_traceTransaction", tx_hash, tracer)
    assert ours == ask(geth.client, "debug_traceTransaction", tx_hash, tracer)


def without_root(answer: dict[str, Any]) -> dict[str, Any]:
    """Returns a simulated block without state root and hash, which a fork cannot compute."""
    text = json.dumps(answer)
    for block in answer["result"]:
        text = text.replace(block["hash"], UNKNOWN).replace(block["stateRoot"], UNKNOWN)
    return dict(json.loads(text))


@pytest.mark.parametrize("named", list(requests()), ids=lambda named: named.method)
def test_a_method_answers_as_geth_does(
    geth: Geth, follower: tuple[Node, JsonRpcClient], named: Named
) -> None:
    head = geth.client.call("eth_getBlockByNumber", "latest", False)
    blocks: list[Any] = ["latest", head["number"]]
    if named.by_hash:
        blocks += [head["hash"], {"blockHash": head["hash"]}]
    for block in blocks:
        text = json.dumps(named.params(block)).replace(DEPLOYED, geth.counter)
        params = json.loads(text)
        theirs, ours = both(geth, follower, named.method, params)
        if theirs.get("error", {}).get("code") == NOT_THERE:
            pytest.skip("geth does not have the method")
        if named.method == "eth_simulateV1":
            ours, theirs = without_root(ours), without_root(theirs)
        if named.method in DIFFERENT:
            assert ours != theirs, f"it answers as geth does: {DIFFERENT[named.method]}"
        else:
            assert ours == theirs, (params, ours, theirs)
