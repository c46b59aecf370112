"""Tests forks of OP-stack chains: the rules by chain id and block, deposits, and L1 fees."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from fastevm import EVM
from fastevm.bench.node.launch import ServerThread
from fastevm.core.execution.op_stack.predeploys import FEE_VAULTS, L1_BLOCK
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.hex import hex_bytes
from fastevm.fork import RemoteBlock, RemoteSource, replay, rules_of
from fastevm.fork.transaction_replay import differences
from fastevm.node import Mining, dev_node, forked_node
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.remote.options import ForkOptions
from fastevm.rpc_client.blocking import JsonRpcClient

ALICE, BOB = b"\xa1" * 20, b"\xb0" * 20
OP_MAINNET, NOBODYS, DEVELOPMENT = 10, 424_242, 31_337
L1_FEES = ("l1Fee", "l1GasPrice", "l1BaseFeeScalar", "l1BlobBaseFee", "l1BlobBaseFeeScalar")


@dataclass(frozen=True, slots=True)
class Upstream:
    """An OP-stack chain whose block 2 has a deposit and a payment."""

    server: ServerThread
    chain_id: int
    deposit: str
    payment: str

    @property
    def url(self) -> str:
        return self.server.url()

    def client(self) -> JsonRpcClient:
        return self.server.client("geth")


def payment(chain_id: int, nonce: int) -> str:
    """Returns a signed payment of 1 wei to Bob."""
    prices = {"max_fee_per_gas": 10**10, "max_priority_fee_per_gas": 1}
    made = Transaction.build(
        to=BOB, value=1, gas_limit=21_000, chain_id=chain_id, nonce=nonce, **prices
    )
    return hex_bytes(made.sign(dev_accounts(1)[0].private_key).raw)


@pytest.fixture(scope="module", params=[OP_MAINNET, NOBODYS, DEVELOPMENT])
def upstream(request: pytest.FixtureRequest) -> Iterator[Upstream]:
    chain_id = request.param
    node = dev_node(mining=Mining.MANUAL, accounts=1, chain_id=chain_id, op_fork="karst")
    with ServerThread(node) as server, server.client("geth") as client:
        client.call("evm_mine")
        wanted = {"from": hex_bytes(ALICE), "to": hex_bytes(BOB), "mint": "0x7", "value": "0x5"}
        deposit = client.call("fastevm_deposit", wanted)
        paid = client.call("eth_sendRawTransaction", payment(chain_id, 0))
        client.call("evm_mine")
        client.call("evm_mine")
        yield Upstream(server, chain_id, deposit, paid)


def test_rules_are_those_of_the_op_stack(upstream: Upstream) -> None:
    evm = EVM.fork(upstream.url, cache=False)
    assert evm.schedule.name == "Karst"
    assert evm.chain_id == upstream.chain_id
    assert evm.balance(BOB) == 6
    with RemoteSource.open(upstream.url, cache=False) as source:
        early = rules_of(source).activations.at(105_235_063, 1_700_000_000)
    assert early.name == ("Regolith" if upstream.chain_id == OP_MAINNET else "Karst")


@pytest.mark.parametrize("name", ["deposit", "payment"])
def test_a_transaction_is_replayed(upstream: Upstream, name: str) -> None:
    found = replay(upstream.url, getattr(upstream, name), cache=False)
    assert found.matches, found.differences
    assert found.index == ("deposit", "payment").index(name) + 1
    assert found.receipt.tx_type == (0x7E if name == "deposit" else 2)
    assert found.trace["to"] == hex_bytes(BOB)
    tracer = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}
    with upstream.client() as client:
        said = client.call("debug_traceTransaction", getattr(upstream, name), tracer)
    assert found.state_difference["post"] == said["post"]


def test_a_block_gives_the_receipts_of_the_chain(upstream: Upstream) -> None:
    with RemoteSource.open(upstream.url, cache=False) as source:
        block = RemoteBlock(source, rules_of(source), 2)
        said = source.receipts(block.found)
        receipts = block.receipts()
    assert [receipt.tx_type for receipt in receipts] == [0x7E, 0x7E, 2]
    for own, other in zip(receipts, said, strict=True):
        assert differences(own, other) == []
    assert receipts[1].deposit_nonce == int(said[1]["depositNonce"], 16)


def test_the_state_in_front_of_a_payment_has_the_deposits(upstream: Upstream) -> None:
    assert EVM.fork(upstream.url, 2, tx_index=1, cache=False).balance(BOB) == 0
    assert EVM.fork(upstream.url, 2, tx_index=2, cache=False).balance(BOB) == 5


@pytest.fixture
def forked(upstream: Upstream) -> Iterator[JsonRpcClient]:
    fork = ForkOptions(urls=(upstream.url,), cache=False)
    with ServerThread(forked_node(fork, accounts=1, mining=Mining.MANUAL)) as server:
        yield server.client("geth")


def test_a_node_goes_on_with_deposits_and_fees_of_l1(
    upstream: Upstream, forked: JsonRpcClient
) -> None:
    with upstream.client() as there:
        for tx_hash in (upstream.deposit, upstream.payment):
            expected = there.call("eth_getTransactionReceipt", tx_hash)
            assert forked.call("eth_getTransactionReceipt", tx_hash) == expected
        tx_hash = forked.call("eth_sendRawTransaction", payment(upstream.chain_id, 1))
        forked.call("evm_mine")
        block = forked.call("eth_getBlockByNumber", "latest", True)
        first, paid = block["transactions"]
        assert (first["type"], first["to"]) == ("0x7e", hex_bytes(L1_BLOCK))
        assert paid["hash"] == tx_hash
        receipt = forked.call("eth_getTransactionReceipt", tx_hash)
        assert receipt["status"] == "0x1"
        before = there.call("eth_getTransactionReceipt", upstream.payment)
        assert {name for name in L1_FEES if int(receipt[name], 16)} == set(L1_FEES)
        assert receipt["l1BaseFeeScalar"] == before["l1BaseFeeScalar"]
        vault = ("eth_getBalance", hex_bytes(FEE_VAULTS[2]))
        paid_fees = int(forked.call(*vault, "latest"), 16) - int(there.call(*vault, "0x3"), 16)
        assert paid_fees == int(receipt["l1Fee"], 16) > 0


def test_a_node_takes_deposits(forked: JsonRpcClient) -> None:
    wanted = {"from": hex_bytes(ALICE), "to": hex_bytes(BOB), "mint": "0x9", "value": "0x9"}
    tx_hash = forked.call("fastevm_deposit", wanted)
    forked.call("evm_mine")
    receipt = forked.call("eth_getTransactionReceipt", tx_hash)
    assert (receipt["status"], receipt["type"]) == ("0x1", "0x7e")
    assert forked.call("eth_getBalance", hex_bytes(BOB), "latest") == "0xf"


def test_a_node_begins_in_front_of_a_payment(upstream: Upstream) -> None:
    fork = ForkOptions(
        urls=(upstream.url,), cache=False, transaction=bytes.fromhex(upstream.payment[2:])
    )
    node = forked_node(fork, accounts=0, mining=Mining.MANUAL)
    with ServerThread(node) as server, server.client("geth") as here:
        block: Any = here.call("eth_getBlockByNumber", "latest", True)
        assert [item["type"] for item in block["transactions"]] == ["0x7e", "0x7e"]
        assert here.call("eth_getBalance", hex_bytes(BOB), "latest") == "0x5"
        here.call("eth_sendRawTransaction", payment(upstream.chain_id, 0))
        here.call("evm_mine")
        assert here.call("eth_getBalance", hex_bytes(BOB), "latest") == "0x6"


def test_a_fork_of_another_name_is_taken(upstream: Upstream) -> None:
    assert EVM.fork(upstream.url, cache=False, hardfork="isthmus").schedule.name == "Isthmus"
    fork = ForkOptions(urls=(upstream.url,), cache=False, hardfork="isthmus")
    node = forked_node(fork, accounts=0, mining=Mining.MANUAL)
    assert node.chain.schedule_of(node.chain.head.hash).name == "Isthmus"
