"""Chains: stored blocks, the pool, the pending block and who builds it."""

from fastevm.chain.assembly import BlockAttributes, assemble_block
from fastevm.chain.chain import Chain
from fastevm.chain.hub import SlowReader
from fastevm.chain.logs import LogIndex
from fastevm.chain.node import Mining, Node, dev_node, genesis_node
from fastevm.chain.options import (
    add_chain_arguments,
    follow_upstream,
    genesis_time,
    node_options,
)
from fastevm.chain.pending import PendingBlock

__all__ = [
    "BlockAttributes",
    "Chain",
    "LogIndex",
    "Mining",
    "Node",
    "PendingBlock",
    "SlowReader",
    "add_chain_arguments",
    "assemble_block",
    "dev_node",
    "follow_upstream",
    "genesis_node",
    "genesis_time",
    "node_options",
]
