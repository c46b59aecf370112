"""Tests a follower that fetches the state it needs. It executes and checks every block."""

from collections import Counter
from collections.abc import Iterator

import pytest

from fastevm.bench.node.launch import ServerThread, wait_for
from fastevm.core.primitives.hex import hex_bytes, hex_word
from fastevm.core.state.source import Found, Wanted
from fastevm.fork import RemoteSource
from fastevm.node import Mining, Node, dev_node, forked_node
from fastevm.node.following import block_import
from fastevm.node.remote.options import ForkOptions
from fastevm.node.remote.transaction_state import remote
from tests.max_wait import MAX_WAIT

from .test_forked_node import COUNTER, COUNTER_CODE, accounts, counting

POLL_MS = 20


@pytest.fixture
def upstream() -> Iterator[ServerThread]:
    """Provides an upstream with a counter contract at 36."""
    with ServerThread(dev_node(mining=Mining.MANUAL, accounts=3)) as server, server.client() as it:
        it.call("anvil_setCode", hex_bytes(COUNTER), hex_bytes(COUNTER_CODE))
        it.call("anvil_setStorageAt", hex_bytes(COUNTER), "0x7", "0x24")
        it.call("anvil_mine", 7)
        yield server


def follower_of(upstream: ServerThread) -> Node:
    options = ForkOptions(urls=(upstream.url(),), cache=False)
    node = forked_node(options, accounts=0, mining=Mining.NEVER)
    node.follow(upstream.url(), poll_ms=POLL_MS)
    return node


def count_up(upstream: ServerThread, nonce: int) -> None:
    with upstream.client() as there:
        there.call("eth_sendRawTransaction", hex_bytes(counting(accounts()[2], nonce)))
        there.call("evm_mine")


def in_step(upstream: ServerThread, follower: Node) -> None:
    head = upstream.server.node.chain.head
    wait_for(lambda: follower.chain.head.hash == head.hash, MAX_WAIT, "it did not follow")


class Liar:
    """Returns a wrong value for the counter's slot the first ``times`` times."""

    def __init__(self, node: Node, patch: pytest.MonkeyPatch, times: int) -> None:
        assert node.history is not None
        self.times, session = times, node.history.source.session
        honest = RemoteSource.fetch

        def fetch(source: RemoteSource, wanted: Wanted) -> Found:
            found = honest(source, wanted)
            if (COUNTER, 7) in found.slots and self.times and source.session is session:
                self.times -= 1
                found.slots[COUNTER, 7] += 1_000
            return found

        patch.setattr(RemoteSource, "fetch", fetch)


def test_every_block_is_executed_here(upstream: ServerThread) -> None:
    node = follower_of(upstream)
    with ServerThread(node) as server, server.client() as here:
        for nonce in range(5):
            count_up(upstream, nonce)
            in_step(upstream, node)
            slot = here.call("eth_getStorageAt", hex_bytes(COUNTER), "0x7", "latest")
            assert slot == hex_word(0x24 + nonce + 1)
        head = here.call("eth_getBlockByNumber", "latest", True)
        with upstream.client() as there:
            assert head == there.call("eth_getBlockByNumber", "latest", True)
            for tx in head["transactions"]:
                receipt = here.call("eth_getTransactionReceipt", tx["hash"])
                assert receipt == there.call("eth_getTransactionReceipt", tx["hash"])
        metrics = node.metrics()
        assert metrics["fork_mismatches_total"] == 0
        assert metrics["upstream_blocks_total"] == 5


def test_a_wrong_value_is_found_and_replaced(
    upstream: ServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = follower_of(upstream)
    Liar(node, monkeypatch, times=1)
    with ServerThread(node) as server, server.client() as here:
        count_up(upstream, 0)
        in_step(upstream, node)
        slot = here.call("eth_getStorageAt", hex_bytes(COUNTER), "0x7", "latest")
        assert slot == hex_word(0x25)
        metrics = node.metrics()
        assert metrics["fork_mismatches_total"] == 1
        assert metrics["fork_wrong_values_total"] == 1
        assert metrics["fork_unverified_blocks_total"] == 0
        assert server.server.freshness.ready()


def test_an_upstream_that_keeps_lying_is_reported_by_readyz(
    upstream: ServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = follower_of(upstream)
    liar = Liar(node, monkeypatch, times=1_000_000)
    with ServerThread(node) as server:
        assert wait_for(server.server.freshness.ready, MAX_WAIT, "it was never ready")
        count_up(upstream, 0)
        unverified = "fork_unverified_blocks_total"
        wait_for(lambda: node.metrics()[unverified] > 0, MAX_WAIT, "no lie was found")
        assert not server.server.freshness.ready()
        liar.times = 0
        in_step(upstream, node)
        assert wait_for(server.server.freshness.ready, MAX_WAIT, "it stays in doubt")


def test_a_reorganisation_is_followed(upstream: ServerThread) -> None:
    node = follower_of(upstream)
    with ServerThread(node) as server, server.client() as here, upstream.client() as there:
        count_up(upstream, 0)
        snapshot = there.call("evm_snapshot")
        count_up(upstream, 1)
        in_step(upstream, node)
        there.call("evm_revert", snapshot)
        there.call("evm_increaseTime", 100)
        there.call("anvil_mine", 2)
        in_step(upstream, node)
        slot = here.call("eth_getStorageAt", hex_bytes(COUNTER), "0x7", "latest")
        assert slot == hex_word(0x25)
        assert node.metrics()["fork_mismatches_total"] == 0


class Fetched:
    """Counts how often a node fetched each account and slot from its upstream."""

    def __init__(self, node: Node, patch: pytest.MonkeyPatch) -> None:
        assert node.history is not None
        self.accounts: Counter[bytes] = Counter()
        self.slots: Counter[tuple[bytes, int]] = Counter()
        session, honest = node.history.source.session, RemoteSource.fetch

        def fetch(source: RemoteSource, wanted: Wanted) -> Found:
            found = honest(source, wanted)
            if source.session is session:
                self.accounts.update(found.accounts.keys())
                self.slots.update(found.slots.keys())
            return found

        patch.setattr(RemoteSource, "fetch", fetch)


def test_hot_values_stay_known_while_the_base_moves(
    upstream: ServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, cold = follower_of(upstream), b"\xcc" * 20
    node.remote.follower.blocks = 2
    fetched, sender = Fetched(node, monkeypatch), accounts()[2].address
    with ServerThread(node) as server, server.client() as here:
        for nonce in range(14):
            if nonce in (1, 12):
                here.call("eth_getBalance", hex_bytes(cold), "latest")
            count_up(upstream, nonce)
            in_step(upstream, node)
        slot = here.call("eth_getStorageAt", hex_bytes(COUNTER), "0x7", "latest")
        assert slot == hex_word(0x24 + 14)
        metrics = node.metrics()
    assert metrics["fork_bases_total"] >= 6
    assert metrics["fork_mismatches_total"] == 0
    assert fetched.slots[COUNTER, 7] == fetched.accounts[COUNTER] == fetched.accounts[sender] == 1
    assert fetched.accounts[cold] == 2


def test_what_is_known_stays_below_its_limit(upstream: ServerThread) -> None:
    node = follower_of(upstream)
    with ServerThread(node) as server, server.client() as here:
        sizes = []
        for nonce in range(12):
            for account in range(200):
                address = (1_000 * (nonce + 1) + account).to_bytes(20, "big")
                here.call("eth_getBalance", hex_bytes(address), "latest")
            count_up(upstream, nonce)
            in_step(upstream, node)
            sizes.append(remote(node.chain.layer_of(node.chain.head.hash)).size)
            if nonce == 1:
                node.remote.follower.limit = limit = sizes[0] + 100_000
        assert max(sizes[2:]) < limit + 100_000
        assert node.metrics()["fork_bases_total"] >= 1


def test_a_base_moves_and_older_blocks_are_still_here(upstream: ServerThread) -> None:
    node = follower_of(upstream)
    node.remote.follower.limit = 1
    first = node.chain.genesis
    with ServerThread(node) as server, server.client() as here, upstream.client() as there:
        for nonce in range(4):
            count_up(upstream, nonce)
            in_step(upstream, node)
        assert node.metrics()["fork_bases_total"] >= 3
        assert node.chain.genesis.number == first.number
        for back in range(4):
            number = hex(node.chain.head.number - back)
            slot = here.call("eth_getStorageAt", hex_bytes(COUNTER), "0x7", number)
            assert slot == hex_word(0x24 + 4 - back)
            expected = there.call("eth_getBlockByNumber", number, False)
            assert here.call("eth_getBlockByNumber", number, False) == expected


@pytest.mark.parametrize("moves", [False, True], ids=["one base", "a base each block"])
def test_a_reorganisation_goes_back_over_bases(upstream: ServerThread, moves: bool) -> None:
    node = follower_of(upstream)
    if moves:
        node.remote.follower.limit = 1
    with ServerThread(node) as server, server.client() as here, upstream.client() as there:
        count_up(upstream, 0)
        snapshot = there.call("evm_snapshot")
        for nonce in (1, 2, 3):
            count_up(upstream, nonce)
        in_step(upstream, node)
        there.call("evm_revert", snapshot)
        there.call("evm_increaseTime", 100)
        there.call("anvil_mine", 4)
        count_up(upstream, 1)
        in_step(upstream, node)
        slot = here.call("eth_getStorageAt", hex_bytes(COUNTER), "0x7", "latest")
        assert slot == hex_word(0x26)
        assert node.metrics()["fork_mismatches_total"] == 0
        assert node.metrics()["fork_restarts_total"] == 0


def test_a_node_that_fell_far_behind_begins_anew(
    upstream: ServerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_import, "JUMP_BLOCKS", 3)
    node = follower_of(upstream)
    with upstream.client() as there:
        there.call("anvil_mine", 5)
    with ServerThread(node) as server, server.client() as here:
        in_step(upstream, node)
        assert node.metrics()["fork_restarts_total"] == 1
        count_up(upstream, 0)
        in_step(upstream, node)
        slot = here.call("eth_getStorageAt", hex_bytes(COUNTER), "0x7", "latest")
        assert slot == hex_word(0x25)
        assert node.metrics()["fork_mismatches_total"] == 0


def test_slices_of_the_feed_are_pending_here() -> None:
    building = dev_node(accounts=3, block_time_ms=1_000, slice_interval_ms=100)
    with ServerThread(building) as upstream, upstream.client() as there:
        there.call("anvil_setCode", hex_bytes(COUNTER), hex_bytes(COUNTER_CODE))
        options = ForkOptions(urls=(upstream.url(),), cache=False)
        node = forked_node(
            options, accounts=0, mining=Mining.NEVER, block_time_ms=1_000, slice_interval_ms=100
        )
        feed = upstream.url().replace("http", "ws") + "/feed"
        node.follow(upstream.url(), feed, poll_ms=POLL_MS)
        with ServerThread(node) as server, server.client() as here:
            wait_for(node.pending, MAX_WAIT, "nothing is pending")
            for nonce in range(3):
                raw = hex_bytes(counting(accounts()[2], nonce))
                tx_hash = here.call("eth_sendRawTransaction", raw)
                found = ("eth_getTransactionReceipt", tx_hash)
                receipt = wait_for(lambda f=found: here.call(*f), MAX_WAIT, "it is not pending")
                assert receipt["status"] == "0x1"
                call = {"to": hex_bytes(COUNTER), "from": hex_bytes(accounts()[0].address)}
                payload = {"blockStateCalls": [{"calls": [call]}]}
                block = here.call("eth_simulateV1", payload, "pending")[0]
                assert int(block["calls"][0]["logs"][0]["data"], 16) == nonce + 2
        assert node.metrics()["fork_mismatches_total"] == 0
