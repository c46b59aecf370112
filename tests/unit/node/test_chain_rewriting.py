"""Tests that removed and replaced blocks lose their transactions. Pooled transactions stay."""

import pytest

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node import Mining, Node, dev_node
from fastevm.node.chain_rewriting import MAX_DEPTH, ChainRewriting
from fastevm.node.dev_chain import DEV_CHAIN_ID

BOB = b"\xb0" * 20


def payment(node: Node, nonce: int, value: int = 1) -> Transaction:
    made = Transaction.build(
        to=BOB, value=value, gas_limit=21_000, chain_id=DEV_CHAIN_ID, nonce=nonce,
        max_fee_per_gas=10**10, max_priority_fee_per_gas=1,
    )  # fmt: skip
    return made.sign(node.accounts[0].private_key)


@pytest.fixture
def node() -> Node:
    """Provides a node with three one-payment blocks and a pooled payment."""
    made = dev_node(accounts=1, mining=Mining.MANUAL)
    for nonce in range(3):
        made.submit(payment(made, nonce).raw)
        made.mine()
    made.submit(payment(made, 3).raw)
    return made


def rewriting(node: Node) -> ChainRewriting:
    assert node.development is not None
    return node.development.rewriting


def balance(node: Node) -> int:
    return node.chain.layer_of(node.chain.head.hash).balance(BOB)


def test_the_newest_blocks_are_taken_back(node: Node) -> None:
    gone = node.chain.head
    rewriting(node).rollback(2)
    assert (node.chain.head.number, balance(node)) == (1, 1)
    assert node.chain.locate(gone.transactions[0].hash) is None
    assert (node.pool.executable_count, node.pool.queued_count) == (0, 1)
    rewriting(node).rollback(0)
    assert node.chain.head.number == 1
    node.submit(payment(node, 1, 7).raw)
    node.mine()
    assert balance(node) == 8


def test_blocks_are_replaced_by_others(node: Node) -> None:
    before = [node.chain.canonical_hash(number) for number in range(4)]
    rewriting(node).reorganise(2, {1: [payment(node, 1, 9)]})
    after = [node.chain.canonical_hash(number) for number in range(4)]
    assert after[:2] == before[:2]
    assert after[2] != before[2]
    assert after[3] != before[3]
    assert [len(node.chain.block_by_number(number).transactions) for number in (2, 3)] == [0, 1]
    assert balance(node) == 10
    assert (node.pool.executable_count, node.pool.queued_count) == (0, 1)


def test_empty_blocks_of_the_same_second_differ(node: Node) -> None:
    rewriting(node).rollback(3)
    node.pool.drop(payment(node, 3).hash)
    for _ in range(3):
        old = node.chain.head.hash if node.chain.head.number else None
        if old is None:
            node.mine()
            continue
        rewriting(node).reorganise(1, {})
        assert node.chain.head.hash != old


def test_a_transaction_that_no_block_takes_leaves_the_chain(node: Node) -> None:
    before = node.chain.head
    with pytest.raises(ValueError, match="a transaction cannot be included: nonce too high"):
        rewriting(node).reorganise(2, {0: [payment(node, 1)], 1: [payment(node, 5)]})
    assert node.chain.head is before
    assert (balance(node), node.pool.executable_count) == (3, 1)


def test_a_depth_has_a_limit(node: Node) -> None:
    for action in (rewriting(node).rollback, lambda depth: rewriting(node).reorganise(depth, {})):
        with pytest.raises(ValueError, match="depth 4 of a chain at block 3, limit 3"):
            action(4)
    with pytest.raises(ValueError, match="block 1 of a reorganisation of 1"):
        rewriting(node).reorganise(1, {1: []})
    assert MAX_DEPTH > 3
    assert node.chain.head.number == 3
