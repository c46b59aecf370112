"""Tests a forked node over HTTP in every mining mode."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread, wait_for
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.hex import hex_bytes, hex_word
from fastevm.errors import ForkError
from fastevm.node import Mining, Node, dev_node, forked_node
from fastevm.node.dev_accounts import DevAccount, dev_accounts
from fastevm.node.remote.options import ForkOptions
from fastevm.rpc_client.messages import RpcRefusal
from tests.max_wait import MAX_WAIT

COUNTER, READER, BOB = b"\xc0" * 20, b"\xc1" * 20, b"\xb0" * 20
COUNT_SLOT = 7
# Increments slot 7, and logs and returns the new value.
COUNTER_CODE = bytes.fromhex("6007546001018060075560005260206000a000")
# Returns BLOCKHASH of the number in the calldata.
READER_CODE = bytes.fromhex("6000354060005260206000f3")


@pytest.fixture(scope="module")
def upstream() -> Iterator[ServerThread]:
    """Provides an upstream with twelve blocks.

    Its counter is at 41, and the last five blocks contain payments.
    """
    with ServerThread(dev_node(mining=Mining.MANUAL, accounts=3)) as server, server.client() as it:
        for address, code in ((COUNTER, COUNTER_CODE), (READER, READER_CODE)):
            it.call("anvil_setCode", hex_bytes(address), hex_bytes(code))
        it.call("anvil_setStorageAt", hex_bytes(COUNTER), "0x7", "0x24")
        it.call("anvil_mine", 7)
        for nonce in range(5):
            it.call("eth_sendRawTransaction", hex_bytes(counting(accounts()[2], nonce)))
            it.call("evm_mine")
        yield server


def accounts() -> tuple[DevAccount, ...]:
    return tuple(dev_accounts(3))


def counting(account: DevAccount, nonce: int, **fields: Any) -> bytes:
    """Returns a signed transaction that calls the counter."""
    values = {"to": COUNTER, "gas_limit": 100_000, "chain_id": 31_337, "nonce": nonce}
    prices = {"max_fee_per_gas": 10**11, "max_priority_fee_per_gas": 1}
    transaction = Transaction.build(**{**values, **prices, **fields})
    return transaction.sign(account.private_key).raw


def fork_of(upstream: ServerThread, mining: Mining, **options: Any) -> Node:
    fork = ForkOptions(urls=(upstream.url(),), cache=False, **options)
    return forked_node(fork, accounts=2, mining=mining, block_time_ms=1_000, slice_interval_ms=100)


@pytest.fixture(params=[Mining.MANUAL, Mining.INSTANT, Mining.CADENCE])
def forked(request: pytest.FixtureRequest, upstream: ServerThread) -> Iterator[ServerThread]:
    with ServerThread(fork_of(upstream, request.param)) as server:
        yield server


@pytest.fixture
def still(upstream: ServerThread) -> Iterator[ServerThread]:
    with ServerThread(fork_of(upstream, Mining.MANUAL)) as server:
        yield server


def mined(server: ServerThread, tx_hash: str) -> Any:
    """Returns the receipt of a transaction in a canonical block."""
    with server.client("geth") as client:
        if server.server.node.mining is Mining.MANUAL:
            client.call("evm_mine")

        def receipt() -> Any:
            found = client.call("eth_getTransactionReceipt", tx_hash)
            return found if found is not None and int(found["blockHash"], 16) else None

        return wait_for(receipt, MAX_WAIT, "the transaction was not mined")


def test_a_transaction_goes_on_from_the_state_of_the_upstream(
    upstream: ServerThread, forked: ServerThread
) -> None:
    with upstream.client() as there, forked.client() as here:
        sender = hex_bytes(accounts()[2].address)
        assert here.call("eth_getTransactionCount", sender, "latest") == "0x5"
        nonce = 5
        for _ in range(2):
            raw = hex_bytes(counting(accounts()[2], nonce))
            receipt = mined(forked, here.call("eth_sendRawTransaction", raw))
            assert receipt["status"] == "0x1"
            nonce += 1
        assert receipt["logs"][0]["data"] == hex_word(0x24 + nonce)
        slot = ("eth_getStorageAt", hex_bytes(COUNTER), "0x7")
        assert here.call(*slot, "latest") == hex_word(0x24 + nonce)
        assert here.call(*slot, "0xc") == there.call(*slot, "latest") == hex_word(0x24 + 5)
        assert here.call(*slot, "0x9") == hex_word(0x24 + 2)


def test_accounts_have_funds_above_the_fork_only(
    upstream: ServerThread, still: ServerThread
) -> None:
    address = hex_bytes(accounts()[0].address)
    with upstream.client() as there, still.client() as here:
        there.call("anvil_setBalance", address, "0x5")
        there.call("evm_mine")
        try:
            later = ServerThread(fork_of(upstream, Mining.MANUAL))
            with later, later.client() as client:
                assert client.call("eth_getBalance", address, "latest") == hex(10**22)
            assert there.call("eth_getBalance", address, "latest") == "0x5"
            assert here.call("eth_getBalance", address, "latest") == hex(10**22)
        finally:
            there.call("anvil_setBalance", address, hex(10**22))


def test_blocks_transactions_and_logs_are_one_chain(
    upstream: ServerThread, still: ServerThread
) -> None:
    with upstream.client() as there, still.client() as here:
        first = int(here.call("eth_blockNumber"), 16)
        raw = hex_bytes(counting(accounts()[0], 0))
        receipt = mined(still, here.call("eth_sendRawTransaction", raw))
        assert int(receipt["blockNumber"], 16) == first + 1
        blocks = [
            here.call("eth_getBlockByNumber", hex(number), True) for number in range(first + 2)
        ]
        for parent, child in pairwise(blocks):
            assert child["parentHash"] == parent["hash"]
        assert blocks[first] == there.call("eth_getBlockByNumber", hex(first), True)
        old = blocks[10]["transactions"][0]["hash"]
        for method in ("eth_getTransactionByHash", "eth_getTransactionReceipt"):
            assert here.call(method, old) == there.call(method, old) is not None
        trace = here.call("debug_traceTransaction", old, {"tracer": "callTracer"})
        assert trace["to"] == hex_bytes(COUNTER)
        logs = here.call("eth_getLogs", {"fromBlock": "earliest", "address": hex_bytes(COUNTER)})
        assert [int(log["data"], 16) for log in logs] == [0x24 + n for n in range(1, 7)]
        history = here.call("eth_feeHistory", 4, "latest", [50])
        assert history["oldestBlock"] == hex(first - 2)
        assert history["baseFeePerGas"][:4] == [b["baseFeePerGas"] for b in blocks[-4:]]


def test_hashes_of_blocks_before_the_fork_are_those_of_the_upstream(still: ServerThread) -> None:
    with still.client() as here:
        here.call("anvil_mine", 2)
        for number in range(2, 14):
            data = hex_word(number)
            found = here.call("eth_call", {"to": hex_bytes(READER), "data": data}, "latest")
            assert found == here.call("eth_getBlockByNumber", hex(number), False)["hash"]


def test_what_is_known_is_not_asked_again(upstream: ServerThread) -> None:
    node = fork_of(upstream, Mining.MANUAL)
    assert node.history is not None
    with ServerThread(node) as server, server.client() as client:
        reads = [
            ("eth_getBalance", hex_bytes(b"\x77" * 20), "latest"),
            ("eth_call", {"to": hex_bytes(COUNTER)}, "latest"),
        ]
        first = [client.call(*read) for read in reads]
        counters = node.history.source.counters.as_dict()
        assert [client.call(*read) for read in reads * 3] == first * 3
        assert node.history.source.counters.as_dict() == counters


SIMULATION = {"blockStateCalls": [{"calls": [{"to": hex_bytes(COUNTER)}]}]}


@pytest.mark.parametrize(
    "cold",
    [
        ("eth_getBalance", hex_bytes(b"\x78" * 20), "latest"),
        ("eth_call", {"to": hex_bytes(COUNTER)}, "latest"),
        ("eth_simulateV1", SIMULATION, "latest"),
        ("eth_getBalance", hex_bytes(BOB), "0x2"),
        ("eth_getTransactionReceipt", hex_bytes(b"\x79" * 32)),
        ("eth_getLogs", {"fromBlock": "0x1"}),
        ("eth_sendRawTransaction",),
    ],
    ids=lambda cold: cold[0],
)
def test_the_loop_serves_others_while_the_upstream_is_asked(
    upstream: ServerThread, cold: tuple[Any, ...]
) -> None:
    node = fork_of(upstream, Mining.MANUAL)
    assert node.history is not None
    if cold[0] == "eth_sendRawTransaction":
        cold = (cold[0], hex_bytes(counting(accounts()[2], 5)))
    held = HeldFetch(node.history.source)
    with ServerThread(node) as server, server.client() as client, ThreadPoolExecutor(1) as other:
        client.call("eth_blockNumber")
        held.begin()
        waiting = other.submit(server.client().call, *cold)
        try:
            assert held.entered.wait(MAX_WAIT)
            for _ in range(3):
                client.call("eth_chainId")
            assert not waiting.done()
        finally:
            held.released.set()
        waiting.result()


def test_the_clock_goes_on_from_the_fork(upstream: ServerThread) -> None:
    node = fork_of(upstream, Mining.MANUAL, block=9)
    with ServerThread(node) as server, server.client() as client:
        fork = client.call("eth_getBlockByNumber", "latest", False)
        assert fork["number"] == "0x9"
        client.call("evm_mine")
        block = client.call("eth_getBlockByNumber", "latest", False)
        assert int(fork["timestamp"], 16) < int(block["timestamp"], 16)
        assert int(block["timestamp"], 16) <= int(fork["timestamp"], 16) + MAX_WAIT


def test_slices_are_made_while_the_upstream_does_not_answer(upstream: ServerThread) -> None:
    node = fork_of(upstream, Mining.CADENCE)
    assert node.history is not None
    state = node.chain.layer_of(node.chain.head.hash).remote_state
    assert state is not None
    with ServerThread(node) as server, server.client() as client:
        held = HeldFetch(node.history.source)
        held.begin()
        try:
            tx_hash = client.call("eth_sendRawTransaction", hex_bytes(counting(accounts()[1], 0)))
            assert held.entered.wait(MAX_WAIT)
            made = node.metrics()["slices_total"]
            wait_for(
                lambda: node.metrics()["slices_total"] > made + 2, MAX_WAIT, "no slices were made"
            )
        finally:
            held.released.set()
        assert mined(server, tx_hash)["status"] == "0x1"


class HeldFetch:
    """Makes every batch to the upstream wait until ``released`` is set."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.ask = source.session.endpoints.ask
        self.entered, self.released = threading.Event(), threading.Event()

    def begin(self) -> None:
        self.source.session.endpoints.ask = self._ask

    def _ask(self, *args: Any, **options: Any) -> Any:
        self.entered.set()
        assert self.released.wait(MAX_WAIT)
        return self.ask(*args, **options)


def test_proofs_of_blocks_that_were_built_here_are_refused(still: ServerThread) -> None:
    with still.client() as here:
        first = here.call("eth_blockNumber")
        proof = here.call("eth_getProof", hex_bytes(COUNTER), ["0x7"], "latest")
        assert proof["storageProof"][0]["proof"]
        here.call("evm_mine")
        assert here.call("eth_getProof", hex_bytes(COUNTER), ["0x7"], first) == proof
        with pytest.raises(RpcRefusal, match=r"no proofs above block (\d+), .* ask for block \1"):
            here.call("eth_getProof", hex_bytes(COUNTER), ["0x7"], "latest")


def test_a_node_begins_anew_on_a_fork_and_on_a_chain_of_its_own(upstream: ServerThread) -> None:
    node = dev_node(mining=Mining.MANUAL, accounts=2)
    slot = ("eth_getStorageAt", hex_bytes(COUNTER), "0x7", "latest")
    with ServerThread(node) as server, server.client() as client:
        assert client.call("anvil_nodeInfo")["forkConfig"]["forkUrl"] is None
        first = client.call("hardhat_metadata")
        assert first["forkedNetwork"] is None
        snapshot = client.call("evm_snapshot")
        forking = {"jsonRpcUrl": upstream.url(), "blockNumber": 9}
        assert client.call("anvil_reset", {"forking": forking}) is None
        assert client.call(*slot) == hex_word(0x24 + 2)
        assert client.call("eth_blockNumber") == "0x9"
        assert client.call("evm_revert", snapshot) is False
        info = client.call("anvil_nodeInfo")
        assert info["forkConfig"] == {
            "forkUrl": upstream.url(), "forkBlockNumber": 9, "forkRetryBackoff": 1000,
        }  # fmt: skip
        assert info["currentBlockNumber"] == "0x9"
        second = client.call("anvil_metadata")
        assert second["forkedNetwork"]["forkBlockNumber"] == 9
        assert second["instanceId"] != first["instanceId"]
        mined(server, client.call("eth_sendRawTransaction", hex_bytes(counting(accounts()[0], 0))))
        assert client.call(*slot) == hex_word(0x24 + 3)
        assert client.call("hardhat_reset", {"blockNumber": "0xa"}) is True
        assert client.call(*slot) == hex_word(0x24 + 3)
        assert client.call("anvil_setRpcUrl", upstream.url()) is None
        assert client.call("eth_getBalance", hex_bytes(BOB), "latest") == "0x0"
        assert client.call("anvil_reset") is None
        assert client.call("eth_blockNumber") == "0x0"
        assert client.call(*slot) == hex_word(0)
        assert client.call("anvil_nodeInfo")["forkConfig"]["forkBlockNumber"] is None
        assert client.call("hardhat_setRpcUrl", upstream.url()) is None
        with pytest.raises(RpcRefusal, match="jsonRpcUrl"):
            client.call("anvil_reset", {"forking": {"blockNumber": 1}})


def test_a_reset_that_fails_changes_nothing(still: ServerThread) -> None:
    with still.client() as client:
        client.call("evm_mine")
        head = client.call("eth_getBlockByNumber", "latest", False)
        for wanted in ({"blockNumber": 10**6}, {"jsonRpcUrl": "nonsense"}):
            with pytest.raises(RpcRefusal):
                client.call("anvil_reset", {"forking": wanted})
        assert client.call("eth_getBlockByNumber", "latest", False) == head
        assert client.call("evm_mine") == "0x0"


def test_a_chain_begins_in_front_of_a_transaction() -> None:
    with ServerThread(dev_node(mining=Mining.MANUAL, accounts=3)) as there, there.client() as it:
        it.call("anvil_setCode", hex_bytes(COUNTER), hex_bytes(COUNTER_CODE))
        it.call("anvil_mine", 3)
        raws = [counting(account, 0) for account in accounts()]
        hashes = [it.call("eth_sendRawTransaction", hex_bytes(raw)) for raw in raws]
        it.call("evm_mine")
        block = it.call("eth_getBlockByNumber", "latest", False)
        assert set(block["transactions"]) == set(hashes)
        third = bytes.fromhex(block["transactions"][2][2:])
        node = fork_of(there, Mining.MANUAL, transaction=third)
        with ServerThread(node) as server, server.client() as here:
            head = here.call("eth_getBlockByNumber", "latest", False)
            assert head["number"] == block["number"]
            assert head["parentHash"] == block["parentHash"]
            assert head["timestamp"] == block["timestamp"]
            assert head["transactions"] == block["transactions"][:2]
            slot = ("eth_getStorageAt", hex_bytes(COUNTER), "0x7")
            assert here.call(*slot, "latest") == hex_word(2)
            for known in block["transactions"][:2]:
                mine = here.call("eth_getTransactionReceipt", known)
                assert mine["gasUsed"] == it.call("eth_getTransactionReceipt", known)["gasUsed"]
        with pytest.raises(ForkError, match="no mined transaction"):
            fork_of(there, Mining.MANUAL, transaction=b"\x01" * 32)
