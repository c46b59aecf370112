"""Tests that a follower recovers from an endpoint that lies, lags or reorganises."""

from collections.abc import Iterator
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread, wait_for
from fastevm.bench.remote.proxy import Endpoint, Proxy
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.hex import hex_bytes, hex_word
from fastevm.node import Mining, Node, dev_node, forked_node
from fastevm.node.dev_accounts import DevAccount, dev_accounts
from fastevm.node.remote.options import ForkOptions
from tests.faults import faulty_endpoints as faulty
from tests.max_wait import MAX_WAIT

COUNTER, PAYER = b"\xc0" * 20, b"\xc2" * 20
# increments slot 7 and logs the new value
COUNTER_CODE = bytes.fromhex("6007546001018060075560005260206000a000")
# logs its balance, then increments the counter
PAYER_CODE = bytes.fromhex("4760005260206000a0") + COUNTER_CODE
OTHER_CODE = "0x6007546002018060075560005260206000a000"
UNVERIFIED = "fork_unverified_blocks_total"


@pytest.fixture
def upstream() -> Iterator[ServerThread]:
    with ServerThread(dev_node(mining=Mining.MANUAL, accounts=3)) as server, server.client() as it:
        for address, code in ((COUNTER, COUNTER_CODE), (PAYER, PAYER_CODE)):
            it.call("anvil_setCode", hex_bytes(address), hex_bytes(code))
            it.call("anvil_setStorageAt", hex_bytes(address), "0x7", "0x24")
            it.call("anvil_setBalance", hex_bytes(address), "0x64")
        it.call("anvil_mine", 7)
        yield server


@pytest.fixture
def proxy(upstream: ServerThread) -> Iterator[Proxy]:
    with Proxy(upstream.url(), key="k3y-of-a-customer") as found:
        yield found


def follower_of(proxy: Proxy) -> Node:
    options = ForkOptions(urls=(proxy.url,), cache=False, retries=2, backoff=0.01)
    node = forked_node(options, accounts=0, mining=Mining.NEVER, block_time_ms=1_000)
    node.follow(proxy.url, poll_ms=20)
    return node


def account() -> DevAccount:
    return dev_accounts(3)[2]


def make_block(upstream: ServerThread, nonce: int, to: bytes = COUNTER) -> None:
    """Mines a block with one transaction that increments the counter."""
    values: dict[str, Any] = {"to": to, "gas_limit": 200_000, "chain_id": 31_337, "nonce": nonce}
    prices = {"max_fee_per_gas": 10**11, "max_priority_fee_per_gas": 1}
    raw = Transaction.build(**values, **prices).sign(account().private_key).raw
    with upstream.client() as there:
        there.call("eth_sendRawTransaction", hex_bytes(raw))
        there.call("evm_mine")


def in_step(upstream: ServerThread, node: Node) -> None:
    """Waits until the node has the upstream's newest block, and its pending block is the child."""
    head = upstream.server.node.chain.head
    wait_for(lambda: node.chain.head.hash == head.hash, MAX_WAIT, "it did not follow")


def counted(node: Node, address: bytes = COUNTER) -> int:
    return node.chain.layer_of(node.chain.head.hash).storage(address, 7)


LIES: dict[str, tuple[bytes, Endpoint]] = {
    "slot": (COUNTER, faulty.Lies(COUNTER, 7, 1_000)),
    "balance of the sender": (
        COUNTER,
        faulty.AccountLies(account().address, balance=10**9),
    ),
    "balance that is read": (PAYER, faulty.AccountLies(PAYER, balance=101)),
    "code": (COUNTER, faulty.AccountLies(COUNTER, code=OTHER_CODE)),
    "no code": (COUNTER, faulty.AccountLies(COUNTER, code="0x")),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_reported_as_long_as_it_lasts(
    upstream: ServerThread, proxy: Proxy, lie: str
) -> None:
    target, endpoint = LIES[lie]
    node = follower_of(proxy)
    with ServerThread(node) as server, server.client() as here:
        ready = server.server.freshness.ready
        assert wait_for(ready, MAX_WAIT, "it was never ready")
        proxy.endpoint = endpoint
        make_block(upstream, 0, target)
        wait_for(lambda: node.metrics()[UNVERIFIED] > 0, MAX_WAIT, "the lie was not found")
        assert node.metrics()["fork_mismatches_total"] > 0
        assert not ready()
        proxy.endpoint = Endpoint()
        in_step(upstream, node)
        wait_for(ready, MAX_WAIT, "it stays in doubt")
        assert counted(node, target) == 0x25
        make_block(upstream, 1, target)
        in_step(upstream, node)
        assert counted(node, target) == 0x26
        assert int(here.call("eth_getBalance", hex_bytes(target), "latest"), 16) == 100


@pytest.mark.parametrize("lie", LIES)
def test_a_value_that_was_wrong_once_is_replaced(
    upstream: ServerThread, proxy: Proxy, lie: str
) -> None:
    """The node has cached the wrong value before the next block arrives."""
    target, endpoint = LIES[lie]
    node = follower_of(proxy)
    proxy.endpoint = endpoint
    with ServerThread(node) as server, server.client() as here:
        for address in (target, account().address):
            here.call("eth_getBalance", hex_bytes(address), "latest")
        here.call("eth_getStorageAt", hex_bytes(target), "0x7", "latest")
        proxy.endpoint = Endpoint()
        make_block(upstream, 0, target)
        in_step(upstream, node)
        metrics = node.metrics()
        assert metrics["fork_mismatches_total"] == 1 and metrics[UNVERIFIED] == 0
        assert metrics["fork_wrong_values_total"] >= 1
        assert server.server.freshness.ready()
        for nonce in (1, 2):
            make_block(upstream, nonce, target)
            in_step(upstream, node)
        assert counted(node, target) == 0x27
        assert node.metrics()["fork_mismatches_total"] == 1


def test_a_wrong_value_is_not_carried_into_the_next_generation(
    upstream: ServerThread, proxy: Proxy
) -> None:
    node = follower_of(proxy)
    node.remote.follower.limit = 1  # The remote base block then advances with every block.
    proxy.endpoint = faulty.Lies(COUNTER, 7, 1_000)
    with ServerThread(node) as server, server.client() as here:
        here.call("eth_getStorageAt", hex_bytes(COUNTER), "0x7", "latest")
        proxy.endpoint = Endpoint()
        for nonce in range(5):
            make_block(upstream, nonce)
            in_step(upstream, node)
        assert counted(node) == 0x29
        assert node.metrics()["fork_mismatches_total"] == 1


def test_a_machine_that_lags_moves_no_head(upstream: ServerThread, proxy: Proxy) -> None:
    """The endpoint is a load balancer with two nodes, one of them two blocks behind."""
    node = follower_of(proxy)
    with ServerThread(node) as server, upstream.client() as there:
        for nonce in range(3):
            make_block(upstream, nonce)
        in_step(upstream, node)
        chain, left = upstream.server.node.chain, []
        node.chain.on_head(lambda change: left.extend(change.removed))
        number = chain.head.number
        old = chain.block_by_number(number - 2)
        assert old is not None
        newer = [hex(number), hex(number - 1)]
        newer += [hex_bytes(chain.canonical_hash(each) or b"") for each in (number, number - 1)]
        proxy.endpoint = faulty.OldHead(number - 2, hex_bytes(old.hash), newer)
        stale = "upstream_stale_heads_total"
        wait_for(lambda: node.metrics()[stale] >= 3, MAX_WAIT, "no old head was reported")
        make_block(upstream, 3)
        in_step(upstream, node)
        assert there.call("eth_blockNumber") == hex(node.chain.head.number)
        assert not left
        assert counted(node) == 0x28
        assert server.server.freshness.ready()
        assert node.metrics()["fork_mismatches_total"] == 0


def test_a_reorganisation_through_the_proxy_is_followed(
    upstream: ServerThread, proxy: Proxy
) -> None:
    """No request reads a value of the removed blocks."""
    node = follower_of(proxy)
    with ServerThread(node) as server, upstream.client() as there:
        make_block(upstream, 0)
        in_step(upstream, node)
        snapshot = there.call("evm_snapshot")
        for nonce in (1, 2):
            make_block(upstream, nonce)
        in_step(upstream, node)
        assert counted(node) == 0x27
        there.call("evm_revert", snapshot)
        there.call("evm_increaseTime", 100)
        make_block(upstream, 1, PAYER)
        for nonce in (2, 3):
            make_block(upstream, nonce)
        in_step(upstream, node)
        assert (counted(node), counted(node, PAYER)) == (0x27, 0x25)
        assert node.metrics()["fork_mismatches_total"] == 0
        assert server.server.freshness.ready()


def test_an_endpoint_that_fails_for_a_while_is_caught_up_with(
    upstream: ServerThread, proxy: Proxy
) -> None:
    node = follower_of(proxy)
    with ServerThread(node) as server, server.client() as here:
        proxy.endpoint = faulty.Fails(count=1 << 30)
        for nonce in range(3):
            make_block(upstream, nonce)
        failed = "upstream_reconnects_total"
        wait_for(lambda: node.metrics().get(failed, 0) > 0, MAX_WAIT, "nothing failed")
        proxy.endpoint = Endpoint()
        in_step(upstream, node)
        slot = here.call("eth_getStorageAt", hex_bytes(COUNTER), "0x7", "latest")
        assert slot == hex_word(0x27)
