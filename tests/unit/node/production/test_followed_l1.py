"""Tests how a follower predicts the next block's first transactions from those of its parent."""

from typing import Any

import pytest

from fastevm.core.execution.op_stack.base_time import timestamp_millis
from fastevm.core.execution.op_stack.l1_attributes import attributes_of
from fastevm.core.primitives.replace import replace
from fastevm.node import Mining, Node, dev_node
from fastevm.node.production.followed_l1 import FollowedL1
from fastevm.node.production.sliced_block import open_child_block
from tests.op_chain import START

MANUAL: dict[str, Any] = {"mining": Mining.MANUAL, "timestamp": START}


def begun(node: Node) -> Any:
    """Returns the first slice of a child of the head, with the attributes that a follower uses."""
    head = node.chain.head
    source = FollowedL1(node.chain, bytes(20))
    attributes = source.attributes(head, head.header.timestamp + 2)
    return open_child_block(node.chain, attributes, attempt=0).close_slice()


@pytest.mark.parametrize("fork", ["karst", "cobalt", "denim"])
def test_the_block_of_l1_stays_and_the_sequence_number_grows(fork: str) -> None:
    node = dev_node(op_fork=fork, **MANUAL)
    (head,) = node.mine()
    before, after = attributes_of(head.transactions), attributes_of(begun(node).transactions)
    assert before is not None
    assert after == replace(before, sequence_number=before.sequence_number + 1)


def test_the_milliseconds_of_a_block_of_base_follow_those_of_its_parent() -> None:
    node = dev_node(op_fork="denim", **MANUAL)
    for _ in range(6):
        (head,) = node.mine()
        before = timestamp_millis(head.header, head.transactions)
        pending = begun(node)
        assert before is not None
        assert timestamp_millis(pending.header, pending.transactions) == before + 200
        assert all(receipt.status for receipt in pending.receipts)


def test_the_forecast_is_what_the_sequencer_builds() -> None:
    node = dev_node(op_fork="denim", **MANUAL)
    node.mine(3)
    pending = begun(node)
    (built,) = node.mine()
    assert tuple(item.raw for item in pending.transactions) == tuple(
        item.raw for item in built.transactions
    )
    assert pending.header.base_fee_per_gas == built.header.base_fee_per_gas
    assert pending.header.gas_limit == built.header.gas_limit
    layer = node.chain.layer_of(built.hash)
    assert pending.layer.state_root() == layer.state_root()


def test_a_chain_without_deposits_and_a_first_block_begin_empty() -> None:
    for fork in (None, "karst"):
        node = dev_node(op_fork=fork, **MANUAL)
        source = FollowedL1(node.chain, b"\xc0" * 20)
        attributes = source.attributes(node.chain.head, START + 2)
        assert attributes.transactions == ()
        assert (attributes.coinbase, attributes.timestamp) == (b"\xc0" * 20, START + 2)
        assert source.fixed_timestamp(node.chain.head) is None
