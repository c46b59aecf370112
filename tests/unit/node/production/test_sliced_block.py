"""Tests that a block with slices has the given parent, even if the head has moved."""

from fastevm.node import Mining, dev_node
from fastevm.node.production.sliced_block import open_child_block


def test_a_block_begins_on_the_parent_that_is_named_though_the_head_moved() -> None:
    node = dev_node(accounts=1, mining=Mining.MANUAL)
    chain = node.chain
    node.mine(1)
    parent, attributes = chain.head, node.producer.attributes(chain.head.header.timestamp + 1)
    node.mine(2)
    for named, expected in ((parent, parent), (None, chain.head)):
        block = open_child_block(chain, attributes, attempt=0, parent=named)
        assert block.header.parent_hash == expected.hash
        assert block.header.number == expected.header.number + 1
