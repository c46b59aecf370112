"""Tests nodes that follow and fork a Base chain with ``--fork-url``."""

from collections.abc import Iterator
from typing import Any

import pytest

from fastevm import EVM
from fastevm.bench.node.launch import ServerThread, wait_for
from fastevm.bench.remote.proxy import Proxy
from fastevm.core.execution.op_stack.base_time import timestamp_millis
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.hex import hex_bytes
from fastevm.errors import ForkError
from fastevm.node import Mining, Node, dev_node
from fastevm.node.dev_accounts import dev_accounts
from tests.max_wait import MAX_WAIT
from tests.rpc.base.chain import (
    BLOCKLIST,
    FACTORY,
    STABLECOIN,
    Base,
    call_data,
    error_of,
    topic_of,
)
from tests.unit.rpc.test_command import node_of

BASE_CHAIN_ID = 8_453
# Fork -> a timestamp at which it is the newest fork of Base.
TIMES = {"beryl": 1_786_000_000, "cobalt": 1_792_000_000, "denim": 1_795_000_000}
FOUND = 1_000  # units of the token that the user holds
PAY = "transferWithMemo(address,uint256,bytes32)"
MEMO = b"\x77" * 32
PRICE = 10**10  # gas price in wei
EVENTS = [topic_of("Transfer(address,address,uint256)"), topic_of("Memo(address,bytes32)")]


@pytest.fixture(params=TIMES)
def upstream(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    """Provides an upstream with a Base fork's rules. Before Denim, it publishes slices."""
    fork = request.param
    node = dev_node(accounts=3, op_fork=fork, chain_id=BASE_CHAIN_ID, timestamp=TIMES[fork])
    if not node.chain.has_base_time:
        node.development.time.set(TIMES[fork])
    with ServerThread(node) as server:
        yield server


@pytest.fixture
def chain(upstream: ServerThread) -> Iterator[Base]:
    with upstream.client() as client:
        schedule = upstream.server.node.chain.schedule_of(upstream.server.node.chain.head.hash)
        yield Base(client, schedule.name.lower())


@pytest.fixture
def token(chain: Base, upstream: ServerThread) -> str:
    """Provides a stablecoin that is deployed in a canonical block. The user holds some of it."""
    made = chain.token(STABLECOIN)
    chain.send(chain.owner, made, "mint(address,uint256)", chain.user, FOUND)
    policy = chain.policy(BLOCKLIST, chain.dave)
    chain.gate(made, "TRANSFER_RECEIVER", policy)
    sent = int(chain.client.call("eth_getTransactionCount", chain.owner, "pending"), 16)
    count = ("eth_getTransactionCount", chain.owner, "latest")
    wait_for(lambda: int(chain.client.call(*count), 16) >= sent, MAX_WAIT, "in no block")
    return made


def followed(upstream: ServerThread, *options: str) -> Node:
    """Returns a node as ``fastevm node --follow`` makes it.

    It reads the feed if there are slices.
    """
    url = upstream.url()
    node: Node = upstream.server.node
    if not node.chain.has_base_time:
        options += ("--preconf-url", url.replace("http", "ws") + "/feed")
    found: Node = node_of("--fork-url", url, "--follow", "--poll-interval", "20", *options)
    return found


def payment(chain: Base, token: str, nonce: int, amount: int) -> str:
    made = Transaction.build(
        to=bytes.fromhex(token[2:]),
        data=call_data(PAY, chain.bob, amount, MEMO),
        gas_limit=200_000,
        chain_id=BASE_CHAIN_ID,
        nonce=nonce,
        max_fee_per_gas=10**10,
        max_priority_fee_per_gas=10**6,
    )
    return hex_bytes(made.sign(dev_accounts(2)[1].private_key).raw)


def balance(client: Any, token: str, holder: str, block: str) -> int:
    call = {"to": token, "input": hex_bytes(call_data("balanceOf(address)", holder))}
    return int(client.call("eth_call", call, block), 16)


def test_tokens_move_on_a_node_that_follows_base(
    upstream: ServerThread, chain: Base, token: str
) -> None:
    node = followed(upstream, "--chain", "base")
    with ServerThread(node) as server, server.client() as here:
        if not node.chain.has_base_time:
            wait_for(node.pending, MAX_WAIT, "nothing is pending")
        for nonce in range(3):
            raw = payment(chain, token, nonce, 5)
            receipt = here.call("eth_sendRawTransactionSync", raw)
            assert receipt["status"] == "0x1"
            assert [log["topics"][0] for log in receipt["logs"]] == EVENTS
            assert balance(here, token, chain.bob, "pending") == 5 * nonce + 5
        found = ("eth_getTransactionReceipt", receipt["transactionHash"])
        mine = wait_for(lambda: here.call(*found), MAX_WAIT, "no block has it")
        theirs = wait_for(lambda: chain.client.call(*found), MAX_WAIT, "no block has it")
        assert mine == theirs
        number = mine["blockNumber"]
        block = ("eth_getBlockByNumber", number, True)
        assert here.call(*block) == chain.client.call(*block)
        assert balance(here, token, chain.bob, number) == 15
        call = {"from": chain.user, "to": token}
        call["input"] = hex_bytes(call_data("transfer(address,uint256)", chain.dave, 1))
        outcome = here.call("eth_simulateV1", {"blockStateCalls": [{"calls": [call]}]}, "latest")
        (refused,) = outcome[0]["calls"]
        assert refused["status"] == "0x0"
        assert error_of(bytes.fromhex(refused["returnData"][2:]))[0] == "PolicyForbids"
        assert node.metrics()["fork_mismatches_total"] == 0


@pytest.mark.parametrize("upstream", ["denim"], indirect=True)
def test_calls_on_pending_run_in_a_forecast_of_the_next_block(upstream: ServerThread) -> None:
    node = followed(upstream)
    call = {
        "to": "0x4200000000000000000000000000000000000030",
        "input": hex_bytes(call_data("timestampMs()")),
    }
    with ServerThread(node) as server, server.client() as here:
        wait_for(node.pending, MAX_WAIT, "nothing is forecast")
        wait_for(server.server.freshness.ready, MAX_WAIT, "it is not ready")

        def parent() -> bytes | None:
            pending = node.pending()
            return None if pending is None else pending.header.parent_hash

        def forecast_is_used() -> bool:
            """Returns False if the head changed during the check, so that it must be repeated."""
            before = parent()
            later = here.call("eth_call", call, "pending")
            if before is None or parent() != before:
                return False
            head = node.chain.block_by_hash(before)
            latest = here.call("eth_getBlockByNumber", hex(head.number), False)
            assert int(later, 16) >= int(latest["timestampMs"], 16) + 200
            return True

        for _ in range(5):
            wait_for(forecast_is_used, MAX_WAIT, "no call runs between two blocks")
            block = here.call("eth_getBlockByNumber", "pending", False)
            assert int(block["hash"], 16) and int(block["number"], 16) <= node.chain.head.number
        assert here.call("eth_getBlockReceipts", "pending") is not None


@pytest.mark.parametrize("fork", ["cobalt", "denim"])
def test_a_node_with_the_whole_state_forecasts_blocks_that_replace_slices(fork: str) -> None:
    options: dict[str, Any] = {"accounts": 1, "op_fork": fork, "timestamp": TIMES[fork]}
    building = dev_node(mining=Mining.MANUAL, **options)
    with ServerThread(building) as theirs:
        node = dev_node(mining=Mining.NEVER, **options)
        feed = theirs.url().replace("http", "ws") + "/feed"
        node.follow(theirs.url(), feed if fork == "denim" else None, poll_ms=20)
        with ServerThread(node) as server:
            building.mine(3)
            head = building.chain.head
            wait_for(lambda: node.chain.head.hash == head.hash, MAX_WAIT, "it does not follow")
            wait_for(server.server.freshness.ready, MAX_WAIT, "it is not ready")
            pending = node.pending()
            if fork == "cobalt":
                assert pending is None
                return
            assert pending is not None and pending.header.parent_hash == head.hash
            before = timestamp_millis(head.header, head.transactions)
            assert before is not None
            assert timestamp_millis(pending.header, pending.transactions) == before + 200
            assert (node.pre_confirms, node.slice_cadence_ms) == (False, None)


@pytest.mark.parametrize("upstream", ["denim"], indirect=True)
def test_another_chain_than_the_named_one_is_refused(upstream: ServerThread) -> None:
    with pytest.raises(ForkError, match="8453"):
        followed(upstream, "--chain", "base-sepolia")


def test_a_fork_runs_calls_of_tokens_in_few_round_trips(
    upstream: ServerThread, chain: Base, token: str
) -> None:
    calls = {
        "balance": (token, call_data("balanceOf(address)", chain.user)),
        "payment": (token, call_data(PAY, chain.bob, 5, MEMO)),
        "creation": (FACTORY, chain.creation(STABLECOIN, b"\x05" * 32)),
    }
    for name, (to, data) in calls.items():
        with Proxy(upstream.url()) as proxy:
            evm = EVM.fork(proxy.url, cache=False)
            assert evm.chain_id == BASE_CHAIN_ID
            assert evm.schedule.name.lower() == chain.fork
            proxy.count_anew()
            assert evm.call(to, data, sender=chain.user).success, name
            assert proxy.count_anew().round_trips == 1, name
        with Proxy(upstream.url()) as proxy:
            evm = EVM.fork(proxy.url, cache=False)
            proxy.count_anew()
            done = evm.transact(to, data, sender=chain.user, gas_price=PRICE)
            assert done.success, name
            assert proxy.count_anew().round_trips <= 3, name
            if name == "payment":
                data = call_data("balanceOf(address)", chain.bob)
                assert int.from_bytes(evm.call(token, data).output, "big") == 5


def test_many_payments_on_a_fork_share_their_round_trips(
    upstream: ServerThread, chain: Base, token: str
) -> None:
    with Proxy(upstream.url()) as proxy:
        evm = EVM.fork(proxy.url, cache=False)
        proxy.count_anew()
        for amount in range(1, 30):
            data = call_data(PAY, chain.bob, amount, MEMO)
            done = evm.transact(token, data, sender=chain.user, gas_price=PRICE)
            assert done.success
        assert proxy.count_anew().round_trips <= 4
