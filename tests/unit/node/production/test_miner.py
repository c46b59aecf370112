"""Tests mining modes that change while the node runs."""

import time
from collections.abc import Callable, Iterator

import pytest

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node import Mining, Node, dev_node
from fastevm.node.dev_chain import DEV_CHAIN_ID
from tests.block_times import UNHURRIED_MS
from tests.max_wait import MAX_WAIT


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MAX_WAIT
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


def payment(node: Node, nonce: int) -> bytes:
    prices = {"max_fee_per_gas": 10**11, "max_priority_fee_per_gas": 1}
    fields = {"to": bytes(20), "gas_limit": 21_000, "chain_id": DEV_CHAIN_ID, "nonce": nonce}
    return Transaction.build(**fields, **prices).sign(node.accounts[0].private_key).raw


@pytest.fixture(params=[Mining.INSTANT, Mining.CADENCE])
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """Provides a node that mines each transaction. It starts in this mode or building slices."""
    made = dev_node(accounts=1, mining=request.param, block_time_ms=UNHURRIED_MS)
    made.producer.start()
    made.development.miner.set_automine(True)
    yield made
    made.development.miner.stop()
    made.producer.stop()


def test_transactions_wait_without_a_mode_and_share_a_block_with_the_next_one(node: Node) -> None:
    miner = node.development.miner
    miner.set_automine(False)
    assert (node.mines_at_once, miner.interval) == (False, None)
    node.submit(payment(node, 0))
    node.submit(payment(node, 1))
    assert node.chain.head.number == 0
    miner.set_automine(True)
    assert len(node.chain.head.transactions) == 2
    node.submit(payment(node, 2))
    assert (node.chain.head.number, len(node.chain.head.transactions)) == (2, 1)


def test_blocks_come_at_an_interval_until_another_mode(node: Node) -> None:
    miner = node.development.miner
    miner.set_interval(0.02)
    assert (node.mines_at_once, miner.interval) == (False, 0.02)
    node.submit(payment(node, 0))
    eventually(lambda: node.chain.head.number >= 3)
    miner.set_automine(False)
    assert miner.interval == 0.02, "an interval is not ended by switching off what is off"
    miner.set_interval(0)
    number = node.chain.head.number
    time.sleep(0.06)
    assert node.chain.head.number == number


def test_both_together(node: Node) -> None:
    node.development.miner.set_interval(0.02, automine=True)
    node.submit(payment(node, 0))
    assert node.chain.locate(Transaction.decode(payment(node, 0)).hash) is not None
    number = node.chain.head.number
    eventually(lambda: node.chain.head.number > number)


@pytest.mark.parametrize("seconds", [-1, 0.001, 1e300, float("nan")])
def test_an_interval_that_is_none_changes_nothing(node: Node, seconds: float) -> None:
    with pytest.raises(ValueError, match="interval"):
        node.development.miner.set_interval(seconds)
    assert node.mines_at_once


def test_a_builder_of_slices_goes_on_at_its_own_block_time() -> None:
    node = dev_node(accounts=1, block_time_ms=200, slice_interval_ms=50)
    node.producer.start()
    miner = node.development.miner
    try:
        miner.set_automine(True)
        assert (node.pending(), node.slice_cadence_ms) == (None, None)
        node.submit(payment(node, 0))
        number = node.chain.head.number
        miner.set_interval(0.2)
        eventually(lambda: node.pending() is not None and node.chain.head.number > number)
        assert node.slice_cadence_ms == 50
    finally:
        node.producer.stop()


def test_the_next_block_is_what_would_be_made_now() -> None:
    node = dev_node(accounts=1, mining=Mining.MANUAL)
    moment = node.chain.head.header.timestamp + 500
    node.submit(payment(node, 0))
    node.submit(payment(node, 1))
    node.development.time.set_next(moment)
    found = node.next_block()
    assert found is not None and found is node.next_block()
    assert (found.header.number, found.header.timestamp) == (1, moment)
    assert len(found.transactions) == 2
    (made,) = node.mine()
    assert made.header.timestamp == moment
    assert made.transactions == found.transactions
    after = node.next_block()
    assert after is not None and after.header.number == 2 and not after.transactions
