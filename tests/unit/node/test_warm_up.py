"""Tests that the warm-up, which builds and discards a block, changes neither chain nor pool."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from fastevm.node import Mining, dev_node
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.warm_up import warm_up
from tests.max_wait import MAX_WAIT

ALICE, *_ = dev_accounts(1)


@pytest.mark.parametrize("mining", [Mining.INSTANT, Mining.MANUAL])
def test_neither_chain_nor_pool_nor_the_next_block_changes(mining: Mining) -> None:
    node = dev_node(accounts=1, mining=mining, timestamp=1_000)
    node.development.time.set_next(2_000)
    head, layer = node.chain.head, node.chain.layer_of(node.chain.head.hash)
    warm_up(node.producer, ALICE.address, ALICE.private_key)
    assert node.chain.head is head
    assert node.chain.layer_of(head.hash) is layer
    assert not len(node.pool)
    assert node.mine()[0].header.timestamp == 2_000


def test_a_sender_without_funds_changes_nothing_either() -> None:
    node = dev_node(accounts=1, balance=0, mining=Mining.INSTANT)
    warm_up(node.producer, ALICE.address, ALICE.private_key)
    assert node.chain.head.number == 0


def test_it_does_not_wait_for_a_producer_in_use() -> None:
    node = dev_node(accounts=1, mining=Mining.INSTANT)
    with ThreadPoolExecutor() as pool, node.producer.lock:
        waiting = pool.submit(warm_up, node.producer, ALICE.address, ALICE.private_key)
        waiting.result(timeout=MAX_WAIT)
