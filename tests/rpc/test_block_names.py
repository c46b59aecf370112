"""Tests every method with every kind of block parameter, on every kind of node."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from fastevm.bench.node.launch import ServerThread, wait_for
from fastevm.node import Mining, Node, dev_node, forked_node
from fastevm.node.remote.options import ForkOptions
from fastevm.rpc.errors import REASONS
from fastevm.rpc_client.blocking import JsonRpcClient
from tests.block_times import UNHURRIED_MS
from tests.max_wait import MAX_WAIT

from .block_names import Json, Named, ask, play, requests, result

POLL_MS: Final = 20
MODES: Final = (
    "node",
    "dev",
    "no mining",
    "op",
    "follower",
    "partial follower",
    "fork",
    "fork with blocks",
)
CRASHED: Final = REASONS["handler_crashed"].geth.code
REQUESTS: Final = tuple(requests())

# Method -> parts of error texts that are allowed. Any other error fails the test.
REFUSALS: Final[dict[str, tuple[str, ...]]] = {
    "debug_accountInfoAt": ("out of bounds for block with 0 transactions",),
    "debug_codeByHash": ("known in part only",),
    "debug_executionWitness": ("genesis has no witness", "has no witness yet", "known in part"),
    "debug_getRawBlockAccessList": ("before Amsterdam",),
    "debug_storageRangeAt": ("genesis is not traceable", "known in part only"),
    "debug_traceBlockByNumber": ("genesis is not traceable",),
    "eth_getBlockAccessList": ("before Amsterdam",),
    "eth_getBlockAccessListByBlockHash": ("before Amsterdam",),
    "eth_getBlockAccessListByBlockNumber": ("before Amsterdam",),
    "eth_getAccount": ("no proofs above block",),
    "eth_getProof": ("no proofs above block",),
    "optimism_outputAtBlock": ("not of the OP stack",),
}


class Served:
    """The nodes that a test module has started. `stop` ends all of them."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack

    def start(self, node: Node, *, development: bool = False) -> ServerThread:
        return self.stack.enter_context(ServerThread(node, development=development))

    def client(self, server: ServerThread, dialect: str = "preconf") -> JsonRpcClient:
        return self.stack.enter_context(server.client(dialect))


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with ExitStack() as stack:
        yield Served(stack)


@pytest.fixture(scope="module")
def upstream(served: Served) -> ServerThread:
    """Provides a node with the history of `block_names`. It mines on request."""
    server = served.start(dev_node(mining=Mining.MANUAL))
    play(served.client(server))
    return server


@pytest.fixture(scope="module", params=MODES)
def client(request: pytest.FixtureRequest, served: Served, upstream: ServerThread) -> JsonRpcClient:
    """Provides a client of each kind of node, with blocks above the first block."""
    mode = request.param
    if mode == "no mining":
        return served.client(upstream)
    if mode == "node":
        server = served.start(dev_node(block_time_ms=UNHURRIED_MS, slice_interval_ms=100))
        here = served.client(server)
        wait_for(server.server.node.pending, MAX_WAIT, "no slice")
        result(here, "evm_mine")
        wait_for(server.server.node.pending, MAX_WAIT, "no slice after a block")
        return here
    if mode == "dev":
        node = dev_node(mining=Mining.INSTANT)
        node.slots_in_an_epoch = 2
        here = served.client(served.start(node, development=True), "geth")
        play(here)
        return here
    if mode == "op":
        here = served.client(served.start(dev_node(op_fork="jovian", mining=Mining.MANUAL)))
        play(here)
        return here
    return followed(mode, served, upstream)


def followed(mode: str, served: Served, upstream: ServerThread) -> JsonRpcClient:
    """Returns a client of a node that gets its blocks from the upstream."""
    options = ForkOptions(urls=(upstream.url(),), cache=False)
    if mode.startswith("fork"):
        node = forked_node(options, accounts=2, mining=Mining.INSTANT)
        node.slots_in_an_epoch = 2
        here = served.client(served.start(node, development=True), "geth")
        for _ in range(2 if mode == "fork with blocks" else 0):
            result(here, "evm_mine")
        return here
    first = upstream.server.node.chain.genesis.header
    if mode == "follower":
        node = dev_node(mining=Mining.NEVER, timestamp=first.timestamp)
    else:
        node = forked_node(options, accounts=0, mining=Mining.NEVER)
    node.follow(upstream.url(), poll_ms=POLL_MS)
    here = served.client(served.start(node))
    if mode == "partial follower":
        for _ in range(2):
            result(served.client(upstream), "evm_mine")
    head = upstream.server.node.chain.head
    wait_for(lambda: node.chain.head.hash == head.hash, MAX_WAIT, "it did not follow")
    return here


def names_of(named: Named, head: Json) -> dict[str, Any]:
    """Returns every form of the block parameter: numbers, tags and, if allowed, hashes."""
    names: dict[str, Any] = {
        name: name for name in ("latest", "pending", "earliest", "safe", "finalized", "0x0")
    }
    names["number"] = head["number"]
    if named.by_hash:
        names |= {"hash": head["hash"], "object": {"blockHash": head["hash"]}}
    return names


def answers_of(client: JsonRpcClient, named: Named) -> dict[str, Json]:
    head = result(client, "eth_getBlockByNumber", "latest", False)
    return {
        kind: ask(client, named.method, *named.params(name))
        for kind, name in names_of(named, head).items()
    }


@pytest.mark.parametrize("named", REQUESTS, ids=lambda named: named.method)
def test_every_name_of_a_known_block_is_answered(client: JsonRpcClient, named: Named) -> None:
    answers = answers_of(client, named)
    for kind, answer in answers.items():
        if "error" in answer:
            message = answer["error"]["message"]
            expected = REFUSALS.get(named.method, ())
            assert any(text in message for text in expected), (kind, answer)
    same = [answers[kind] for kind in ("latest", "number", "hash", "object") if kind in answers]
    assert all(answer == same[0] for answer in same), answers
    assert answers["earliest"] == answers["0x0"]


@pytest.mark.parametrize("named", REQUESTS, ids=lambda named: named.method)
def test_a_block_above_the_head_is_unknown(client: JsonRpcClient, named: Named) -> None:
    answer = ask(client, named.method, *named.params("0xfffff"))
    if "error" in answer:
        assert answer["error"]["code"] != CRASHED, answer
        texts = (
            "not found",
            "beyond",
            "no proofs above",
            "not of the OP stack",
            "block height is",
        )
        assert any(text in answer["error"]["message"] for text in texts), answer
    else:
        assert answer["result"] in (None, []), answer
