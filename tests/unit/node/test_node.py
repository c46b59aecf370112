"""Tests that slices of a development node become blocks, and that rejections change nothing."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import InvalidTransaction, TransactionDecodeError
from fastevm.node import Mining, Node, dev_node
from fastevm.node.dev_chain import DEV_BALANCE, DEV_CHAIN_ID
from fastevm.node.production import PendingBlock
from tests.max_wait import MAX_WAIT

BOB = b"\xb0" * 20


@pytest.fixture
def node() -> Iterator[Node]:
    made = dev_node(accounts=2, block_time_ms=400, slice_interval_ms=50)
    made.producer.start()
    yield made
    made.producer.stop()


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MAX_WAIT
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


def payment(node: Node, nonce: int, **fields) -> bytes:
    values = {"to": BOB, "value": 5, "gas_limit": 21_000, "chain_id": DEV_CHAIN_ID, "nonce": nonce}
    prices = {"max_fee_per_gas": 10**11, "max_priority_fee_per_gas": 1}
    key = node.accounts[0].private_key
    return Transaction.build(**{**values, **prices, **fields}).sign(key).raw


def test_a_submitted_transaction_is_pending_then_canonical(node: Node) -> None:
    slices: list[PendingBlock] = []
    node.on_slice(lambda pending, first: slices.append(pending))
    tx_hash = node.submit(payment(node, 0))
    eventually(lambda: any(pending.transactions for pending in slices))
    pending = next(pending for pending in slices if pending.transactions)
    assert pending.layer.balance(BOB) == 5
    assert pending.layer.nonce(node.accounts[0].address) == 1
    assert pending.receipts[0].status == 1
    assert pending.header.gas_used == 21_000
    eventually(lambda: node.chain.locate(tx_hash) is not None)
    block, index = node.chain.locate(tx_hash)
    assert index == 0
    assert node.chain.layer_of(block.hash).balance(BOB) == 5
    assert len(node.pool) == 0


def test_pending_is_the_child_of_the_head_and_empty_slices_are_published(node: Node) -> None:
    seen = []
    node.on_slice(lambda pending, _: seen.append((pending.header.number, pending.slice_index)))
    eventually(lambda: len({number for number, _ in seen}) >= 3)
    first = min(number for number, _ in seen)
    assert {index for number, index in seen if number == first + 1} >= {1, 2, 3, 4, 5, 6}


def test_sealed_blocks_are_valid_for_another_node(node: Node) -> None:
    for nonce in range(3):
        node.submit(payment(node, nonce))
    eventually(lambda: node.chain.head.number >= 3)
    other = type(node.chain)(node.chain.config, node.chain.genesis, genesis_layer(node))
    for number in range(1, node.chain.head.number + 1):
        other.add(node.chain.block_by_number(number).rlp())
    assert other.head.number >= 3


def genesis_layer(node: Node):
    return node.chain.layer_of(node.chain.genesis.hash)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"value": DEV_BALANCE}, "insufficient_funds"),
        ({"gas_limit": 20_000}, "intrinsic_gas"),
        ({"chain_id": 5}, "wrong_chain_id"),
        ({"gas_limit": 2**24 + 1, "max_fee_per_gas": 10**9}, "gas_limit_too_high"),
        ({"gas_limit": 2**24}, "fee_above_cap"),
        ({"max_priority_fee_per_gas": 0}, "tip_below_minimum"),
    ],
)
def test_what_no_block_could_hold_is_refused(node: Node, fields: dict, code: str) -> None:
    with pytest.raises(InvalidTransaction) as refused:
        node.submit(payment(node, 0, **fields))
    assert refused.value.code == code
    assert len(node.pool) == 0


def test_unprotected_and_undecodable_transactions_are_refused(node: Node) -> None:
    legacy = Transaction.build(gas_price=10**11, gas_limit=21_000, to=BOB)
    with pytest.raises(InvalidTransaction, match="replay-protected"):
        node.submit(legacy.sign(node.accounts[0].private_key).raw)
    with pytest.raises(TransactionDecodeError):
        node.submit(b"\x02\xc0")


def test_an_unprotected_transaction_is_executed_where_it_is_allowed() -> None:
    node = dev_node(mining=Mining.INSTANT, allows_unprotected=True)
    legacy = Transaction.build(gas_price=10**11, gas_limit=21_000, to=BOB, value=1)
    node.submit(legacy.sign(node.accounts[0].private_key).raw)
    assert len(node.chain.head.transactions) == 1


def test_a_nonce_already_pre_confirmed_is_too_low(node: Node) -> None:
    node.submit(payment(node, 0))
    eventually(lambda: node.chain.head.transactions or len(node.pool) == 0)
    with pytest.raises(InvalidTransaction, match="nonce too low"):
        node.submit(payment(node, 0, value=6))


def test_metrics_say_which_code_computes_hashes_and_signatures(node: Node) -> None:
    values = node.metrics()
    assert values["code_replaced"] == 0
    assert values["signature_lanes_open"] in (0, 1)
    computed = [name for name in values if name.startswith("code_in_use{")]
    assert any('algorithm="keccak256",' in name for name in computed)
    assert any('algorithm="bn254",' in name for name in computed)


def test_an_instant_node_makes_a_block_for_each_transaction_in_the_order_of_nonces() -> None:
    node = dev_node(accounts=2, mining=Mining.INSTANT)
    node.submit(payment(node, 1))
    assert node.chain.head.number == 0, "a block was made behind a gap"
    node.submit(payment(node, 0))
    blocks = [node.chain.block_by_number(number) for number in (1, 2)]
    assert [[transaction.nonce for transaction in block.transactions] for block in blocks] == [
        [0],
        [1],
    ]
    assert node.chain.head.number == 2


def test_an_instant_node_makes_no_block_for_what_no_block_takes_now() -> None:
    node = dev_node(accounts=2, mining=Mining.INSTANT)
    clock = node.producer.clock
    clock.set_next(node.chain.head.header.timestamp + 50)
    node.submit(payment(node, 0, max_fee_per_gas=7, max_priority_fee_per_gas=1))
    assert node.chain.head.number == 0
    node.mine()
    assert node.chain.head.header.timestamp == node.chain.genesis.header.timestamp + 50


def test_simultaneous_transactions_of_an_instant_node_get_a_block_each() -> None:
    node = dev_node(accounts=2, mining=Mining.INSTANT, shares_seconds=True)
    raws = [payment(node, nonce) for nonce in range(16)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(node.submit, reversed(raws)))
    counts = [len(node.chain.block_by_number(number).transactions) for number in range(1, 17)]
    assert counts == [1] * 16
    assert node.chain.head.number == 16
    assert node.chain.head.header.timestamp <= time.time()
