"""Tests blocks above a simulated L1: attributes first, then deposits, then the pool."""

import random
import time
from itertools import pairwise

import pytest

from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.op_stack.l1_attributes import (
    DEPOSITOR,
    attributes_of,
    attributes_source_hash,
)
from fastevm.core.execution.op_stack.predeploys import L1_BLOCK, SEQUENCER_FEE_VAULT
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node import Mining, Node, dev_node
from fastevm.node.production.simulated_l1 import (
    L1_BLOCK_SECONDS,
    MAX_DEPOSIT_DATA,
    MAX_DEPOSIT_GAS,
    DepositRefused,
    l1_attributes,
)
from tests.max_wait import MAX_WAIT
from tests.op_chain import ALICE, BOB, START, deposit, payment
from tests.op_stack_data import hex_data, sepolia_blocks

ETHER = 10**18


@pytest.fixture
def node() -> Node:
    return dev_node(op_fork="karst", mining=Mining.MANUAL, timestamp=START)


def test_every_block_begins_with_the_attributes_of_its_l1_block(node: Node) -> None:
    found = []
    for timestamp in (START + 2, START + 11, START + 12, START + 40):
        (block,) = node.mine(timestamp=timestamp)
        first = block.transactions[0]
        assert (first.sender, first.to, first.gas_limit) == (DEPOSITOR, L1_BLOCK, 1_000_000)
        assert node.chain.receipts_of(block.hash)[0].status == 1
        known = attributes_of(block.transactions)
        assert known is not None
        assert first.source_hash == attributes_source_hash(known)
        found.append((known.timestamp - START, known.sequence_number))
        assert block.header.coinbase == SEQUENCER_FEE_VAULT
    assert found == [(0, 0), (0, 1), (12, 0), (36, 0)]


def test_the_contract_tells_what_the_attributes_said(node: Node) -> None:
    (block,) = node.mine(timestamp=START + 14)
    known = attributes_of(block.transactions)
    layer = node.chain.layer_of(block.hash)
    assert layer.storage(L1_BLOCK, 0) == known.timestamp << 64 | known.number
    assert layer.storage(L1_BLOCK, 1) == known.base_fee
    assert layer.storage(L1_BLOCK, 2) == int.from_bytes(known.hash, "big")
    scalars = known.base_fee_scalar << 96 | known.blob_base_fee_scalar << 64
    assert layer.storage(L1_BLOCK, 3) == scalars | known.sequence_number
    assert layer.storage(L1_BLOCK, 7) == known.blob_base_fee
    assert layer.storage(L1_BLOCK, 8) == known.da_footprint_gas_scalar << 96


def test_the_source_hash_is_that_of_real_attributes() -> None:
    blocks = sepolia_blocks()["blocks"]
    assert blocks
    for block in blocks:
        first = Transaction.decode(hex_data(block["transactions"][0]))
        known = attributes_of((first,))
        assert attributes_source_hash(known) == first.source_hash


def test_prices_of_l1_move_by_less_than_an_eighth() -> None:
    fees = [l1_attributes(number, None).base_fee for number in range(200)]
    assert len(set(fees)) > 30
    assert all(abs(b - a) * 8 <= a for a, b in pairwise(fees))


def test_a_deposit_comes_after_the_attributes_and_before_the_pool(node: Node) -> None:
    paid = payment(node)
    tx_hash = node.deposit(deposit(value=5))
    (block,) = node.mine()
    assert [transaction.hash for transaction in block.transactions[1:]] == [tx_hash, paid]
    layer = node.chain.layer_of(block.hash)
    assert (layer.balance(ALICE), layer.balance(BOB)) == (ETHER - 5, 6)
    assert len(node.mine()[0].transactions) == 1


def test_slice_0_has_the_deposits_alone(node: Node) -> None:
    seen = []
    node.on_slice(lambda pending, first_new: seen.append(pending))
    payment(node)
    node.deposit(deposit())
    pending = node.producer.begin(START + 2)
    assert pending.slice_index == 0
    assert [transaction.type for transaction in pending.transactions] == [126, 126]
    assert pending.header.gas_used > 0


def test_a_block_that_is_given_up_loses_no_deposit(node: Node) -> None:
    tx_hash = node.deposit(deposit())
    node.producer.begin(START + 2)
    node.producer.abandon()
    assert [transaction.hash for transaction in node.mine()[0].transactions[1:]] == [tx_hash]


def test_equal_deposits_have_different_hashes(node: Node) -> None:
    hashes = {node.deposit(deposit()) for _ in range(3)}
    assert len(hashes) == 3
    assert node.mine()[0].transactions[3].hash in hashes


def test_a_failing_deposit_keeps_its_mint(node: Node) -> None:
    node.deposit(deposit(value=2 * ETHER))
    (block,) = node.mine()
    receipt = node.chain.receipts_of(block.hash)[1]
    layer = node.chain.layer_of(block.hash)
    assert (receipt.status, layer.balance(ALICE), layer.nonce(ALICE)) == (0, ETHER, 1)


def test_deposits_beyond_the_gas_of_a_block_wait_for_the_next(node: Node) -> None:
    for _ in range(4):
        node.deposit(deposit(gas_limit=MAX_DEPOSIT_GAS))
    assert [len(block.transactions) for block in node.mine(3)] == [3, 3, 1]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"gas_limit": MAX_DEPOSIT_GAS + 1}, "at most 20000000 gas"),
        ({"data": bytes(MAX_DEPOSIT_DATA + 1)}, "at most 120000 bytes"),
    ],
)
def test_what_no_portal_takes_is_refused(node: Node, fields: dict, text: str) -> None:
    with pytest.raises(DepositRefused, match=text):
        node.deposit(deposit(**fields))
    assert len(node.mine()[0].transactions) == 1


def test_a_chain_of_ethereum_takes_no_deposits() -> None:
    with pytest.raises(DepositRefused, match="no blocks that begin with deposits"):
        dev_node(mining=Mining.MANUAL).deposit(deposit())


def test_a_revert_brings_no_deposit_into_the_pool(node: Node) -> None:
    snapshot = node.development.snapshot()
    node.deposit(deposit())
    node.mine(3)
    assert node.development.revert(snapshot)
    assert len(node.pool) == 0
    assert len(node.mine()[0].transactions) == 1


def test_blocks_of_200_ms_have_attributes_with_the_same_second() -> None:
    node = dev_node(
        op_fork="karst", mining=Mining.MANUAL, timestamp=START, block_time_ms=200,
    )  # fmt: skip
    node.producer.clock.set_now(START + L1_BLOCK_SECONDS)
    blocks = [node.mine(timestamp=START + L1_BLOCK_SECONDS)[0] for _ in range(5)]
    assert {block.header.timestamp for block in blocks} == {START + L1_BLOCK_SECONDS}
    numbers = [attributes_of(block.transactions).sequence_number for block in blocks]
    assert numbers == [0, 1, 2, 3, 4]


def test_native_blocks_of_200_ms_are_built_on_time() -> None:
    node = dev_node(op_fork="karst", block_time_ms=200, slice_interval_ms=200)
    slices: list[PendingBlock] = []
    node.on_slice(lambda pending, first_new: slices.append(pending))
    node.producer.start()
    node.deposit(deposit())
    deadline = time.monotonic() + MAX_WAIT
    while node.chain.head.number < 8 and time.monotonic() < deadline:
        time.sleep(0.02)
    node.producer.stop()
    blocks = [node.chain.block_by_number(number) for number in range(1, 9)]
    seconds = [block.header.timestamp for block in blocks]
    assert seconds == sorted(seconds)
    assert len(set(seconds)) < len(seconds)
    assert sum(len(block.transactions) for block in blocks) == 9
    places = [
        (item.header.number, item.slice_index) for item in slices if 2 <= item.header.number <= 8
    ]
    assert places == [(number, index) for number in range(2, 9) for index in (0, 1)]


def test_a_node_that_mines_at_once_makes_a_block_for_a_deposit() -> None:
    node = dev_node(op_fork="karst", mining=Mining.INSTANT)
    tx_hash = node.deposit(deposit())
    assert [transaction.hash for transaction in node.chain.head.transactions[1:]] == [tx_hash]


def test_a_transaction_beyond_the_da_footprint_waits_for_the_next_block(node: Node) -> None:
    hashes = [
        payment(node, nonce, gas_limit=5_000_000, data=random.Random(nonce).randbytes(90_000))
        for nonce in range(2)
    ]
    first, second = node.mine(2)
    assert [
        transaction.hash for transaction in (*first.transactions[1:], *second.transactions[1:])
    ] == hashes
    assert first.header.gas_limit // 2 < first.header.blob_gas_used <= first.header.gas_limit


def test_a_transaction_with_the_gas_of_a_whole_block_is_dropped() -> None:
    node = dev_node(op_fork="isthmus", mining=Mining.MANUAL, timestamp=START)
    gas = node.chain.head.header.gas_limit - 1  # does not fit with the attributes deposit
    tx_hash, behind = payment(node, 0, gas_limit=gas), payment(node, 1)
    (block,) = node.mine()
    assert len(block.transactions) == 1
    assert "no block can include it: its gas limit" in str(node.pool.drop_reason(tx_hash))
    assert node.pool.executable_count == 0
    assert node.pool.find(behind) is not None


def test_a_transaction_beyond_the_da_footprint_of_a_block_is_dropped() -> None:
    node = dev_node(op_fork="denim", mining=Mining.MANUAL, timestamp=START)
    data = random.Random(1).randbytes(130_000)
    tx_hash = payment(node, 0, gas_limit=6_000_000, data=data)
    (block,) = node.mine()
    assert len(block.transactions) == 2  # the attributes and the milliseconds of the block
    assert "DA footprint limit" in str(node.pool.drop_reason(tx_hash))
