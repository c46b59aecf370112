"""Tests `pending` on a follower without a feed, which builds it from its own pool."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread, wait_for
from fastevm.bench.remote.proxy import Endpoint, Proxy
from fastevm.core.primitives.hex import hex_bytes, hex_word
from fastevm.node import Mining, Node, dev_node, forked_node
from fastevm.node.remote import local_pending
from fastevm.node.remote.options import ForkOptions
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.simulate import simulate
from tests.block_times import UNHURRIED_MS
from tests.max_wait import MAX_WAIT

from .test_forked_node import COUNTER, COUNTER_CODE, accounts, counting

SLOT = (hex_bytes(COUNTER), "0x7", "pending")


def node_has_next(node: Node) -> Callable[[], bool]:
    """Returns a condition: the node's pending block is the child of its head."""

    def has_next() -> bool:
        pending = node.pending()
        return pending is not None and pending.header.parent_hash == node.chain.head.hash

    return has_next


@pytest.fixture
def upstream() -> Iterator[ServerThread]:
    """Provides an upstream with a counter contract at 36, which mines on demand."""
    with ServerThread(dev_node(mining=Mining.MANUAL, accounts=3)) as server, server.client() as it:
        it.call("anvil_setCode", hex_bytes(COUNTER), hex_bytes(COUNTER_CODE))
        it.call("anvil_setStorageAt", hex_bytes(COUNTER), "0x7", "0x24")
        it.call("anvil_mine", 3)
        yield server


def follower_of(url: str) -> Node:
    node = forked_node(
        ForkOptions(urls=(url,), cache=False), accounts=0, mining=Mining.NEVER, block_time_ms=2_000
    )
    node.follow(url, poll_ms=20)
    return node


def becomes(here: JsonRpcClient, value: int) -> None:
    """Waits until the counter is ``value`` at ``pending``."""
    wait_for(
        lambda: here.call("eth_getStorageAt", *SLOT) == hex_word(value), MAX_WAIT, "not pending"
    )


def test_what_was_sent_here_is_pending_and_not_promised(upstream: ServerThread) -> None:
    node = follower_of(upstream.url())
    with ServerThread(node) as server, server.client() as here, upstream.client() as there:
        becomes(here, 0x24)
        hashes = [
            here.call("eth_sendRawTransaction", hex_bytes(counting(accounts()[2], nonce)))
            for nonce in range(3)
        ]
        becomes(here, 0x27)
        assert here.call("eth_getStorageAt", SLOT[0], "0x7", "latest") == hex_word(0x24)
        sender = hex_bytes(accounts()[2].address)
        assert here.call("eth_getTransactionCount", sender, "pending") == "0x3"
        for tx_hash in hashes:
            assert here.call("eth_getTransactionReceipt", tx_hash) is None
            assert here.call("eth_getTransactionByHash", tx_hash)["blockHash"] is None
        call = {"to": hex_bytes(COUNTER), "from": sender}
        block = here.call("eth_simulateV1", {"blockStateCalls": [{"calls": [call]}]}, "pending")[0]
        assert int(block["calls"][0]["logs"][0]["data"], 16) == 0x28
        there.call("evm_mine")
        receipt = wait_for(
            lambda: here.call("eth_getTransactionReceipt", hashes[-1]), MAX_WAIT, "not followed"
        )
        assert receipt["status"] == "0x1"
        becomes(here, 0x27)
        wait_for(node_has_next(node), MAX_WAIT, "not built again")
        pending = here.call("eth_getBlockByNumber", "pending", False)
        assert int(pending["number"], 16) == node.chain.head.number + 1
        assert pending["transactions"] == []
        assert node.metrics()["fork_mismatches_total"] == 0


def test_what_the_upstream_has_pending_is_pending_here() -> None:
    building = dev_node(accounts=3, block_time_ms=UNHURRIED_MS, slice_interval_ms=100)
    with ServerThread(building) as theirs, theirs.client() as there:
        there.call("anvil_setCode", hex_bytes(COUNTER), hex_bytes(COUNTER_CODE))
        node = follower_of(theirs.url())
        with ServerThread(node) as server, server.client() as here:
            for nonce in range(4):
                there.call("eth_sendRawTransaction", hex_bytes(counting(accounts()[1], nonce)))
            becomes(here, 4)
            here.call("eth_sendRawTransaction", hex_bytes(counting(accounts()[2], 0)))
            becomes(here, 5)
            assert node.metrics()["local_pending_offered_total"] == 4
            there.call("evm_mine")
            wait_for(
                lambda: node.chain.head.hash == building.chain.head.hash, MAX_WAIT, "not followed"
            )
            becomes(here, 5)


class OtherPending(Endpoint):
    """An endpoint whose pending block the test provides."""

    def __init__(self, block: Any) -> None:
        self.block = block

    def answered(self, call: dict[str, Any], answer: Any) -> Any:
        if call.get("params", [None])[:1] == ["pending"]:
            return answer | {"result": self.block}
        return answer


class NoPending(Endpoint):
    """An endpoint that rejects the tag ``pending``."""

    def refusal(self, call: dict[str, Any]) -> dict[str, Any] | None:
        if call.get("params", [None])[:1] == ["pending"]:
            return {"code": -32602, "message": "pending is not supported"}
        return None


NONSENSE: dict[str, Endpoint] = {
    "refuses": NoPending(),
    "null": OtherPending(None),
    "no transactions": OtherPending({"parentHash": hex_bytes(bytes(32))}),
    "no block": OtherPending("0x"),
    "lists": OtherPending({"transactions": [7, None, {"hash": "0x12"}, {"hash": 5}]}),
}


@pytest.mark.parametrize("offer", NONSENSE)
def test_without_an_offer_the_pool_alone_is_pending(upstream: ServerThread, offer: str) -> None:
    with Proxy(upstream.url()) as proxy:
        node = follower_of(proxy.url)
        endpoint = NONSENSE[offer]
        if isinstance(endpoint, OtherPending) and isinstance(endpoint.block, dict):
            endpoint.block["parentHash"] = hex_bytes(node.chain.head.hash)
        proxy.endpoint = endpoint
        with ServerThread(node) as server, server.client() as here:
            here.call("eth_sendRawTransaction", hex_bytes(counting(accounts()[2], 0)))
            becomes(here, 0x25)
            assert node.metrics()["local_pending_failures_total"] == 0


def test_what_the_upstream_no_longer_offers_leaves(upstream: ServerThread) -> None:
    with Proxy(upstream.url()) as proxy, upstream.client() as there:
        tx_hash = there.call("eth_sendRawTransaction", hex_bytes(counting(accounts()[1], 0)))
        offered = there.call("eth_getTransactionByHash", tx_hash)
        head = there.call("eth_getBlockByNumber", "latest", False)["hash"]
        block = {"parentHash": head, "transactions": [offered]}
        proxy.endpoint = OtherPending(block)
        node = follower_of(proxy.url)
        with ServerThread(node) as server, server.client() as here:
            becomes(here, 0x25)
            block["transactions"] = []
            becomes(here, 0x24)
            assert node.pool.find(bytes.fromhex(tx_hash[2:])) is None


def test_pending_is_built_again_when_the_head_moves(upstream: ServerThread) -> None:
    node = follower_of(upstream.url())
    with ServerThread(node) as server, server.client() as here, upstream.client() as there:
        becomes(here, 0x24)
        for value in range(3):
            there.call("anvil_mine", 1)
            raw = hex_bytes(counting(accounts()[2], value))
            here.call("eth_sendRawTransaction", raw)
            becomes(here, 0x25 + value)
            there.call("evm_mine")
        wait_for(
            lambda: node.chain.head.hash == upstream.server.node.chain.head.hash, MAX_WAIT, "behind"
        )
        becomes(here, 0x27)


def test_a_block_of_many_slices_is_begun_again(
    upstream: ServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_pending, "SLICES_LIMIT", 2)
    node = follower_of(upstream.url())
    with ServerThread(node) as server, server.client() as here:
        for nonce in range(8):
            here.call("eth_sendRawTransaction", hex_bytes(counting(accounts()[2], nonce)))
            becomes(here, 0x25 + nonce)
        assert node.metrics()["local_pending_blocks_total"] >= 3
        pending = node.pending()
        assert pending is not None and len(pending.transactions) == 8


def test_pending_of_a_chain_of_the_op_stack() -> None:
    building = dev_node(mining=Mining.MANUAL, accounts=3, op_fork="jovian")
    with ServerThread(building) as theirs, theirs.client() as there:
        there.call("anvil_setCode", hex_bytes(COUNTER), hex_bytes(COUNTER_CODE))
        there.call("anvil_mine", 3)
        node = follower_of(theirs.url())
        with ServerThread(node) as server, server.client() as here:
            raw = counting(accounts()[2], 0, chain_id=building.config.chain_id)
            here.call("eth_sendRawTransaction", hex_bytes(raw))
            becomes(here, 1)
            there.call("evm_mine")
            wait_for(
                lambda: node.chain.head.hash == building.chain.head.hash, MAX_WAIT, "not followed"
            )
            raw = counting(accounts()[2], 1, chain_id=building.config.chain_id)
            here.call("eth_sendRawTransaction", hex_bytes(raw))
            becomes(here, 2)
            assert node.metrics()["fork_mismatches_total"] == 0
            assert node.metrics()["local_pending_failures_total"] == 0


def test_python_simulates_on_pending_in_the_same_process(upstream: ServerThread) -> None:
    node = follower_of(upstream.url())
    sender = hex_bytes(accounts()[2].address)
    with ServerThread(node) as server, server.client() as here:
        head = node.newest_view()
        assert head.block_hash == node.chain.head.hash
        here.call("eth_sendRawTransaction", hex_bytes(counting(accounts()[2], 0)))
        becomes(here, 0x25)
        view = node.newest_view()
        assert view.header.number == node.chain.head.number + 1
        assert view.ancestors[0] == node.chain.head.hash
        (block,) = simulate(view, [{"to": hex_bytes(COUNTER), "from": sender}])
        assert int.from_bytes(block.calls[0].logs[0].data, "big") == 0x26
