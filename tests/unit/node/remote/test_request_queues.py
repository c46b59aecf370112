"""Tests a fork of a chain with entries in its request queues (EIP-7002, EIP-7251)."""

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.core.primitives.hex import hex_bytes
from fastevm.node import Mining, Node, dev_node, forked_node
from fastevm.node.remote.options import ForkOptions
from fastevm.node.remote.transaction_state import QUEUE_HEAD, QUEUE_TAIL

ENTRIES = 5
WORDS = 20  # storage words that are filled; an entry has at most 4
CONTRACTS = ("WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS", "CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS")
TIMESTAMP = 1_700_000_000


def queued(name: str) -> tuple[Node, bytes]:
    """Returns a node with entries in the named queue, and the queue's contract."""
    node = dev_node(mining=Mining.MANUAL, accounts=3, timestamp=TIMESTAMP)
    head = node.chain.head.header
    contract = node.chain.schedule_for_child(head, TIMESTAMP + 1).system_contracts[name]
    words = {hex(4 + index): hex(7 + index) for index in range(WORDS)}
    storage = {hex(QUEUE_HEAD): "0x0", hex(QUEUE_TAIL): hex(ENTRIES), **words}
    node.development.required().amend({hex_bytes(contract): {"storage": storage}})
    return node, contract


@pytest.mark.parametrize("name", CONTRACTS)
def test_blocks_of_a_fork_take_the_entries_of_the_upstream(name: str) -> None:
    node, contract = queued(name)
    with ServerThread(node) as upstream:
        options = ForkOptions(urls=(upstream.url(),), cache=False)
        fork = forked_node(options, accounts=2, mining=Mining.MANUAL)
        for made, expected in zip(fork.mine(3), node.mine(3), strict=True):
            assert made.header.requests_hash == expected.header.requests_hash
            layers = fork.chain.layer_of(made.hash), node.chain.layer_of(expected.hash)
            mine, theirs = (layer.storage(contract, QUEUE_HEAD) for layer in layers)
            assert mine == theirs
